// One line of a tuning log as a record.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/record.h"

namespace tilesmith {

// "" when the line is a record, or why it is not. The record is then left in any state.
std::string ParseRecordLine(std::string_view line, Record& record);

// The same, several times as fast for lines as LogWriter writes them: members in its order, no white space,
// no escapes. Whatever deviates goes through ParseRecordLine. Remembers the targets and workloads it met, of
// which a log has few. One thread at a time.
class RecordLineReader {
 public:
  std::string Read(std::string_view line, Record& record) {
    return ReadCanonical(line, record) ? std::string() : ParseRecordLine(line, record);
  }
  // False for any other line, which says nothing about whether it is a record.
  bool ReadCanonical(std::string_view line, Record& record);

 private:
  class Cursor;
  bool ReadMembers(Cursor& at, Record& record);
  void ReadConfig(Cursor& at, Config& config);
  void ReadTarget(Cursor& at, Target& target);
  void ReadLayouts(Cursor& at, LayoutPair& layouts);
  const ConvWorkload& WorkloadOf(std::string_view text);

  std::vector<std::pair<std::string, Target>> targets_;
  std::map<std::string, ConvWorkload, std::less<>> workloads_;
  std::vector<std::pair<std::string, LayoutPair>> layouts_;
  size_t knobs_ = 0;  // of the last config
};

}  // namespace tilesmith
