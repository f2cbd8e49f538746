// A machine's side of a farm.
#pragma once

#include <functional>
#include <string>

#include "tuner/farm/farm.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

struct FarmService {
  FarmAddress address;
  FarmTiming timing;
  // Who serves: id, class, host and machine. The rest of it is found out.
  FarmWorker worker;
  // What happens, a line each: what is refused, what was lost. May be empty; called by the serving thread.
  std::function<void(const std::string&)> on_event = {};
  const StopFlag* stop = nullptr;
};

// Measures one trial at a time, the worker's own first, until stopped: the trial that runs is finished, what
// waits is given back. A second thread, with a connection of its own, announces the worker at every heartbeat
// and keeps what it holds. An answer is given again until Redis takes it, whatever that takes.
//
// `measurer` has a capacity of 1. Throws Error(kEnvironment) when Redis is out of reach at the beginning,
// refuses, or when the class is of other machines; afterwards Redis may go and come back, even empty.
void ServeFarm(const FarmService& service, Measurer& measurer);

}  // namespace tilesmith
