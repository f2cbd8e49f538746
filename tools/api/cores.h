// Which cores belong together, by what Linux says in /sys.
#pragma once

#include <string>
#include <vector>

namespace tilesmith {

// "0-3,8,10-11": the kernel's lists of CPUs. Throws Error(kEnvironment) quoting what is no such list.
std::vector<int> ParseCpuList(const std::string& text);

}  // namespace tilesmith
