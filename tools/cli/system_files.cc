#include "tools/cli/system_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The first number of a list such as "0,4" or "0-1".
int FirstOfList(const std::string& list) { return list.empty() ? -1 : std::atoi(list.c_str()); }

}  // namespace

std::string CpuGovernor() { return FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); }

std::string TransparentHugePages() {
  const std::string line =
      FirstLine("/sys/kernel/mm/transparent_hugepage/enabled");  // "always [madvise] never"
  const size_t open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos) return "";
  return line.substr(open + 1, close - open - 1);
}

double LoadAverage() {
  double load = 0;
  std::istringstream(FirstLine("/proc/loadavg")) >> load;
  return load;
}

int CoresSharedBy(const cpu_set_t& usable) {
  int shared = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const int first = FirstOfList(
        FirstLine(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu)));
    if (first >= 0 && first < cpu && CPU_ISSET(first, &usable)) ++shared;
  }
  return shared;
}

int64_t MemoryBytes() {
  int64_t bytes = (Checked(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)).value();
  int64_t granted = 0;
  if (std::istringstream(FirstLine("/sys/fs/cgroup/memory.max")) >> granted) bytes = std::min(bytes, granted);
  return bytes;
}

int64_t PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    int64_t kilobytes = 0;
    std::istringstream(line.substr(6)) >> kilobytes;  // "   186752 kB"
    return kilobytes << 10;
  }
  return 0;
}

std::optional<std::string> FindProgram(std::string_view name) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    std::string path = fmt::format("{}/{}", rest.substr(0, end), name);
    if (access(path.c_str(), X_OK) == 0) return path;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

}  // namespace tilesmith
