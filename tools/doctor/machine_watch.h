// Whether others use the machine while something is measured here.
//
// What a thread waits for a core that it could use the kernel counts for each; so do those of one program for
// each other, so it counts only while others compute: the CPUs are busy for longer than this process and its
// worker run. What a hypervisor gives to other guests the kernel counts as stolen time. An interval in which
// either is more than noise is disturbed: its figures tell of the neighbours as well.
#pragma once

#include <sys/types.h>

#include <string>

#include "tools/cli/machine.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/system_files.h"

namespace tilesmith {

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

// Before the first measurement: a line of warning when others use the machine now, or the host moves its
// cores. Takes 0.15 seconds. Precondition: a PinnedTeam lives; nothing of ours computes.
void WarnIfDisturbed(const DevicePtr& machine, const WorkSinks& sinks);

// "" or, from kDisturbedShare on, "41%": what a table says of a row.
Cell DisturbedCell(double share);
// The verdict at the end.
void AddDisturbance(Report& report, const Disturbance& disturbance);

}  // namespace tilesmith
