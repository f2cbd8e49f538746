// Tuning logs: one record a line, appended as soon as it is known.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tuner/records/record.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

// Appends records to a file, which it creates when missing. Every record is one write under a file lock, so
// that several writers, in one process or many, never interleave. When the file ends in a torn line, the next
// record starts on a fresh one. When the file is removed or replaced while in use, the next record goes to
// the file that has the path then, created anew if need be: what was appended before went with the old file.
// Thread-compatible: one thread at a time per writer.
class LogWriter {
 public:
  // Throws Error(kEnvironment) naming the path and the cause, as does Append. After a failed Append (a full
  // disk, say) the file is as it was before.
  // With `afresh` what the file holds goes when the first record comes, and not before.
  explicit LogWriter(std::string path, bool afresh = false);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void Append(const Record& record);
  // Returns when what was appended is on the disk, where the file is on one.
  void Sync();
  const std::string& path() const { return path_; }
  // How often the file was found removed or replaced.
  int times_lost() const { return times_lost_; }

 private:
  void Open();
  void Close();
  void AppendLocked(std::string line);
  bool HasPath() const;

  std::string path_;
  bool afresh_;
  int times_lost_ = 0;
  int fd_ = -1;
};

struct LogProblem {
  int64_t line = 0;     // from 1
  std::string message;  // why it was skipped
};

struct LogContents {
  std::vector<Record> records;  // in the order of the file
  std::vector<LogProblem> problems;
};

// Reads what can be read: a line that is torn, foreign, or of a newer format costs that line. Empty lines are
// passed over. Throws Error(kEnvironment) naming the path when the file cannot be opened or read, and
// Error(kUsage) when a thousand lines are none of a log.
LogContents ReadLog(const std::string& path);

// Writing a whole log at once.
//
// Puts the lines (without newlines of their own) in place of the file: it holds all of them or is as it was.
// Where the path is no regular file, a pipe say, they are written to it. Throws Error(kEnvironment) naming
// the path and the cause.
void ReplaceLog(const std::string& path, std::span<const std::string_view> lines);
void ReplaceLog(const std::string& path, std::span<const Record* const> records);

// Logs of several runs and machines as one.
//
// Takes the lines of all sources and gives them back sorted by their records' time; those of one second in
// the order they came in, so that re-timed records stay behind what they replace. Lines stay byte for byte as
// they are; one that was there before is dropped.
class LogMerger {
 public:
  LogMerger() = default;
  LogMerger(const LogMerger&) = delete;
  LogMerger& operator=(const LogMerger&) = delete;

  // A line that holds `record`, without its newline.
  void Add(std::string_view line, const Record& record);

  // Valid until the next Add.
  std::vector<std::string_view> Sorted() const;
  int64_t duplicates() const { return duplicates_; }
  const std::vector<TargetCount>& targets() const { return targets_; }  // of what was kept

 private:
  struct Line {
    std::string_view text;  // in texts_
    std::string time;
  };
  std::unordered_set<std::string> texts_;
  std::vector<Line> lines_;
  std::vector<TargetCount> targets_;
  int64_t duplicates_ = 0;
};

// Says what a file is that was taken for another one: plans, logs and costs are all lines of JSON.
//
// What writes lines such as this one, "a plan" or "a tuning log"; "" where that is nothing known.
std::string FileKind(const nlohmann::json& line);

}  // namespace tilesmith
