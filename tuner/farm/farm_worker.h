// A machine's side of a farm.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tuner/farm/farm.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

// What becomes of a job: a text and files, by name.
struct FarmJobResult {
  std::string text;
  std::map<std::string, std::string> files = {};
};

// A job on the worker that has it. Its functions throw as Redis::Call does, what else they throw goes
// through.
struct FarmJobDesk {
  const FarmJob& job;
  const StopFlag* stop;
  double report_seconds;                                     // how often to report
  std::function<std::string(const std::string& name)> file;  // one of the job's
  // What there is so far. False when nobody wants it any more.
  std::function<bool(const FarmJobResult&)> report;
};

// Does a job, on the serving thread. nullopt when nobody wants it any more. Throws Error(kUsage) for what it
// does not do, Error(kInterrupted) when it is stopped: then somebody else begins anew.
using FarmJobFunction = std::function<std::optional<FarmJobResult>(const FarmJobDesk&)>;

struct FarmService {
  FarmAddress address;
  FarmTiming timing;
  // Who serves: id, class, host and machine. The rest of it is found out.
  FarmWorker worker;
  // What happens, a line each: what is refused, what was lost. May be empty; called by the serving thread.
  std::function<void(const std::string&)> on_event = {};
  const StopFlag* stop = nullptr;
  std::map<std::string, FarmJobFunction> jobs = {};  // by kind
};

// Measures one trial at a time, the worker's own first, until stopped: the trial that runs is finished, what
// waits is given back, and so is a job. A second thread, with a connection of its own, announces the worker
// at every heartbeat and keeps what it holds. An answer is given again until Redis takes it, whatever that
// takes.
//
// `measurer` has a capacity of 1. Throws Error(kEnvironment) when Redis is out of reach at the beginning,
// refuses, or when the class is of other machines; afterwards Redis may go and come back, even empty.
void ServeFarm(const FarmService& service, Measurer& measurer);

}  // namespace tilesmith
