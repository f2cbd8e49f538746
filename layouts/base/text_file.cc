#include "layouts/base/text_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

[[noreturn]] void ThrowErrno(const char* what, const std::string& path) {
  throw Error(ErrorCode::kEnvironment, fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path), target_(path) {
  std::error_code missing;
  const std::filesystem::path real = std::filesystem::canonical(path, missing);
  const bool exists = !missing;
  if (exists) target_ = real;  // not a link to it
  direct_ = exists && !std::filesystem::is_regular_file(real, missing);
  temporary_ = direct_ ? target_ : target_ + ".XXXXXX";
  const int fd = direct_ ? -1 : mkstemp(temporary_.data());
  file_ = direct_ ? std::fopen(temporary_.c_str(), "wb") : fd < 0 ? nullptr : fdopen(fd, "wb");
  if (file_ == nullptr) Fail();
  if (direct_) return;
  struct stat status {};
  const mode_t mode = exists && stat(target_.c_str(), &status) == 0 ? status.st_mode & 0777 : 0644;
  if (fchmod(fd, mode) == 0) return;
  std::remove(temporary_.c_str());
  Fail();
}

NewFile::~NewFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!done_ && !direct_) std::remove(temporary_.c_str());
}

void NewFile::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) Fail();
}

void NewFile::Finish() {
  if (std::fflush(file_) != 0) Fail();
  if (!direct_ && fsync(fileno(file_)) != 0) Fail();
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (closed != 0 || (!direct_ && std::rename(temporary_.c_str(), target_.c_str()) != 0)) Fail();
  done_ = true;
}

void NewFile::Fail() const { ThrowErrno("write", path_); }

void RequireOwnFile(const std::string& path, const std::vector<std::string>& others) {
  if (path.empty()) return;
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  const bool regular = std::filesystem::is_regular_file(path, error);
  for (const std::string& other : others) {
    if (exists ? regular && std::filesystem::equivalent(other, path, error) : other == path)
      throw Error(ErrorCode::kUsage, fmt::format("{} is both an input and the output", path));
  }
}

void RequireWritable(const std::string& path, const std::vector<std::string>& others) {
  if (path.empty()) return;
  RequireOwnFile(path, others);
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  const bool direct = type != std::filesystem::file_type::regular && std::filesystem::exists(path, error);
  if (!direct) {
    const NewFile probe(path);
    return;
  }
  // Opening and closing a pipe would be the end of it for its reader.
  errno = type == std::filesystem::file_type::directory ? EISDIR : 0;
  if (errno != 0 || access(path.c_str(), W_OK) != 0) ThrowErrno("write", path);
}

void RequireWritableDirectory(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot make directory {}: {}", path, error.message()));
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) ThrowErrno("write to", path);
}

bool FileExists(const std::string& path) {
  std::error_code hidden;
  return std::filesystem::exists(path, hidden);
}

void WriteTextFile(const std::string& path, std::string_view text) {
  NewFile file(path);
  file.Write(text);
  file.Finish();
}

std::string ReadTextFile(const std::string& path) {
  constexpr uintmax_t kMinPieceBytes = 1 << 12;  // files of /proc say that they are empty
  constexpr uintmax_t kMaxPieceBytes = 1 << 20;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) ThrowErrno("read", path);
  std::error_code unknown;
  const bool endless = !std::filesystem::is_regular_file(path, unknown);
  // A byte more than the file has, so that one read sees its end.
  const auto piece_bytes =
      static_cast<size_t>(std::clamp(endless ? kMaxPieceBytes : std::filesystem::file_size(path, unknown),
                                     kMinPieceBytes - 1, kMaxPieceBytes - 1) +
                          1);
  errno = 0;
  std::string text;
  while (file) {
    const size_t before = text.size();
    if (endless && before > kMaxStreamBytes) {
      throw Error(ErrorCode::kEnvironment,
                  fmt::format("cannot read {}: it is no file, and gives more than {} MiB", path,
                              kMaxStreamBytes >> 20));
    }
    text.resize(before + piece_bytes);
    file.read(text.data() + before, piece_bytes);
    text.resize(before + static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) ThrowErrno("read", path);
  return text;
}

}  // namespace tilesmith
