// `tilesmith doctor` looks at all that timings depend on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "layouts/measure/core_placement.h"
#include "tools/cli/machine.h"

namespace tilesmith {

// The doctor's own measurements. None may run while anything else measures.
//
// Seconds of a fixed chain of dependent multiply-adds, about 0.2 ms each, repeated for `seconds` on every
// thread of the team at once; all threads' samples. The work is the same each time, so all spread is noise.
std::vector<double> FixedWorkSeconds(int threads, double seconds);

// Seconds for an empty parallel region; low quartile of many.
double ForkJoinSeconds(int threads);
// What SeePlacement sees, again and again for `seconds`.
std::vector<CorePlacement> PlacementSamples(int threads, double seconds);

// Bytes per second that the threads together read from memory, each its share of a buffer of `bytes`.
double ReadBandwidth(int threads, int64_t bytes);
// Measures the same in a buffer that no cache of the machine holds.
double MemoryReadBandwidth(const DevicePtr& machine);

struct Finding {
  std::string check;
  std::string value;
  std::string advice;  // empty when all is well
  std::vector<std::pair<std::string, double>> figures =
      {};  // what `value` says in numbers, units in the names
};

// Takes about two seconds. `usable` are the CPUs this process was given. Precondition: a PinnedTeam lives;
// nothing else measures.
std::vector<Finding> Checkup(const DevicePtr& machine, const cpu_set_t& usable);

}  // namespace tilesmith
