// One line of a tuning log as a record.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/records/record.h"

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
  template <typename Struct>
  void ReadObject(Cursor& at, Struct& into);
  template <typename Struct, size_t kField, bool kIsFirst>
  void ReadMember(Cursor& at, Struct& into);
  template <typename T>
  void ReadValue(Cursor& at, T& value);
  void ReadValue(Cursor& at, std::vector<double>& values);
  void ReadValue(Cursor& at, Isa& isa);
  void ReadValue(Cursor& at, TrialStatus& status);
  void ReadValue(Cursor& at, ConvWorkload& workload);
  void ReadValue(Cursor& at, Config& config);
  void ReadValue(Cursor& at, LayoutPair& layouts);
  void ReadValue(Cursor& at, Target& target);
  void ReadValue(Cursor& at, MeasureConditions& conditions);
  template <typename T, typename ReadNew>
  void ReadKnown(Cursor& at, std::vector<std::pair<std::string, T>>& known, T& value,
                 const ReadNew& read_new);
  const ConvWorkload& WorkloadOf(std::string_view text);

  std::vector<std::pair<std::string, Target>> targets_;
  std::map<std::string, ConvWorkload, std::less<>> workloads_;
  std::vector<std::pair<std::string, LayoutPair>> layouts_;
  size_t knobs_ = 0;  // of the last config
};

}  // namespace tilesmith
