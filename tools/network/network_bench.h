// A whole network, ours beside a chain of oneDNN primitives, alternating in one process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph_tuner/planner/network_run.h"
#include "layouts/measure/duel.h"
#include "tools/cli/report.h"
#include "tools/onednn/onednn_network.h"

namespace tilesmith {

// Why what needs the model that a compiled network comes from is left out.
constexpr const char* kUnknownModel = "the model is not known (--model)";

struct NetworkBench {
  double seconds = 0;         // ours
  double onednn_seconds = 0;  // of its faster variant; 0 when there is none
  std::string onednn_variant;
  double onednn_difference = 0;      // of its outputs, largest of all, relative to the output's largest value
  bool onednn_may_saturate = false;  // its sums, on this CPU (MaySaturate)
  PairedRatio ratio;                 // its seconds / ours
  double untuned_seconds = 0;        // ours without tuning; 0 when it was not run
  PairedRatio untuned_ratio;         // those seconds / ours
  // Per run, of each turn in their order.
  std::vector<double> sample_seconds, onednn_sample_seconds;
  std::vector<std::string> guests;  // types of the ops in its chain that kernels of ours compute
  CorePlacement placement;          // in the rounds compared
  std::string refusal;              // why there is no chain
  std::vector<StepProfile> steps;
  std::string plan_hash = {};  // of a compiled network whose plan is not known
  double disturbed_share = 0;  // of the time, in which others had the cores
};

// The network as planned, and where it is wanted as it runs without tuning.
struct OurNetworks {
  NetworkRun& run;
  NetworkRun* untuned = nullptr;
};

// oneDNN runs twice: with its automatic choice of algorithms, and with `fastest`, the choice that won layer
// by layer (which may lose in context); and, where our plan stores some tensors in bf16 and the CPU has
// instructions for it, in bf16 wherever it can. Both sides begin and end in the plan's end layouts. Throws
// Error(kWrongAnswer) when ours and oneDNN's automatic chain differ by more than 1e-3 of the largest output,
// and by more than the network makes of rounding. graph: null where nobody knows what ours was compiled from,
// which runs alone then.
NetworkBench BenchNetwork(const Graph* graph, const OurNetworks& ours, const OneDnnChoice& fastest,
                          const Target& cpu, const DuelOptions& options);

// How far another library's outputs are from ours, and whether its sums may be why (MaySaturate).
Cell DifferenceCell(double difference, bool may_saturate);

// The network's lines of the report, the share of its other layers than convs among them.
void AddNetworkBench(Report& report, const Plan& plan, const NetworkBench& bench);

}  // namespace tilesmith
