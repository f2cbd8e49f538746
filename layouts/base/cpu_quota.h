// How many cores' worth of time a control group leaves this process, which its affinity mask does not tell.
#pragma once

#include <optional>
#include <string>

namespace tilesmith {

// The least quota of the process's group and those around it, in cores: version 2's cpu.max and version 1's
// cpu.cfs_quota_us. None where nothing limits it. `process_file` says which group that is, as
// /proc/self/cgroup does, `mount` is where groups are seen, as /sys/fs/cgroup. A file that is missing or
// makes no sense limits nothing. Source: kernel.org, cgroup-v2.rst and sched-bwc.rst.
std::optional<double> CpuQuota(const std::string& process_file = "/proc/self/cgroup",
                               const std::string& mount = "/sys/fs/cgroup");

}  // namespace tilesmith
