// Convolutions and whole networks beside oneDNN and ONNX Runtime: what `tilesmith bench` does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/bench_report.h"
#include "tools/bench/peer_bench.h"
#include "tools/cli/machine.h"
#include "tools/cli/progress.h"
#include "tools/cli/targets.h"
#include "tools/doctor/disturbance.h"
#include "tools/network/compiled_choice.h"
#include "tools/network/network_bench.h"
#include "tuner/precision.h"

namespace tilesmith {

struct BenchModelRequest {
  TargetOptions targets;
  DevicePtr machine;
  // That runs as ours; targets.model is what it was compiled from, "": not known.
  std::optional<ChosenNetwork> compiled = {};
  std::string plan_path = {}, log_path = {};  // schedules; without either the default ones
  bool strict = false;                        // PlanLoading::strict
  std::string against = {};                   // "best", "direct"; "": as a suite says, or best
  std::string onnxruntime = {};               // its library; "": where tools/fetch-peers puts it
  ColdOrWarm conditions = {};
  AccuracyLimits accuracy = {};
  double seconds = 0.5;        // for each convolution
  double network_seconds = 4;  // for a whole network, and again beside ONNX Runtime
  // kBf16: of a log's records, and of what is beside ours; of a CPU for a workload or suites.
  Precision precision = Precision::kF32;
};

struct BenchedModel {
  DataType type = DataType::kF32;       // of both sides' products
  DataType peak_type = DataType::kF32;  // what peak_flops is of; kI8: of convolutions of bytes
  double peak_flops = 0;                // of them
  bool cold_weights = false;            // of `rows`
  BenchView view;
  std::vector<BenchRow> rows;      // of a network or a workload
  std::vector<SuiteBench> suites;  // instead
  Plan plan;                       // of a network, and how it fared as a whole
  std::optional<NetworkBench> network;
  double read_bytes_per_second = 0;  // of memory, beside a network
  std::optional<PeerBench> peer;
  std::string peer_refusal;  // why there is none beside a network
  double geomean = 0;        // of the rows' ratios; 0 without any
  MachineWatch watch;
  bool stopped = false;  // what was measured until then is here
};

// Nothing else may run in the process meanwhile. Throws Error(kUsage) as LoadTargets does, for a plan without
// a network, for a network in bf16, and for a model and plan that a network was not compiled from;
// Error(kWrongAnswer) when a side computes something else (conv_bench.h, network_bench.h, peer_bench.h).
BenchedModel BenchModel(const BenchModelRequest& request, const WorkSinks& sinks);

// All of it, a network's or workload's table or the suites', as the command prints it.
void AddBench(Report& report, const BenchedModel& bench, const DevicePtr& machine);
// What is measured of every convolution, and what it is called.
Table BenchRowsTable(const BenchedModel& bench);
std::string BenchTitle(const BenchedModel& bench);

}  // namespace tilesmith
