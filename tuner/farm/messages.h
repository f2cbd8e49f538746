// What lies in a farm's streams: trials that a coordinator asks for and answers that workers give, in fields
// that carry messages of tuner/measure/protocol.h; and what a worker tells of itself.
//
// Whoever reaches the Redis can write anything there. Readers take what is right and refuse the rest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "layouts/measure/core_placement.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

constexpr int64_t kMaxFarmFileBytes = int64_t{2} << 30;  // of all files of a job

// The fields of an entry of a stream, or of a hash.
using FarmFields = std::map<std::string, std::string>;

// One that its coordinator waits for. `session` and `trial` are texts of a SessionMessage and a TrialMessage.
struct FarmTrial {
  std::string id, coordinator;
  std::string session, trial;
};

// `ready` and `answer` are texts of a ReadyMessage, which says what machine it was, and of a ResultMessage or
// an ErrorMessage.
struct FarmAnswer {
  std::string id, worker;
  std::string ready, answer;
};

// Work that is no trial, as a whole, of a kind that both sides know (FarmService::jobs). `text` says what is
// to be done; files lie beside the streams (Farm::PutFile), by name, with their bytes.
struct FarmJob {
  std::string id, coordinator, kind;
  Target target;  // what machine it is for
  std::string text;
  std::map<std::string, int64_t> files = {};
};

// What a worker tells of a job, again and again, at last how it ended. Its files are called
// ReportFile(NAME, report).
struct FarmJobReport {
  std::string id, worker;
  int64_t number = 0;  // of the worker's reports on the job
  bool last = false;
  std::string refused = {};  // why it was not done, or ""
  std::string text = {};
  std::map<std::string, int64_t> files = {};
};
std::string ReportFile(const std::string& name, const FarmJobReport& report);

// A worker as `tilesmith worker --list` shows it.
struct FarmWorker {
  std::string id, class_name, host;
  Target target;
  double peak_flops = 0;  // MeasureFmaPeak of all its cores; 0: unknown
  CorePlacement cores;    // how far they are apart
  std::string doing;      // "idle", or what it measures
  int64_t trials = 0, failures = 0;
  int64_t refused = 0;  // messages that were none, or asked for what it does not do
  double trials_per_second = 0;
  // By whoever lists it, not by its own word.
  bool alive = false;
  double silent_seconds = 0;  // since it was last heard of
};

FarmFields ToFields(const FarmTrial& trial);
FarmFields ToFields(const FarmAnswer& answer);
FarmFields ToFields(const FarmJob& job);
FarmFields ToFields(const FarmJobReport& report);
FarmFields ToFields(const FarmWorker& worker);
// Whether the fields are a job's rather than a trial's.
bool IsJob(const FarmFields& fields);
// Throw Error(kUsage) naming the field that is missing, too long, or wrong.
FarmTrial FarmTrialFrom(const FarmFields& fields);
FarmAnswer FarmAnswerFrom(const FarmFields& fields);
FarmJob FarmJobFrom(const FarmFields& fields);
FarmJobReport FarmJobReportFrom(const FarmFields& fields);
FarmWorker FarmWorkerFrom(const std::string& id, const FarmFields& fields);

// Tells apart by workload, config, conditions, version, how often the same was asked for before, and all else
// that a trial's result depends on: 16 hexadecimal digits.
std::string FarmTrialId(const MeasureSession& session, const TrialRequest& request, int repetition);

// Why a worker on this machine does not take the session, or "": another machine or version, more threads
// than cores, limits beyond what anyone would ask for.
std::string WhyRefused(const MeasureSession& session, const Target& own);

// Letters, digits and ".-_", 1 to 64 of them: what classes, workers and coordinators are called. "all" is not
// one's name.
bool IsFarmName(std::string_view name);
// A class of equal machines by default: "amd-epyc-9r14-avx512".
std::string DefaultClass(const Target& target);

}  // namespace tilesmith
