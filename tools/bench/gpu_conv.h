// One convolution on a GPU, ours beside cuDNN's: the same data, each side in the layout it likes, weights
// packed beforehand, both timed by the GPU's events.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layouts/measure/duel.h"
#include "templates/base/workload_data.h"
#include "tools/bench/our_conv.h"

namespace tilesmith {

// What a workload's kernels read and write, in the device's memory: once in each layout that is asked for.
class GpuTensors {
 public:
  GpuTensors(const ConvWorkload& workload, const DevicePtr& machine);

  const ConvWeights& weights() const { return operands_.weights; }
  // The input, and behind it the residual, which lies in the output.
  std::vector<InputView> Inputs(const LayoutPair& layouts);
  OutputView Output(const Layout& layout);
  void SetResidual(const Layout& layout);
  Tensor PlainOutput(const Layout& layout);
  void* Scratch(int64_t bytes);

 private:
  const ConvWorkload workload_;
  const DevicePtr machine_;
  const WorkloadData data_;
  const WorkloadOperands operands_ = data_.operands();
  std::map<Layout, DeviceMemory> inputs_, outputs_;
  DeviceMemory scratch_;
};

// A kernel on tensors that outlive it.
class GpuConv {
 public:
  // Throws as Device::BuildConv and RequireSupport.
  GpuConv(const ConvWorkload& workload, const Schedule& schedule, GpuTensors& tensors,
          const DevicePtr& machine);

  // How long one run takes; cold: inputs and weights come from memory.
  double Seconds(bool cold);
  // Runs it once on the residual as given; the result is plain.
  Tensor Answer();
  const LayoutPair& layouts() const { return layouts_; }

 private:
  DevicePtr machine_;
  LayoutPair layouts_;
  std::unique_ptr<ConvKernel> kernel_;
  GpuTensors& tensors_;
  std::vector<InputView> inputs_;
};

// Which of cuDNN's ways to compute a workload: those in one layout where `block` says which, and with tensors
// of the type (its knobs).
struct CudnnWays {
  DataType type = DataType::kF32;
  std::optional<int64_t> block = {};
};
// The fastest of them.
struct CudnnChoice {
  Schedule schedule;
  LayoutPair layouts;
  double seconds = 0;
  std::string text;  // "IMPLICIT_PRECOMP_GEMM, fused"
};
// All of its algorithms are timed, on tensors of the workload's shapes. None where it has none for the
// workload, *refusal saying why.
std::optional<CudnnChoice> FastestCudnn(const ConvWorkload& workload, GpuTensors& tensors,
                                        const DevicePtr& machine, bool cold, const CudnnWays& ways,
                                        std::string* refusal);

struct GpuDuel {
  double seconds = 0;  // for both sides together, after cuDNN's algorithms are timed
  bool cold = false;
  DataType type = DataType::kF32;  // of cuDNN's tensors
  const StopFlag* stop = nullptr;
};

struct GpuConvBench {
  ConvWorkload workload;
  Schedule schedule;
  LayoutPair layouts;                // ours
  double seconds = 0;                // ours
  std::optional<CudnnChoice> cudnn;  // with its seconds in turns with ours
  PairedRatio ratio;                 // its seconds / ours
  std::string refusal;               // why there is none
  // cuDNN fuses no activation but ReLU: where the workload has another, it computes that instead.
  bool with_relu = false;
};

// By turns. Without `beside_cudnn` ours alone. Throws Error(kWrongAnswer) when the answers differ by more
// than 1e-3 of the largest output, 1e-2 where products may be rounded to TF32, 3e-2 beside tensors of bf16.
GpuConvBench BenchGpuConv(const ConvWorkload& workload, const Schedule& schedule, const DevicePtr& machine,
                          const GpuDuel& duel, bool beside_cudnn);

}  // namespace tilesmith
