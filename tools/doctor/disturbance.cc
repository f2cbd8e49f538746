#include "tools/doctor/disturbance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <thread>
#include <vector>

#include "layouts/measure/quantile.h"
#include "tools/doctor/checkup.h"

namespace tilesmith {

void WarnIfDisturbed(const DevicePtr& machine, const WorkSinks& sinks) {
  constexpr double kBusy = 0.15;  // of one CPU
  constexpr double kPlacementSeconds = 0.05, kStill = 1.5;
  constexpr std::chrono::milliseconds kIdle{100};
  std::vector<std::string> reasons;
  const CpuTicks before = ReadCpuTicks();
  std::this_thread::sleep_for(kIdle);
  const double busy = BusyCpus(before, ReadCpuTicks());
  if (busy > kBusy) reasons.push_back(fmt::format("other programs use {:.1f} CPUs", busy));
  if (machine->threads() > 1) {
    std::vector<double> barriers, arithmetic;
    for (const CorePlacement& placement : PlacementSamples(machine->threads(), kPlacementSeconds)) {
      barriers.push_back(placement.barrier_seconds);
      arithmetic.push_back(placement.arithmetic_seconds);
    }
    const auto varies = [&](const std::vector<double>& seconds) {
      return Quantile(seconds, 0.9) > kStill * Quantile(seconds, 0.1);
    };
    if (varies(arithmetic)) {
      reasons.emplace_back("the cores are shared at times");
    } else if (varies(barriers)) {
      reasons.emplace_back("the host moves the cores");
    }
  }
  if (reasons.empty()) return;
  sinks.Warn(fmt::format("the machine is disturbed: {} (see tilesmith doctor)", fmt::join(reasons, "; ")));
}

Cell DisturbedCell(double share) {
  return {share, share >= kDisturbedShare ? fmt::format("{:.0f}%", share * 100) : ""};
}

void AddDisturbance(Report& report, const Disturbance& disturbance) {
  const double share = disturbance.share();
  report.Fact("disturbed_share", "machine",
              {share, disturbance.seconds <= 0 ? "-"
                      : share >= kDisturbedShare
                          ? fmt::format("disturbed: {:.0f}% of the time; measure again", share * 100)
                          : "quiet meanwhile"});
}

}  // namespace tilesmith
