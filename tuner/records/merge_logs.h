// Logs of several runs and machines as one.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tuner/records/record_groups.h"

namespace tilesmith {

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

}  // namespace tilesmith
