// The executor: a graph and a plan, turned into something that runs.
//
// Building packs weights, emits kernels and plans memory once (liveness, in-place, concat slices). Running is
// one parallel region with a light barrier between nodes, and allocates nothing. Several executors may share
// what was built (compiled_network.h); each has activations and threads of its own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "layouts/base/stop_flag.h"
#include "layouts/tensor.h"
#include "ops/graph/graph.h"
#include "templates/device/device.h"

namespace tilesmith {

// What a profile says of a step that is computed in a region (regions.h).
struct StepRegion {
  int number = 0;  // in the plan; 0 for none
  // Of an image: what threads compute, which is more where their rows meet, and those of the result.
  int64_t computed_rows = 0, result_rows = 0;
};

// One executed step: a node, or a layout transform.
struct StepProfile {
  std::string name;     // the node's name, of two that are fused "bn1>conv2", or "tensor: NCHW -> NCHW16c"
  std::string kind;     // "direct", "transform", "MaxPool", "Relu (reference)", ...
  std::string layouts;  // "NCHW16c -> NCHW32c"
  double seconds = 0;   // low quantile over the profiled runs, in context
  double predicted_seconds = 0;
  double repeated_seconds = 0;  // likewise, right after itself (Executor::RepeatSteps); 0: was not
  // Which entry of the plan it is: that of a node (of two that are fused, the conv's), or of a conversion of
  // the tensor that the node produces, by its canonical layouts (ConversionOf, layout_forms.h).
  std::string node;
  std::optional<LayoutPair> conversion = {};
  // Not of the copy of a graph output that lies elsewhere, a graph input say, or a view of another output:
  // plans do not charge it.
  bool planned = true;
  int64_t packed_weight_bytes = 0;  // of convolutions
  double crossed_bytes = 0;         // read by another thread than the one that wrote them (CrossedBytes)
  StepRegion region = {};
};

// A tensor that a step reads or writes.
struct StepTensor {
  Graph::NodeId node = 0;  // whose output it is
  Shape shape;
  Layout layout;
};

// A step and the memory it works on, which lies in the executor or is the caller's.
struct BoundStep {
  std::string name, kind;  // as in StepProfile
  Graph::NodeId node = 0;
  bool computes = false;  // the node; else it only moves that node's output
  std::vector<StepTensor> inputs;
  std::span<const InputView> input_memory;  // of each, valid as long as the executor
  StepTensor output;
  OutputView output_memory;
};

struct CompiledNetwork;

// Memory for the activations of executors on one device that never run at the same time: of a network for
// several sizes of its inputs, say. What a run leaves there, the next one of another executor destroys.
class SharedArena {
 public:
  SharedArena() = default;
  // Begins with this.
  explicit SharedArena(DeviceMemory memory) : memory_(std::move(memory)) {}
  // At least so many bytes, the same ones as before as long as these are enough.
  DeviceMemory AtLeast(size_t bytes, const Device& device);

 private:
  DeviceMemory memory_;
};

class Executor {
 public:
  // Preconditions: plan is for this graph (CheckPlan, plan_file.h) and for the device's target. A graph that
  // is moved here lets go of weights that are packed (CompileNetwork). Once `stop` is set, building stops
  // between two kernels and running at the next stage of a step, with Error(kInterrupted); the outputs are
  // undefined then. It may be null, and outlives the executor.
  Executor(Graph graph, const Plan& plan, DevicePtr device, const StopFlag* stop = nullptr);
  explicit Executor(std::shared_ptr<const CompiledNetwork> network, const StopFlag* stop = nullptr,
                    SharedArena* arena = nullptr);
  ~Executor();
  Executor(Executor&&) noexcept;

  // Inputs and outputs in the graph's order, in the layouts of plan.ends, preallocated; shapes and layouts
  // are checked,
  // types included. Not thread-safe: one run at a time per executor.
  void Run(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs);
  // The same for memory of these shapes and layouts, padding of inputs zero. Preconditions: aligned to 64
  // bytes, no output the same as another argument.
  void Run(std::span<const void* const> inputs, std::span<void* const> outputs);

  // Once more on the tensors of the last run, by all threads, on a device of its own memory on what was
  // brought there then; the outputs stay there. What is computed lasts as long as this does.
  void RunAgain();

  // Runs `runs` times with a clock read by thread 0 around every step.
  std::vector<StepProfile> Profile(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs,
                                   int runs);
  std::vector<StepProfile> Profile(std::span<const void* const> inputs, std::span<void* const> outputs,
                                   int runs);

  // Profile, and `repeats` runs of the network in which every step runs once more than needed, right after
  // itself: with its weights and inputs where the caches have room for them, and each core reading what it
  // has read before. What a step takes longer in its place it loses to memory and to the other cores' caches.
  // A step that writes over what it reads does not run again.
  // Leaves undefined outputs.
  std::vector<StepProfile> RepeatSteps(std::span<const Tensor* const> inputs,
                                       std::span<Tensor* const> outputs, int runs, int repeats);

  // For who looks at every step, of a network without regions: all of them in their order, bound to these
  // tensors. RunStep then runs one, on whatever its inputs hold by then. A run with other tensors binds the
  // steps to those. The memory is the device's.
  std::vector<BoundStep> BindSteps(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs);
  void RunStep(size_t index);
  // Brings what the steps have written to the caller's outputs, where those are not the device's memory.
  void FetchOutputs();

  const CompiledNetwork& network() const;
  const StopFlag* stop() const;
  const Device& device() const;
  size_t ArenaBytes() const;          // activations and scratch
  const DeviceMemory& arena() const;  // where they are, which may be larger
  size_t PackedWeightBytes() const;
  std::vector<CodeBlob> Code() const;  // every conv's generated code

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilesmith
