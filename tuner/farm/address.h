// Where a farm's Redis is.
#pragma once

#include <string>
#include <string_view>

namespace tilesmith {

struct FarmAddress {
  std::string host;  // "" where it is a socket in the file system
  int port = 6379;
  std::string socket_path;  // of that
  int database = 0;
  std::string user, password;  // "": none

  // As a URL without user and password, to be shown.
  std::string ToString() const;
};

// redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or unix:///PATH[?db=DB]; user and password may be
// percent-encoded. Throws Error(kUsage) naming what is wrong, and no password: what stands before an '@' is
// never in the message.
FarmAddress ParseFarmUrl(std::string_view url);

}  // namespace tilesmith
