// Convolutions and whole networks on a GPU beside cuDNN: what `tilesmith bench --target cuda` does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/bench_model.h"
#include "tools/bench/gpu_conv.h"

namespace tilesmith {

struct GpuBenchRow {
  ConvTask task;
  GpuConvBench bench;
};

// A chain in which cuDNN computes the convolutions, in one layout, each by its fastest algorithm in it; the
// rest is ours, fused as in our own. Either is recorded in a CUDA graph.
struct GpuNetworkBench {
  double seconds = 0;        // ours
  double cudnn_seconds = 0;  // of the faster layout; 0 where there is none
  std::string cudnn_layout;  // "NHWC"
  PairedRatio ratio;         // its seconds / ours
  int64_t guests = 0;        // convolutions of the chain that cuDNN has not, and ours compute
};

struct BenchedGpu {
  std::string cudnn;     // its version, "" where there is none
  std::string refusal;   // why
  bool cold = false;     // inputs and weights of the rows
  bool in_bf16 = false;  // cuDNN's tensors, and ours where there is a template for that
  std::vector<GpuBenchRow> rows;
  double geomean = 0;  // of the rows that cuDNN has; 0 without any
  Plan plan;           // of a network, and how it fared as a whole
  std::optional<GpuNetworkBench> network;
  bool stopped = false;  // what was measured until then is here
};

// As BenchModel, on a machine that is a GPU. Both sides multiply floats as floats, or both in TF32 where the
// machine's target says so, or both in bf16 with that precision. Errors as BenchModel's and BenchGpuConv's.
BenchedGpu BenchGpu(const BenchModelRequest& request, const WorkSinks& sinks);

void AddGpuBench(Report& report, const BenchedGpu& bench, const DevicePtr& machine);
Table GpuBenchTable(const BenchedGpu& bench);

}  // namespace tilesmith
