// Files that commands write: which of them may be replaced.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tilesmith {

enum class OutputFormat {
  kOnnx,
  kLog,
  kPlan,
  kCosts,
  kAutoTvmLog,
  kCostModel,
  kMeasuredSpace,
  kJson,
  kCsv,
  kPage,
  kNpz,
  kCompiled,
  kObject,
  kHeader
};

// Throws Error(kUsage) where the file's first line says that it holds something else than what is to be
// written to it. What is empty may become anything; so may no path, "", devices and pipes.
void RequireFormat(const std::string& path, OutputFormat format);
// The same behind RequireWritable (text_file.h), before long work whose result replaces the file.
void RequireReplaceable(const std::string& path, OutputFormat format,
                        const std::vector<std::string>& others = {});

// Throws Error(kUsage) where two of a command's outputs would be one file, however they are spelled; "" is
// none.
void RequireDifferent(const std::vector<std::string>& outputs);

// A folder for files between processes: made where temporary files go, and removed with all that is in it.
// Throws Error(kEnvironment) when it cannot be made.
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

// Calls `write`, which writes the file anew, and says on stderr when there was something in it before.
void ReplaceFile(const std::string& path, const std::function<void()>& write);

}  // namespace tilesmith
