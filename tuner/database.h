// The user's database: the best of what earlier tunings on this machine found, so that known tasks cost
// nothing.
//
// It is a tuning log like any other: per workload, conditions, template and pair of layouts the best record,
// with the number of trials that its task was given (Record::task_trials). One file per target; later lines
// win. Nothing here is worth failing for: what cannot be read or written is a warning, in words.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tuner/record.h"

namespace tilesmith {

// "amd_epyc_9b45_avx512.jsonl".
std::string DatabaseFileName(const Target& target);

// The best full record of each template and pair of layouts, each saying what `trials` its task was given.
std::vector<Record> Distilled(std::span<const Record> records, int trials);

class TuningDatabase {
 public:
  // Reads the file; one that is missing is empty.
  explicit TuningDatabase(std::string path);

  // What is known of the workload on this very target (tool version included: other templates may find
  // better) under these conditions.
  std::vector<Record> Find(const ConvWorkload& workload, const Target& target,
                           const MeasureConditions& conditions) const;
  // Appends the records, creating folders and file; false when it cannot be written.
  bool Add(std::span<const Record> records);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::string path_;
  std::map<std::string, std::vector<Record>> by_workload_;
  std::vector<std::string> warnings_;
};

// The most trials that any of the records says its task was given.
int TrialsBehind(std::span<const Record> records);

}  // namespace tilesmith
