// Tuning logs: one record a line, appended as soon as it is known.
#pragma once

#include <string>
#include <vector>

#include "tuner/records/record.h"

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

}  // namespace tilesmith
