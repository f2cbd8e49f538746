#include "graph_tuner/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "graph_tuner/costs/corrections.h"
#include "graph_tuner/executor/copy_kernel.h"
#include "graph_tuner/executor/memory_planner.h"
#include "graph_tuner/executor/placement.h"
#include "graph_tuner/executor/program.h"
#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/executor/step_runner.h"
#include "graph_tuner/plan/planned_conversions.h"
#include "layouts/base/check.h"
#include "layouts/base/quantile.h"
#include "layouts/transform.h"
#include "ops/nodes/batch_norm.h"
#include "ops/nodes/conv.h"

namespace tilesmith {
namespace {

// A pointer into a tensor of the user's, set at the start of every run.
template <typename Pointer>
struct Patch {
  Pointer* pointer = nullptr;
  int index = 0;       // of the tensor
  int64_t offset = 0;  // in floats
};

struct NamedCode {
  std::string node;
  const ConvKernel* kernel = nullptr;
};

// Of what is brought into a concat's slice the plan knows the layout it is produced in, also where the step
// finds it in another one already.
LayoutPair ConversionOfStep(const Step& step, const Program& program, const NodeSchedule& producer) {
  const Value& written = program.values[step.write];
  const Layout& from = step.fills_slice ? producer.out : program.values[step.reads[0]].layout;
  return ConversionOf(written.shape, from, written.layout);
}

// What the caller must bring.
struct UserTensor {
  std::string name;
  Shape shape;
  Layout layout;
};

void CheckTensor(const Tensor* tensor, const UserTensor& expected, std::string_view role) {
  TILESMITH_CHECK(tensor != nullptr, "{} \"{}\"", role, expected.name);
  if (tensor->shape() == expected.shape && tensor->layout() == expected.layout &&
      tensor->type() == DataType::kF32) {
    return;
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("{} \"{}\" is {} {}{}, expected {} {} floats", role, expected.name,
                          ShapeToString(tensor->shape()), tensor->layout().ToString(),
                          tensor->type() == DataType::kF32 ? "" : " integers", ShapeToString(expected.shape),
                          expected.layout.ToString()));
}

std::vector<UserTensor> UserTensors(const Graph& graph, std::span<const Graph::NodeId> ids,
                                    const Layout& layout) {
  std::vector<UserTensor> tensors;
  for (const Graph::NodeId id : ids) {
    const Node& node = graph.node(id);
    tensors.push_back({node.name, node.shape, EndLayout(node, layout)});
  }
  return tensors;
}

// Of a conv and what is fused in front of it, which may be nothing.
ConvWeights WeightsOf(const ConvOp& conv, const Op* first) {
  const auto floats = [](const std::shared_ptr<const Tensor>& tensor) {
    return tensor == nullptr ? nullptr : tensor->floats();
  };
  ConvWeights weights{.weights = floats(conv.weights()), .bias = floats(conv.bias())};
  if (const auto* before = dynamic_cast<const ConvOp*>(first)) {
    weights.before_weights = floats(before->weights());
    weights.before_bias = floats(before->bias());
  } else if (const auto* scale_shift = dynamic_cast<const ScaleShiftOp*>(first)) {
    weights.scale = scale_shift->scale().data();
    weights.shift = scale_shift->shift().data();
  }
  return weights;
}

}  // namespace

struct Executor::Impl {
  Impl(const Graph& graph, const Plan& plan, const ExecutorOptions& options);

  void BuildSteps(const Graph& graph, const Program& program, std::span<const NodeSchedule> schedules,
                  const CpuInfo& cpu);
  std::unique_ptr<Kernel> BuildNodeKernel(const Graph& graph, const Step& step, const NodeSchedule& schedule,
                                          const CpuInfo& cpu);
  void DescribeSteps(const Graph& graph, const Plan& plan, const Program& program,
                     std::span<const NodeSchedule> schedules);
  void PlaceInArena(const Program& program, const std::vector<Place>& places);
  void ConnectSteps(const Program& program, const std::vector<Place>& places);
  template <typename Pointer>
  void Connect(const Program& program, const std::vector<Place>& places, int value, Pointer* pointer,
               int64_t* stride);
  void BindUserTensors(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs);

  int threads;
  StepRunner runner;
  std::vector<UserTensor> user_inputs, user_outputs;
  std::vector<PreparedStep> steps;
  std::vector<StepProfile> infos;  // without times
  std::vector<NamedCode> convs;
  std::vector<OpPtr> ops;  // kernels may refer to their ops, and steps read constants
  std::vector<std::shared_ptr<const Tensor>> constants;
  AlignedBuffer arena;
  // By region: where it lies, for those with arena memory of their own.
  std::vector<float*> region_data;
  std::vector<Patch<const float*>> input_patches;        // reads of the user's inputs
  std::vector<Patch<const float*>> output_read_patches;  // reads of what was written to the user's outputs
  std::vector<Patch<float*>> output_patches;
};

Executor::Impl::Impl(const Graph& graph, const Plan& plan, const ExecutorOptions& options)
    : threads(options.threads),
      runner(options.threads),
      user_inputs(UserTensors(graph, graph.GraphInputs(), plan.ends.inputs)),
      user_outputs(UserTensors(graph, graph.outputs(), plan.ends.outputs)) {
  const std::vector<NodeSchedule> schedules = ResolveSchedules(graph, plan, options.cpu);
  const Program program = BuildProgram(graph, schedules, plan.ends.outputs);
  const std::vector<Place> places = PlaceRegions(program);
  for (const Region& region : program.regions) {
    if (region.constant != nullptr) constants.push_back(region.constant);
  }
  for (const Step& step : program.steps) ops.push_back(graph.node(step.node).op);
  BuildSteps(graph, program, schedules, options.cpu);
  DescribeSteps(graph, plan, program, schedules);
  PlaceInArena(program, places);
  ConnectSteps(program, places);
}

void Executor::Impl::BuildSteps(const Graph& graph, const Program& program,
                                std::span<const NodeSchedule> schedules, const CpuInfo& cpu) {
  for (const Step& step : program.steps) {
    const Value& written = program.values[step.write];
    PreparedStep prepared;
    if (step.kind == StepKind::kNode) {
      prepared.kernel = BuildNodeKernel(graph, step, schedules[step.node], cpu);
    } else if (step.kind == StepKind::kTransform) {
      const Layout& from = program.values[step.reads[0]].layout;
      prepared.kernel = MakeTransformKernel(written.shape, from, written.layout, cpu);
    } else {
      const Region& region = program.regions[written.region];
      prepared.kernel = MakeCopyKernel(region.images, region.image_floats);
    }
    steps.push_back(std::move(prepared));
  }
}

std::unique_ptr<Kernel> Executor::Impl::BuildNodeKernel(const Graph& graph, const Step& step,
                                                        const NodeSchedule& schedule, const CpuInfo& cpu) {
  const Node& node = graph.node(step.node);
  if (schedule.conv_template == nullptr) {
    return node.op->MakeKernel({graph.InputShapes(step.node), node.shape, schedule.out, cpu});
  }
  const auto& conv = dynamic_cast<const ConvOp&>(*node.op);
  const Op* const first = schedule.first ? graph.node(*schedule.first).op.get() : nullptr;
  std::unique_ptr<ConvKernel> kernel =
      schedule.conv_template->Build(schedule.workload, schedule.config, cpu, WeightsOf(conv, first));
  convs.push_back({node.name, kernel.get()});
  return kernel;
}

void Executor::Impl::DescribeSteps(const Graph& graph, const Plan& plan, const Program& program,
                                   std::span<const NodeSchedule> schedules) {
  std::map<ConversionKey, PlannedConversion> planned = PlannedConversions(graph, plan);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = program.steps[i];
    const Node& node = graph.node(step.node);
    const Value& written = program.values[step.write];
    StepProfile info;
    info.node = node.name;
    const Layout from = step.reads.empty() ? written.layout : program.values[step.reads[0]].layout;
    info.layouts = fmt::format("{} -> {}", from.ToString(), written.layout.ToString());
    if (step.kind == StepKind::kNode) {
      const NodeSchedule& schedule = schedules[step.node];
      info.name = schedule.first ? graph.node(*schedule.first).name + ">" + node.name : node.name;
      info.kind = schedule.conv_template != nullptr ? schedule.conv_template->Name() : node.op->Type();
      if (schedule.conv_template == nullptr && !node.op->HasFastKernel()) info.kind += " (reference)";
      info.predicted_seconds = schedule.predicted_seconds;
      if (const auto* conv = dynamic_cast<const ConvKernel*>(steps[i].kernel.get())) {
        info.packed_weight_bytes = static_cast<int64_t>(conv->PackedWeights().size_bytes());
      }
    } else {
      info.name = fmt::format("{}: {}", node.name, info.layouts);
      info.kind = step.kind == StepKind::kTransform ? "transform" : "copy";
      info.conversion = ConversionOfStep(step, program, schedules[step.node]);
      PlannedConversion& entry = planned[{node.name, *info.conversion}];
      info.planned = entry.times-- > 0;
      if (info.planned) info.predicted_seconds = entry.seconds;
    }
    infos.push_back(std::move(info));
  }
}

void Executor::Impl::PlaceInArena(const Program& program, const std::vector<Place>& places) {
  std::vector<BufferRequest> requests = ArenaRequests(program, places);
  const size_t regions = requests.size();
  for (size_t i = 0; i < steps.size(); ++i) {
    const int step = static_cast<int>(i);
    requests.push_back({step, step, steps[i].kernel->ScratchFloats(threads) * sizeof(float)});
  }
  const MemoryPlan memory = PlanMemory(requests);
  arena = AlignedBuffer(memory.bytes);
  for (size_t i = 0; i < requests.size(); ++i) {
    float* const data = arena.floats() + memory.offsets[i] / sizeof(float);
    if (i < regions) {
      region_data.push_back(data);
    } else if (requests[i].bytes > 0) {
      steps[i - regions].scratch = data;
    }
  }
}

void Executor::Impl::ConnectSteps(const Program& program, const std::vector<Place>& places) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = program.steps[i];
    steps[i].inputs.resize(step.reads.size());
    for (size_t slot = 0; slot < step.reads.size(); ++slot) {
      InputView& view = steps[i].inputs[slot];
      Connect(program, places, step.reads[slot], &view.data, &view.batch_stride);
    }
    Connect(program, places, step.write, &steps[i].output.data, &steps[i].output.batch_stride);
  }
}

template <typename Pointer>
void Executor::Impl::Connect(const Program& program, const std::vector<Place>& places, int value,
                             Pointer* pointer, int64_t* stride) {
  const Value& v = program.values[value];
  const Region& region = program.regions[v.region];
  const Place& place = places[v.region];
  const int64_t images = v.shape.empty() ? 1 : v.shape[0];
  *stride = images == region.images ? place.image_stride : BatchStride(v.shape, v.layout);
  const Region& root = program.regions[place.root];
  constexpr bool kReads = std::is_same_v<Pointer, const float*>;
  if (root.source == Region::Source::kComputed && root.output < 0) {
    *pointer = region_data[place.root] + place.offset;
  } else if constexpr (kReads) {
    if (root.source == Region::Source::kConstant) {
      *pointer = root.constant->floats();
    } else if (root.source == Region::Source::kInput) {
      input_patches.push_back({pointer, root.input, place.offset});
    } else {
      output_read_patches.push_back({pointer, root.output, place.offset});
    }
  } else {
    TILESMITH_CHECK(root.output >= 0, "a step writes to memory that is not ours");
    output_patches.push_back({pointer, root.output, place.offset});
  }
}

void Executor::Impl::BindUserTensors(std::span<const Tensor* const> inputs,
                                     std::span<Tensor* const> outputs) {
  if (inputs.size() != user_inputs.size() || outputs.size() != user_outputs.size()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} inputs and {} outputs given, expected {} and {}", inputs.size(),
                            outputs.size(), user_inputs.size(), user_outputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) CheckTensor(inputs[i], user_inputs[i], "input");
  for (size_t i = 0; i < outputs.size(); ++i) {
    CheckTensor(outputs[i], user_outputs[i], "output");
    const bool is_input = std::find(inputs.begin(), inputs.end(), outputs[i]) != inputs.end();
    const bool is_twice = std::find(outputs.begin(), outputs.begin() + i, outputs[i]) != outputs.begin() + i;
    if (is_input || is_twice) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("output \"{}\" is the same tensor as another argument", user_outputs[i].name));
    }
  }
  for (const auto& patch : input_patches) *patch.pointer = inputs[patch.index]->floats() + patch.offset;
  for (const auto& patch : output_read_patches) {
    *patch.pointer = outputs[patch.index]->floats() + patch.offset;
  }
  for (const auto& patch : output_patches) *patch.pointer = outputs[patch.index]->floats() + patch.offset;
}

Executor::Executor(const Graph& graph, const Plan& plan, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(graph, plan, options)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

void Executor::Run(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs) {
  impl_->BindUserTensors(inputs, outputs);
  impl_->runner.Run(impl_->steps, {});
}

std::vector<StepProfile> Executor::Profile(std::span<const Tensor* const> inputs,
                                           std::span<Tensor* const> outputs, int runs) {
  TILESMITH_CHECK(runs >= 1, "{} runs", runs);
  const size_t count = impl_->steps.size();
  impl_->BindUserTensors(inputs, outputs);
  std::vector<double> seconds(count * runs);
  for (int run = 0; run < runs; ++run) {
    impl_->runner.Run(impl_->steps, std::span(seconds).subspan(run * count, count));
  }
  std::vector<StepProfile> profile = impl_->infos;
  std::vector<double> samples(runs);
  for (size_t i = 0; i < count; ++i) {
    for (int run = 0; run < runs; ++run) samples[run] = seconds[run * count + i];
    profile[i].seconds = LowerQuartile(samples);
  }
  return profile;
}

size_t Executor::ArenaBytes() const { return impl_->arena.bytes(); }

size_t Executor::PackedWeightBytes() const {
  size_t bytes = 0;
  for (const NamedCode& conv : impl_->convs) bytes += conv.kernel->PackedWeights().size_bytes();
  return bytes;
}

std::vector<CodeBlob> Executor::Code() const {
  std::vector<CodeBlob> code;
  for (const NamedCode& conv : impl_->convs) {
    for (CodeBlob& blob : conv.kernel->Code()) {
      blob.name = fmt::format("{}/{}", conv.node, blob.name);
      code.push_back(std::move(blob));
    }
  }
  return code;
}

}  // namespace tilesmith
