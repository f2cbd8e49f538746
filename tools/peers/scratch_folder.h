// A folder for files between processes.
#pragma once

#include <filesystem>
#include <string>

namespace tilesmith {

// Made where temporary files go, and removed with all that is in it. Throws Error(kEnvironment) when it
// cannot be made.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string File(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace tilesmith
