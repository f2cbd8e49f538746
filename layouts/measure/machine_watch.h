// Whether others use the machine while something is measured here.
//
// What a thread waits for a core that it could use the kernel counts for each; so do those of one program for
// each other, so it counts only while others compute: the CPUs are busy for longer than this process and its
// worker run. What a hypervisor gives to other guests the kernel counts as stolen time. An interval in which
// either is more than noise is disturbed: its figures tell of the neighbours as well.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace tilesmith {

struct CpuTicks {
  int64_t total = 0;
  int64_t idle = 0;
  int64_t steal = 0;  // runnable, but the hypervisor ran something else
};
CpuTicks ReadCpuTicks();
// How many CPUs were busy in between, all processes together.
double BusyCpus(const CpuTicks& before, const CpuTicks& after);

struct Disturbance {
  double seconds = 0;            // watched
  double disturbed_seconds = 0;  // in intervals that were disturbed

  double share() const { return seconds > 0 ? disturbed_seconds / seconds : 0; }
  Disturbance& operator+=(const Disturbance& other);
  Disturbance operator-(const Disturbance& other) const;
};

// Share of the time from which figures are said to be disturbed.
constexpr double kDisturbedShare = 0.1;

class MachineWatch {
 public:
  MachineWatch();
  // Ends the interval that began with construction or the last call, and adds it to the total. Counted are
  // the threads of this process and of `worker`, 0 being none, as long as they live: what one has waited
  // is forgotten when it ends.
  Disturbance EndInterval(pid_t worker = 0);
  // What went before is not counted.
  void Skip(pid_t worker = 0);
  const Disturbance& total() const { return total_; }

 private:
  struct Counters {
    double now = 0, waited = 0, ran = 0;  // seconds; the latter two of our threads
    CpuTicks cpus;
    pid_t worker = 0;
  };
  static Counters Read(pid_t worker);

  Counters last_;
  Disturbance total_;
};

}  // namespace tilesmith
