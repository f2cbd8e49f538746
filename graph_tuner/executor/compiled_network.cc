#include "graph_tuner/executor/compiled_network.h"

#include <fmt/format.h>

#include <map>
#include <span>
#include <utility>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/executor/network_regions.h"
#include "graph_tuner/executor/ownership.h"
#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/plan/plan.h"
#include "layouts/base/error.h"
#include "layouts/base/settings.h"
#include "layouts/base/thread_team.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/quantize/quantized_conv.h"

namespace tilesmith {
namespace {

// For what is brought into a concat's slice the plan knows the layout it is produced in, also where the step
// finds it in another one already.
LayoutPair ConversionOfStep(const Step& step, const Program& program, const NodeSchedule& producer) {
  const Value& written = program.values[step.write];
  const Layout& from = step.fills_slice ? producer.out : program.values[step.reads[0]].layout;
  return ConversionOf(written.shape, from, written.layout);
}

// The weights of a conv and of what is fused in front of it, which may be nothing.
ConvWeights WeightsOf(const Op& op, const Op* first, KernelParts* parts) {
  if (const auto* quantized = dynamic_cast<const QuantizedConvOp*>(&op))
    return {.quantized = quantized, .parts = parts};
  const auto& conv = dynamic_cast<const ConvOp&>(op);
  const auto floats = [](const std::shared_ptr<const Tensor>& tensor) {
    return tensor == nullptr ? nullptr : tensor->floats();
  };
  ConvWeights weights{.weights = floats(conv.weights()), .bias = floats(conv.bias()), .parts = parts};
  if (const auto* before = dynamic_cast<const ConvOp*>(first)) {
    weights.before_weights = floats(before->weights());
    weights.before_bias = floats(before->bias());
  } else if (const auto* scale_shift = dynamic_cast<const ScaleShiftOp*>(first)) {
    weights.scale = scale_shift->scale().data();
    weights.shift = scale_shift->shift().data();
  }
  return weights;
}

// Of buffers, and of the scratch of steps in no region.
std::vector<BufferRequest> StepRequests(const Program& program, const std::vector<Place>& places,
                                        std::span<const int64_t> scratch) {
  std::vector<BufferRequest> requests = ArenaRequests(program, places);
  for (size_t i = 0; i < scratch.size(); ++i) {
    const int step = static_cast<int>(i);
    requests.push_back({step, step, program.steps[i].region >= 0 ? 0 : scratch[i]});
  }
  return requests;
}

class Compiler {
 public:
  Compiler(Graph graph, const Plan& plan, DevicePtr device, const StopFlag* stop, BufferPool* pool)
      : graph_(std::move(graph)),
        plan_(plan),
        device_(*device),
        stop_(stop),
        pool_(pool),
        schedules_(ResolveSchedules(graph_, plan, device_.target())) {
    network_.device = std::move(device);
  }

  CompiledNetwork Compile() {
    network_.tail = graph_.tail();
    network_.inputs = UserTensors(graph_, graph_.GraphInputs(), plan_.ends.inputs);
    network_.outputs = UserTensors(graph_, graph_.outputs(), plan_.ends.outputs);
    Describe();
    if (!plan_.regions.empty())
      layer_by_layer_ = BuildProgram(
          graph_, ResolveSchedules(graph_, WithoutRegions(plan_), device_.target(), PlanFrom::kDefaults),
          plan_.ends.outputs);
    network_.places = PlaceBuffers(network_.program);
    BuildKernels([](const Step&) { return true; });
    for (size_t i = 0; i < network_.steps.size(); ++i) {
      const Kernel& kernel = *network_.kernels[i];
      network_.steps[i].packed_weight_bytes = static_cast<int64_t>(PackedWeightsOf(kernel).size_bytes());
      const bool in_process = device_.RunsInProcess(kernel);
      if ((in_process || device_.ReadsHostMemory()) && IsReference(network_.program.steps[i]))
        network_.steps[i].kind += " (reference)";
      if (in_process) network_.steps[i].kind += " (in process)";
    }
    CountCrossedBytes();
    if (!device_.ReadsHostMemory()) UploadConstants();
    network_.touches = TouchesOf(network_);
    network_.regions = CompileRegions(network_, network_.touches);
    LayOutArena();
    network_.neighbour_waits = NeighbourWaits(network_.program, network_.places, network_.memory,
                                              network_.touches, device_.threads());
    return std::move(network_);
  }

  CompiledNetwork CompileOnlyRegions() {
    Describe();
    BuildKernels([](const Step& step) { return step.region >= 0; });
    network_.touches = TouchesOf(network_);
    network_.regions = CompileRegions(network_, network_.touches);
    return std::move(network_);
  }

 private:
  // What a conv's weights are packed from.
  struct Unpacked {
    OpPtr op, first;
  };

  // The steps one by one, each by whichever of the team's threads is free: what takes long is packing
  // weights, which leave the graph here and are gone behind that.
  void BuildKernels(bool (*is_wanted)(const Step&)) {
    const std::vector<Step>& steps = network_.program.steps;
    std::vector<Unpacked> unpacked;
    for (const Step& step : steps) {
      unpacked.push_back(TakeUnpacked(step));
      network_.recipes.push_back(RecipeOf(step, unpacked.back()));
    }
    network_.kernels.resize(steps.size());
    ForEachIndex(
        std::ssize(steps),
        [&](int64_t index) {
          const auto i = static_cast<size_t>(index);
          ThrowIfStopped(stop_);
          if (!is_wanted(steps[i])) return;
          KernelRecipe& recipe = network_.recipes[i];
          KernelParts parts(SharingOf(recipe, unpacked[i]));
          ConvWeights weights{.parts = &parts};
          if (unpacked[i].op) weights = WeightsOf(*unpacked[i].op, unpacked[i].first.get(), &parts);
          network_.kernels[i] = BuildKernelOf(recipe, device_, weights);
          recipe.parts = parts.parts();
          unpacked[i] = {};
        },
        device_.ReadsHostMemory() ? device_.threads() : 1);
  }

  PartSharing SharingOf(const KernelRecipe& recipe, const Unpacked& conv) const {
    PartSharing sharing{.pool = pool_};
    if (pool_ == nullptr || conv.op == nullptr) return sharing;
    const Target& target = device_.target();
    const auto* main = dynamic_cast<const ConvOp*>(conv.op.get());
    if (main == nullptr) return sharing;  // code for bytes may depend on their scales
    sharing.kernel = PartKey(recipe.conv_template)
                         .Add(WorkloadToString(recipe.workload))
                         .Add(recipe.config.ToString())
                         .Add(target.isa, target.vnni, target.bf16, target.amx, target.cores,
                              target.sve_bytes, target.dot, target.i8mm);
    sharing.weights = {main->weights()};
    if (const auto* before = dynamic_cast<const ConvOp*>(conv.first.get()))
      sharing.weights.push_back(before->weights());
    return sharing;
  }

  bool IsConv(const Step& step) const {
    return step.kind == StepKind::kNode && schedules_[step.node].conv_template != nullptr;
  }

  Unpacked TakeUnpacked(const Step& step) {
    if (!IsConv(step)) return {};
    const NodeSchedule& schedule = schedules_[step.node];
    return {graph_.Release(step.node), schedule.first ? graph_.Release(*schedule.first) : nullptr};
  }

  KernelRecipe RecipeOf(const Step& step, const Unpacked& conv) const {
    const Program& program = network_.program;
    const Value& written = program.values[step.write];
    KernelRecipe recipe{.kind = step.kind, .output = written.shape, .to = written.layout};
    if (step.kind == StepKind::kTransform) {
      recipe.from = program.values[step.reads[0]].layout;
    } else if (step.kind == StepKind::kCopy) {
      recipe.images = program.buffers[written.buffer].images;
      recipe.image_bytes = program.buffers[written.buffer].image_bytes;
    } else if (const NodeSchedule& schedule = schedules_[step.node]; IsConv(step)) {
      recipe.conv_template = schedule.conv_template->Name();
      recipe.workload = schedule.workload;
      recipe.config = schedule.config;
      if (const auto* bytes = dynamic_cast<const QuantizedConvOp*>(conv.op.get()))
        recipe.op = bytes->WithoutWeights();
    } else {
      recipe.op = schedule.tuned ? schedule.tuned : graph_.node(step.node).op;
      recipe.inputs = graph_.InputShapes(step.node);
      recipe.input_types = StoredTypes(schedule);
      recipe.output = graph_.node(step.node).shape;
      recipe.to = schedule.out;
    }
    return recipe;
  }

  // Whether the process's own kernel for it is the wrapped reference.
  bool IsReference(const Step& step) const {
    const NodeSchedule& schedule = schedules_[step.node];
    if (step.kind != StepKind::kNode || schedule.conv_template != nullptr) return false;
    const Op& op = *graph_.node(step.node).op;
    return !(op.HasFastKernel() && op.KernelTakes(StoredTypes(schedule)));
  }

  // The types of what a node reads.
  static std::vector<DataType> StoredTypes(const NodeSchedule& schedule) {
    std::vector<DataType> types;
    types.reserve(schedule.inputs.size());
    for (const Layout& layout : schedule.inputs) types.push_back(layout.type());
    return types;
  }

  // Builds the program and says what its steps are.
  void Describe() {
    network_.program = BuildProgram(graph_, schedules_, plan_.ends.outputs, plan_.regions);
    const Program& program = network_.program;
    std::map<ConversionKey, PlannedConversion> planned = PlannedConversions(graph_, plan_);
    for (size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      const Node& node = graph_.node(step.node);
      const Value& written = program.values[step.write];
      StepProfile info;
      info.node = node.name;
      const Layout from = step.reads.empty() ? written.layout : program.values[step.reads[0]].layout;
      info.layouts = fmt::format("{} -> {}", from.ToString(), written.layout.ToString());
      if (step.kind == StepKind::kNode) {
        const NodeSchedule& schedule = schedules_[step.node];
        info.name = schedule.first ? graph_.node(*schedule.first).name + ">" + node.name : node.name;
        info.kind = schedule.conv_template != nullptr ? schedule.conv_template->Name() : node.op->Type();
        info.predicted_seconds = schedule.predicted_seconds;
      } else {
        info.name = fmt::format("{}: {}", node.name, info.layouts);
        info.kind = step.kind == StepKind::kTransform ? "transform" : "copy";
        info.conversion = ConversionOfStep(step, program, schedules_[step.node]);
        PlannedConversion& entry = planned[{node.name, *info.conversion}];
        info.planned = entry.times-- > 0;
        if (info.planned) info.predicted_seconds = entry.seconds;
      }
      network_.steps.push_back(std::move(info));
    }
  }

  void CountCrossedBytes() {
    std::vector<StepGrids> grids;
    for (size_t i = 0; i < network_.kernels.size(); ++i) {
      const Kernel& kernel = *network_.kernels[i];
      const NodeSchedule& schedule = schedules_[network_.program.steps[i].node];
      const bool is_conv = dynamic_cast<const ConvKernel*>(&kernel) != nullptr;
      grids.push_back(
          {kernel.Grid(0), kernel.Grid(kernel.Stages() - 1), is_conv ? &schedule.workload : nullptr});
    }
    const std::vector<double> bytes = CrossedBytes(network_.program, grids, device_.threads());
    for (size_t i = 0; i < bytes.size(); ++i) network_.steps[i].crossed_bytes = bytes[i];
  }

  void UploadConstants() {
    for (const TensorBuffer& buffer : network_.program.buffers) {
      DeviceMemory& memory = network_.constants.emplace_back();
      if (buffer.source != TensorBuffer::Source::kConstant) continue;
      const auto bytes = static_cast<size_t>(buffer.constant->bytes());
      memory = device_.Allocate(bytes);
      device_.Upload(buffer.constant->raw(), memory.data.get(), bytes);
    }
  }

  void LayOutArena() {
    std::vector<int64_t> scratch;
    for (const std::unique_ptr<Kernel>& kernel : network_.kernels)
      scratch.push_back(kernel->ScratchBytes(device_.threads()));
    std::vector<BufferRequest> requests = StepRequests(network_.program, network_.places, scratch);
    for (size_t i = 0; i < network_.regions.size(); ++i) {
      const Region& region = network_.program.regions[i];
      requests.push_back({region.first, region.last - 1, RegionScratchBytes(network_, i)});
    }
    network_.memory = PlanMemory(requests, device_.threads());
    network_.layer_by_layer_bytes = network_.memory.bytes;
    if (layer_by_layer_) CountLayerByLayer(scratch);
    layer_by_layer_.reset();
    CheckMemory();
  }

  // `scratch`: of the network's steps. What only moves a tensor needs none on CPUs, which alone have regions.
  void CountLayerByLayer(std::span<const int64_t> scratch) {
    std::map<Graph::NodeId, int64_t> of_nodes;
    for (size_t i = 0; i < scratch.size(); ++i)
      if (const Step& step = network_.program.steps[i]; step.kind == StepKind::kNode)
        of_nodes[step.node] = scratch[i];
    std::vector<int64_t> of_steps;
    for (const Step& step : layer_by_layer_->steps)
      of_steps.push_back(step.kind == StepKind::kNode ? of_nodes[step.node] : 0);
    const std::vector<BufferRequest> requests =
        StepRequests(*layer_by_layer_, PlaceBuffers(*layer_by_layer_), of_steps);
    network_.layer_by_layer_bytes = PlanMemory(requests, device_.threads()).bytes;
  }

  void CheckMemory() const {
    Checked ends = 0;
    for (const std::vector<UserTensor>* tensors : {&network_.inputs, &network_.outputs}) {
      for (const UserTensor& tensor : *tensors) {
        ends += PaddedBytes(tensor.shape, tensor.layout);
      }
    }
    const Checked weights = static_cast<int64_t>(PackedWeightBytes(network_));
    const Checked activations = network_.memory.bytes;
    const int64_t all = (ends + weights + activations).value(), limit = graph_.limits().network_bytes;
    if (all <= limit) return;
    constexpr int64_t kMebibyte = 1 << 20;
    // Parts are rounded up, and so their sum is what they add up to.
    const int64_t parts[] = {CeilDiv(weights.value(), kMebibyte), CeilDiv(activations.value(), kMebibyte),
                             CeilDiv(ends.value(), kMebibyte)};
    throw LimitError(
        fmt::format("network \"{}\" needs {} MiB of memory ({} for weights, {} for activations and scratch, "
                    "{} for inputs and outputs), the limit is {} ({})",
                    graph_.name(), parts[0] + parts[1] + parts[2], parts[0], parts[1], parts[2],
                    limit / kMebibyte, settings::kMaxMemory));
  }

  Graph graph_;
  const Plan& plan_;
  const Device& device_;
  const StopFlag* const stop_;
  BufferPool* const pool_;
  const std::vector<NodeSchedule> schedules_;
  std::optional<Program> layer_by_layer_;  // of a plan with regions: what it would be without
  CompiledNetwork network_;
};

}  // namespace

CompiledNetwork CompileOnlyRegions(Graph graph, const Plan& plan, const Target& cpu) {
  return Compiler(std::move(graph), plan, OpenDevice(cpu, 1), nullptr, nullptr).CompileOnlyRegions();
}

namespace {

bool RegionsCompile(const Graph& graph, const Plan& plan, const Target& cpu) {
  try {
    CompileOnlyRegions(graph, plan, cpu);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    return false;
  }
}

}  // namespace

Plan WithRegionsThatCompile(const Graph& graph, Plan plan, const Target& cpu) {
  if (plan.regions.empty() || RegionsCompile(graph, plan, cpu)) return plan;
  Plan some = WithoutRegions(plan);
  for (size_t region = 0; region < plan.regions.size(); ++region) {
    Plan more = some;
    more.regions.push_back(plan.regions[region]);
    for (size_t i = 0; i < plan.nodes.size(); ++i)
      if (std::cmp_equal(plan.nodes[i].region, region + 1))
        more.nodes[i].region = static_cast<int>(more.regions.size());
    if (RegionsCompile(graph, more, cpu)) some = std::move(more);
  }
  return some;
}

std::vector<RegionProfile> RegionProfiles(const CompiledNetwork& network) {
  std::vector<RegionProfile> profiles;
  for (size_t i = 0; i < network.regions.size(); ++i) {
    const Region& region = network.program.regions[i];
    const auto& [steps, schedule] = network.regions[i];
    RegionProfile& profile = profiles.emplace_back();
    profile.number = region.number;
    profile.steps = std::ssize(steps);
    profile.band_rows = region.band_rows;
    for (const std::vector<RegionAction>& actions : schedule.actions) {
      profile.bands += std::ranges::count_if(actions, [&](const RegionAction& action) {
        return action.does == RegionAction::Does::kCompute && action.step + 1 == profile.steps;
      });
    }
    profile.buffer_bytes = schedule.buffer_bytes;
    profile.computed_rows = schedule.computed_rows;
    profile.result_rows = schedule.result_rows;
  }
  return profiles;
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

std::shared_ptr<const CompiledNetwork> CompileNetwork(Graph graph, const Plan& plan, DevicePtr device,
                                                      const StopFlag* stop, BufferPool* pool) {
  return std::make_shared<const CompiledNetwork>(
      Compiler(std::move(graph), plan, std::move(device), stop, pool).Compile());
}

Executor::Executor(Graph graph, const Plan& plan, DevicePtr device, const StopFlag* stop)
    : Executor(CompileNetwork(std::move(graph), plan, std::move(device), stop), stop) {}

}  // namespace tilesmith
