// What `tilesmith doctor` looks at.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/cli/machine.h"

namespace tilesmith {

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
