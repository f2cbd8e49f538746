#include "tools/doctor/machine_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "tools/cli/system_files.h"
#include "tools/doctor/checkup.h"

namespace tilesmith {
namespace {

// Seconds that a process's threads could have run and did not. 0 where the kernel does not count them.
double WaitedSeconds(const std::string& process) {
  namespace fs = std::filesystem;
  double waited = 0;
  std::error_code error;
  for (auto at = fs::directory_iterator("/proc/" + process + "/task", error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    std::ifstream file(at->path() / "schedstat");
    double ran = 0, delayed = 0;  // nanoseconds
    if (file >> ran >> delayed) waited += delayed * 1e-9;
  }
  return waited;
}

// That a process's threads have run, those that have ended included. 0 where it is gone.
double RanSeconds(pid_t process) {
  clockid_t clock = 0;
  timespec ran = {};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &ran) != 0) return 0;
  return static_cast<double>(ran.tv_sec) + static_cast<double>(ran.tv_nsec) * 1e-9;
}

}  // namespace

Disturbance& Disturbance::operator+=(const Disturbance& other) {
  seconds += other.seconds;
  disturbed_seconds += other.disturbed_seconds;
  return *this;
}

Disturbance Disturbance::operator-(const Disturbance& other) const {
  return {seconds - other.seconds, disturbed_seconds - other.disturbed_seconds};
}

MachineWatch::MachineWatch() : last_(Read(0)) {}

MachineWatch::Counters MachineWatch::Read(pid_t worker) {
  const double ran = RanSeconds(0) + (worker > 0 ? RanSeconds(worker) : 0);
  const double waited = WaitedSeconds("self") + (worker > 0 ? WaitedSeconds(std::to_string(worker)) : 0);
  return {NowSeconds(), waited, ran, ReadCpuTicks(), worker};
}

Disturbance MachineWatch::EndInterval(pid_t worker) {
  constexpr double kWaited = 0.02, kStolen = 0.01;  // shares of the time that are noise
  // Others' CPUs that are noise, and how far the kernel's ticks may be off, in seconds.
  constexpr double kOthers = 0.05, kTicks = 0.03;
  const Counters before = last_;
  last_ = Read(worker);
  const double seconds = last_.now - before.now;
  const bool same_threads = last_.worker == before.worker;
  const double others = BusyCpus(before.cpus, last_.cpus) * seconds - (last_.ran - before.ran);
  const bool waited =
      same_threads && last_.waited - before.waited > kWaited * seconds && others > kOthers * seconds + kTicks;
  const bool stolen = static_cast<double>(last_.cpus.steal - before.cpus.steal) >
                      kStolen * static_cast<double>(last_.cpus.total - before.cpus.total);
  const Disturbance interval = {seconds, waited || stolen ? seconds : 0};
  total_ += interval;
  return interval;
}

void MachineWatch::Skip(pid_t worker) { last_ = Read(worker); }

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
