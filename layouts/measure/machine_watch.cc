#include "layouts/measure/machine_watch.h"

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "layouts/measure/clock.h"

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

// How long a process's threads have run, those that have ended included; 0 where it is gone.
double RanSeconds(pid_t process) {
  clockid_t clock = 0;
  timespec ran = {};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &ran) != 0) return 0;
  return static_cast<double>(ran.tv_sec) + static_cast<double>(ran.tv_nsec) * 1e-9;
}

}  // namespace

CpuTicks ReadCpuTicks() {
  std::ifstream line("/proc/stat");  // "cpu user nice system idle iowait irq softirq steal ..."
  std::string label;
  line >> label;
  CpuTicks ticks;
  int64_t value = 0;
  for (int field = 0; field < 8 && line >> value; ++field) {
    ticks.total += value;
    if (field == 3 || field == 4) ticks.idle += value;
    if (field == 7) ticks.steal = value;
  }
  return ticks;
}

double BusyCpus(const CpuTicks& before, const CpuTicks& after) {
  const auto total = static_cast<double>(after.total - before.total);
  const double busy = total - static_cast<double>(after.idle - before.idle);
  return total > 0 ? busy / total * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)) : 0;
}

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

}  // namespace tilesmith
