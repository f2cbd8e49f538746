// Whole files, read and written in one step.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tilesmith {

// A file that takes its name when it is whole: it is written under a temporary one beside it, so that a
// reader sees the old contents or the new ones, and a crash or a full disk leaves the old ones. An existing
// file keeps its permissions, and a link its place; a device or a pipe is written directly. All but the
// destructor throw Error(kEnvironment) naming the path and the cause.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  ~NewFile();  // without Finish, what was written is gone
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void Write(std::string_view text);
  void Finish();

 private:
  [[noreturn]] void Fail() const;

  std::string path_, target_, temporary_;
  std::FILE* file_ = nullptr;
  bool direct_ = false, done_ = false;
};

// Throws Error(kUsage) where the file at the path, which is written, is one of the work's other files, by
// whatever name. For no path, "", and for devices it does nothing.
void RequireOwnFile(const std::string& path, const std::vector<std::string>& others);
// Before long work whose result a NewFile at the path is to hold: throws as writing it would, and changes
// nothing; and as RequireOwnFile does. For no path, "", it does nothing.
void RequireWritable(const std::string& path, const std::vector<std::string>& others = {});
// The same for files in a directory, which is made when it is missing.
void RequireWritableDirectory(const std::string& path);

// Whether there is something at the path, as far as that can be seen.
bool FileExists(const std::string& path);

// All of a NewFile at once. Throws as it does.
void WriteTextFile(const std::string& path, std::string_view text);

// As much as is read from a device or a pipe, which may never end.
constexpr size_t kMaxStreamBytes = size_t{256} << 20;

// Throws Error(kEnvironment) naming the path and the cause, also when a device or pipe gives more than that.
std::string ReadTextFile(const std::string& path);

}  // namespace tilesmith
