// The table a tuning ends with.
#pragma once

#include <span>

#include "tools/cli/report.h"
#include "tools/tune/tune_row.h"

namespace tilesmith {

void AddTuningTable(Report& report, std::span<const TuneRow> rows);
// The network's time beside oneDNN's; nothing where either is not known.
void AddNetworkTotal(Report& report, std::span<const TuneRow> rows, double network_seconds);

}  // namespace tilesmith
