#include "tuner/replace_log.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "tuner/json_fields.h"

namespace tilesmith {
namespace {

// A file that takes its name when it is whole, and is gone otherwise.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path) {
    std::error_code missing;
    const std::filesystem::path real = std::filesystem::canonical(path, missing);
    const bool exists = !missing;
    if (exists) target_ = real;  // not a link to it
    direct_ = exists && !std::filesystem::is_regular_file(real);
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
  ~NewFile() {
    if (file_ != nullptr) std::fclose(file_);
    if (!done_ && !direct_) std::remove(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void WriteLine(std::string_view line) {
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fputc('\n', file_) == EOF)
      Fail();
  }

  void Finish() {
    if (std::fflush(file_) != 0) Fail();
    if (!direct_ && fsync(fileno(file_)) != 0) Fail();
    const int closed = std::fclose(file_);
    file_ = nullptr;
    if (closed != 0 || (!direct_ && std::rename(temporary_.c_str(), target_.c_str()) != 0)) Fail();
    done_ = true;
  }

 private:
  [[noreturn]] void Fail() {
    const std::string cause = std::strerror(errno);
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot write {}: {}", path_, cause));
  }

  const std::string& path_;
  std::string target_ = path_, temporary_;
  std::FILE* file_ = nullptr;
  bool direct_ = false, done_ = false;
};

}  // namespace

void ReplaceLog(const std::string& path, std::span<const std::string_view> lines) {
  NewFile file(path);
  for (const std::string_view line : lines) file.WriteLine(line);
  file.Finish();
}

void ReplaceLog(const std::string& path, std::span<const Record* const> records) {
  NewFile file(path);
  for (const Record* record : records) file.WriteLine(JsonLine(RecordToJson(*record)));
  file.Finish();
}

}  // namespace tilesmith
