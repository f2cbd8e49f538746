#include "tools/api/cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/core_placement.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {

std::vector<int> ParseCpuList(const std::string& text) {
  const auto fail = [&] {
    throw Error(ErrorCode::kEnvironment, fmt::format("\"{}\" is no list of CPUs", text));
  };
  std::vector<int> cpus;
  const char* at = text.data();
  const char* end = at + text.find_last_not_of(" \n") + 1;
  const auto number = [&] {
    int value = 0;
    const auto [after, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0) fail();
    at = after;
    return value;
  };
  while (at < end) {
    const int first = number();
    int last = first;
    if (at < end && *at == '-') {
      ++at;
      last = number();
    }
    if (last < first || last >= CPU_SETSIZE) fail();
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at < end && *at != ',') fail();
    if (at < end) ++at;
  }
  return cpus;
}

std::vector<int> CoresOfNumaNode(int node) {
  const std::string path = fmt::format("/sys/devices/system/node/node{}/cpulist", node);
  if (node < 0 || !std::filesystem::exists(path))
    throw Error(ErrorCode::kUsage, fmt::format("this machine has no NUMA node {}", node));
  const std::vector<int> of_node = ParseCpuList(ReadTextFile(path));
  std::vector<int> cores;
  std::ranges::copy_if(ProcessCores(), std::back_inserter(cores),
                       [&](int core) { return std::ranges::find(of_node, core) != of_node.end(); });
  return cores;
}

double CoreDistance(int threads) {
  if (threads < 1) throw Error(ErrorCode::kUsage, fmt::format("threads must be at least 1, got {}", threads));
  return SeePlacement(threads).barrier_seconds;
}

}  // namespace tilesmith
