// What Linux says about the machine in /proc and /sys. Where a file is missing the answer is "nothing known".
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilesmith {

std::string CpuGovernor();           // "performance"; "" when not visible
std::string TransparentHugePages();  // "always", "madvise", "never"; ""
double LoadAverage();                // of the last minute; 0 when unknown
// How many of the CPUs share their core with another of them that has a lower number.
int CoresSharedBy(const cpu_set_t& usable);

// What this process may use at most: the machine's memory, or what the control group grants of it.
int64_t MemoryBytes();
// The most memory that this process has had in use, in bytes; 0 when unknown.
int64_t PeakResidentBytes();

// The first executable of that name in PATH.
std::optional<std::string> FindProgram(std::string_view name);

}  // namespace tilesmith
