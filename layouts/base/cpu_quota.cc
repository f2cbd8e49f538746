#include "layouts/base/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace tilesmith {
namespace {

std::optional<double> Ratio(double quota, double period) {
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return quota / period;
}

// "max 100000" or "150000 100000".
std::optional<double> QuotaOfVersion2(const std::string& group) {
  std::ifstream file(group + "/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period)) return std::nullopt;
  return Ratio(quota, period);
}

std::optional<double> QuotaOfVersion1(const std::string& group) {
  std::ifstream quota_file(group + "/cpu.cfs_quota_us"), period_file(group + "/cpu.cfs_period_us");
  double quota = 0, period = 0;  // a quota of -1 is none
  if (!(quota_file >> quota && period_file >> period)) return std::nullopt;
  return Ratio(quota, period);
}

bool Names(std::string_view controllers, std::string_view wanted) {
  std::istringstream list{std::string(controllers)};
  for (std::string name; std::getline(list, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

}  // namespace

std::optional<double> CpuQuota(const std::string& process_file, const std::string& mount) {
  std::optional<double> least;
  std::ifstream file(process_file);
  // "0::/group" for version 2, "1:cpu,cpuacct:/group" for version 1.
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !Names(controllers, "cpu")) continue;
    const std::string root = controllers.empty() ? mount : mount + "/cpu";
    for (std::string group = line.substr(second + 1);; group.resize(group.find_last_of('/'))) {
      const auto quota = controllers.empty() ? QuotaOfVersion2(root + group) : QuotaOfVersion1(root + group);
      if (quota) least = std::min(least.value_or(*quota), *quota);
      if (group.find('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace tilesmith
