// The user's database: the best of what earlier tunings on this machine found, so that known tasks cost
// nothing.
//
// It is a tuning log like any other: per workload, conditions, template and pair of layouts the best record,
// with the number of trials that its task was given (Record::task_trials). Later lines win. There is a file
// for everything that records depend on, which its name says: CPU, ISA, version of tilesmith, and a
// fingerprint of the templates' config spaces (templates/base/conv_template.h). Files of other names are
// left alone, with one exception: names used to be of the CPU and the ISA only, and what still builds in such
// a file is a start for the search, though no task counts as known by it. A file may hold anything, so each
// record is believed only if today's templates build it (tuner/records/still_builds.h). Nothing here is worth
// failing for: what cannot be read, used or written is a warning, in words.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tuner/records/record.h"

namespace tilesmith {

// "amd_epyc_9b45_avx512_0.1.0_5f2c01ab.jsonl".
std::string DatabaseFileName(const Target& target);
// What it used to be: "amd_epyc_9b45_avx512.jsonl".
std::string FormerDatabaseFileName(const Target& target);

class TuningDatabase {
 public:
  // Reads the file, and the one with the former name if that is given; one that is missing is empty.
  explicit TuningDatabase(std::string path, const std::string& former_path = "");

  // What is known of the workload on this very target (tool version included: other templates may find
  // better) under these conditions, and still builds. From the former file without its number of trials.
  std::vector<Record> Find(const ConvWorkload& workload, const Target& target,
                           const MeasureConditions& conditions);
  // Everything in it, of whatever target, whether it still builds or not.
  void ForEach(const std::function<void(const Record&)>& see) const;
  // Appends what is worth knowing of the records (Distill, for a tuner), creating folders and file. Each says
  // that its task was given at least so many trials. False when it cannot be written.
  bool Add(std::span<const Record> records, int trials);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  // One for each file of which Find found records that do not build any more: how many, and why the first.
  std::vector<std::string> WarningsOfUseless() const;

 private:
  struct Entry {
    Record record;
    bool is_former;  // of the file with the former name
  };
  struct Useless {
    int64_t records = 0;
    std::string first;  // why
  };
  void Read(const std::string& path);
  void Enter(Record record, bool is_former);
  bool IsOfUse(const Entry& entry, const Target& target);

  std::string path_, former_path_;
  std::map<std::string, std::vector<Entry>> by_task_;  // by TaskKey
  std::vector<std::string> warnings_;
  std::array<Useless, 2> useless_;  // of the file, and of the one with the former name
};

// The most trials that any of the records says its task was given.
int TrialsBehind(std::span<const Record> records);

}  // namespace tilesmith
