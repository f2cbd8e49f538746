#include "layouts/base/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

[[noreturn]] void ThrowErrno(const std::string& path, const char* what) {
  throw Error(ErrorCode::kEnvironment, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

void WriteAll(int file, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) ThrowErrno(path, "write");
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
  if (fsync(file) != 0) ThrowErrno(path, "write");
}

}  // namespace

void WriteTextFile(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) ThrowErrno(path, "write");
  try {
    WriteAll(file, path, text);
    if (fchmod(file, 0644) != 0 || std::rename(temporary.c_str(), path.c_str()) != 0)
      ThrowErrno(path, "write");
  } catch (...) {
    close(file);
    unlink(temporary.c_str());
    throw;
  }
  close(file);
}

std::string ReadTextFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file) ThrowErrno(path, "read");
  text << file.rdbuf();
  if (file.bad() || text.bad()) ThrowErrno(path, "read");
  return text.str();
}

}  // namespace tilesmith
