// What is said of others who use the machine while something is measured (layouts/measure/machine_watch.h).
#pragma once

#include "layouts/measure/machine_watch.h"
#include "tools/cli/machine.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

namespace tilesmith {

// Before the first measurement: a line of warning when others use the machine now, or the host moves its
// cores. Takes 0.15 seconds. Precondition: a PinnedTeam lives; nothing of ours computes.
void WarnIfDisturbed(const DevicePtr& machine, const WorkSinks& sinks);

// "" or, from kDisturbedShare on, "41%": what a table says of a row.
Cell DisturbedCell(double share);
// The verdict at the end.
void AddDisturbance(Report& report, const Disturbance& disturbance);

}  // namespace tilesmith
