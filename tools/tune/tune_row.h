// One task as `tilesmith tune` sees it, and how it becomes a task of the network tuner.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tools/bench/conv_bench.h"
#include "tools/cli/tasks.h"
#include "tools/doctor/disturbance.h"
#include "tuner/network_tuner.h"

namespace tilesmith {

struct TuneRow {
  ConvTask task;
  bool cold_weights = false;
  std::optional<OneDnnSide> baseline;  // oneDNN's fastest; none where it cannot do the task
  double baseline_disturbed_share = 0;
  bool known = false;            // from the database: nothing is measured
  Disturbance disturbance = {};  // while it was searched
  TuneResult result;
  DataType factors = DataType::kF32;  // of its templates
  bool quantized = false;             // of the network in bytes, an alternative to floats
};

// What a gain in each task is worth. Of a network: how often it contains the task. Otherwise every task
// counts alike, whatever its size: the inverse of oneDNN's time, or of the work where oneDNN cannot do it.
std::vector<double> WeightsOf(std::span<const TuneRow> rows, bool is_network);

// Points each fused task, and each in another type than f32, at the tasks it is an alternative to (of one in
// bytes what computes the same before activations and sums), where
// those are among the rows.
void LinkAlternatives(std::span<const TuneRow> rows, std::vector<NetworkTask>& tasks);

// oneDNN's time for the network: every task in f32 that is not fused, of a network that is tuned in bytes
// alone every such one of those, as often as it appears. 0 where some is missing.
double OneDnnSeconds(std::span<const TuneRow> rows);

}  // namespace tilesmith
