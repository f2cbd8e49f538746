#include "tuner/records/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/log_scan.h"

namespace tilesmith {
namespace {

[[noreturn]] void Fail(const std::string& path, const char* what, int error) {
  throw Error(ErrorCode::kEnvironment, fmt::format("{}: {}: {}", path, what, std::strerror(error)));
}

class FileLock {
 public:
  FileLock(int fd, const std::string& path) : fd_(fd) {
    while (flock(fd_, LOCK_EX) != 0) {
      if (errno != EINTR) Fail(path, "cannot lock", errno);
    }
  }
  ~FileLock() { flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

bool EndsInNewline(int fd, off_t size) {
  char last = '\n';
  return size == 0 || (pread(fd, &last, 1, size - 1) == 1 && last == '\n');
}

}  // namespace

LogWriter::LogWriter(std::string path, bool afresh) : path_(std::move(path)), afresh_(afresh) { Open(); }

void LogWriter::Open() {
  fd_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) Fail(path_, "cannot write to it", errno);
}

LogWriter::~LogWriter() { Close(); }

void LogWriter::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

// A pipe has nothing to sync; what a disk lost it says at the next write as well.
void LogWriter::Sync() {
  if (fd_ >= 0) fdatasync(fd_);
}

// Whether the open file is still the one at the path.
bool LogWriter::HasPath() const {
  struct stat opened, named;
  return fstat(fd_, &opened) == 0 && stat(path_.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

void LogWriter::Append(const Record& record) {
  const std::string line = JsonLine(RecordToJson(record)) + '\n';
  if (fd_ < 0) Open();  // a reopening failed before
  for (;;) {
    {
      const FileLock lock(fd_, path_);
      if (HasPath()) return AppendLocked(line);
    }
    ++times_lost_;
    afresh_ = false;  // it is another's
    Close();
    Open();
  }
}

void LogWriter::AppendLocked(std::string line) {
  struct stat status;
  if (fstat(fd_, &status) != 0) Fail(path_, "cannot stat", errno);
  // Devices and pipes have neither an end to look at nor one to go back to.
  const bool regular = S_ISREG(status.st_mode);
  if (regular && afresh_) {
    if (ftruncate(fd_, 0) != 0) Fail(path_, "cannot empty it", errno);
    status.st_size = 0;
  }
  afresh_ = false;
  if (regular && !EndsInNewline(fd_, status.st_size)) line.insert(line.begin(), '\n');
  ssize_t written;
  do {
    written = write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return;
  const int error = written < 0 ? errno : ENOSPC;
  if (written > 0 && regular && ftruncate(fd_, status.st_size) != 0)
    Fail(path_, "cannot undo a torn write", errno);
  Fail(path_, "cannot write a record", error);
}

LogContents ReadLog(const std::string& path) {
  constexpr size_t kGuessFrom = 1024;  // records; their lines say how long the others will be
  constexpr size_t kForeignLines = 1000;
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  const double bytes = unknown ? 0 : static_cast<double>(size);
  double seen = 0;
  LogContents contents;
  std::vector<Record>& records = contents.records;
  ScanLog(path, [&](LogLine& line) {
    seen += static_cast<double>(line.text.size() + 1);
    if (!line.problem.empty()) {
      contents.problems.push_back({line.number, std::move(line.problem)});
      if (records.empty() && contents.problems.size() >= kForeignLines) {
        const LogProblem& first = contents.problems.front();
        throw Error(ErrorCode::kUsage,
                    fmt::format("{}: not a tuning log: {} lines and no record (line {}: {})", path,
                                kForeignLines, first.line, first.message));
      }
      return;
    }
    // Growing by doubling would move all records time and again.
    if (records.size() >= kGuessFrom && records.size() == records.capacity()) {
      const double guess = static_cast<double>(records.size()) * bytes / seen * 1.02;
      records.reserve(std::max(records.size() * 3 / 2, static_cast<size_t>(guess)));
    }
    records.push_back(std::move(line.record));
  });
  return contents;
}

void ReplaceLog(const std::string& path, std::span<const std::string_view> lines) {
  NewFile file(path);
  for (const std::string_view line : lines) {
    file.Write(line);
    file.Write("\n");
  }
  file.Finish();
}

void ReplaceLog(const std::string& path, std::span<const Record* const> records) {
  NewFile file(path);
  for (const Record* record : records) file.Write(JsonLine(RecordToJson(*record)) + '\n');
  file.Finish();
}

void LogMerger::Add(std::string_view line, const Record& record) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const auto [text, added] = texts_.emplace(line);
  if (!added) {
    ++duplicates_;
    return;
  }
  CountTarget(record.target, targets_);
  lines_.push_back({*text, record.time});
}

std::vector<std::string_view> LogMerger::Sorted() const {
  std::vector<const Line*> order;
  order.reserve(lines_.size());
  for (const Line& line : lines_) order.push_back(&line);
  std::stable_sort(order.begin(), order.end(),
                   [](const Line* a, const Line* b) { return a->time < b->time; });
  std::vector<std::string_view> sorted;
  sorted.reserve(order.size());
  for (const Line* line : order) sorted.push_back(line->text);
  return sorted;
}

namespace {

struct Kind {
  const char* name;
  std::initializer_list<const char*> members;  // that its lines have
};

const Kind kKinds[] = {
    {"a tuning log", {"tilesmith"}},
    {"a plan", {"tilesmith_plan"}},
    {"a file of costs", {"tilesmith_cost"}},
    {"a measured space", {"tilesmith_space"}},
    {"a cost model", {"checksum", "feature_version"}},
    {"a log of AutoTVM's, which `tilesmith log import` reads", {"input", "config", "result"}},
};

}  // namespace

std::string FileKind(const nlohmann::json& line) {
  const auto found = std::ranges::find_if(kKinds, [&](const Kind& kind) {
    return std::ranges::all_of(kind.members, [&](const char* member) { return line.contains(member); });
  });
  return found == std::end(kKinds) ? "" : found->name;
}

}  // namespace tilesmith
