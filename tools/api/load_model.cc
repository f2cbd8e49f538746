#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph_tuner/compiled/compiled_file.h"
#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/base/fork_gate.h"
#include "layouts/base/visible.h"
#include "layouts/derived_tensors.h"
#include "tools/api/model_from_graph.h"
#include "tools/api/model_impl.h"
#include "tools/api/settings.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/network/plan_choice.h"

namespace tilesmith {

namespace {

PreparedSize Prepare(Graph graph, const Plan& plan, const DevicePtr& machine, BufferPool* pool) {
  return SizeOf(CompileNetwork(std::move(graph), plan, machine, nullptr, pool), KnownPrediction(plan));
}

// As the file says it: nobody knows yet what it takes.
TensorInfo Declare(const ModelEnds::Input& input, const Layout& images) {
  constexpr size_t kImageRank = 4;
  const Layout layout = input.shape.size() == kImageRank ? images : Layout::Nchw();
  return {.name = VisibleLine(input.name),
          .shape = {input.shape.begin(), input.shape.end()},
          .layout = layout.WithType(DataType::kF32).ToString(),
          .type = std::string(DataTypeName(input.type))};
}

// Whether the model, which was refused, leaves open what a first run can give; `base` then has its file.
bool ReadIfOpen(const ModelOptions& asked, ModelOptions* base) {
  if (!base->file) base->file = ReadForSizes(asked);
  base->memory.reset();
  return base->file && EndsOf(*base).sizes_open;
}

}  // namespace

struct Model::Loader {
  static Model Load(ModelOptions asked, const LoadOptions& options);
};

Model Model::Load(const std::string& model, const LoadOptions& options) {
  return Loader::Load(OptionsOf(model), options);
}
Model Model::Load(const ModelMemory& model, const LoadOptions& options) {
  return Loader::Load(OptionsOf(model), options);
}

Model Model::Loader::Load(ModelOptions asked, const LoadOptions& options) {
  const AwayFromForks away;
  CheckNumbers(options);
  if (options.precision != "f32" && options.precision != "tf32") {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("precision is \"{}\" (known: f32, tf32; a plan says its own types)", options.precision));
  }
  if (!asked.memory && IsCompiledFile(asked.model)) return ModelFromFile::Load(asked.model, options);
  auto impl = std::make_shared<Impl>();
  const DevicePtr machine =
      OpenMachine({.threads = options.strict ? options.threads : ThreadsFor(options.plan, options.threads),
                   .wait = options.wait,
                   .max_isa = "",
                   .target = options.target,
                   .precision = ParsePrecision(options.precision),
                   .reproducible = options.reproducible || AskReproducible(options.plan)});
  asked.batch = options.batch;
  asked.input_shapes = options.input_shapes;
  asked.max_elements = options.max_elements;
  asked.max_memory = options.max_memory;
  TakeQuantization(options.plan, &asked);
  const size_t count = std::max(static_cast<size_t>(options.sizes), SizesOf(asked).size());
  if (count > 1) asked.file = ReadForSizes(asked);
  if (asked.file) asked.memory.reset();  // the caller's, which may be gone when another size comes
  const std::vector<ModelOptions> listed = SizesOf(asked);
  impl->device = machine;
  const auto pool = std::make_shared<BufferPool>();
  const auto derived = std::make_shared<DerivedTensors>();
  const auto plans = std::make_shared<std::vector<Plan>>();  // of the file, which is read once
  const auto prepare_graph = [machine, pool, plans, path = options.plan](Graph graph,
                                                                         const PlanLoading& loading) {
    if (plans->empty() && !path.empty()) *plans = ReadPlans(path, loading.notes);
    const Plan plan = ChoosePlan(path, *plans, graph, machine, loading);
    return Prepare(std::move(graph), plan, machine, pool.get());
  };
  std::optional<DerivedTensors::Preparation> of_first;
  if (count > 1) of_first.emplace(*derived);
  std::optional<Graph> graph;
  ModelOptions base = listed[0];
  try {
    graph = LoadModel(base);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadModel || listed.size() > 1 || !ReadIfOpen(asked, &base)) throw;
  }
  std::vector<std::string> names;
  if (graph) {
    for (const Graph::NodeId id : graph->GraphInputs()) names.push_back(graph->node(id).name);
  } else {
    const ModelEnds ends = EndsOf(base);
    const Plan header = options.plan.empty() ? Plan() : ReadPlanHeader(options.plan);
    for (const ModelEnds::Input& input : ends.inputs) {
      names.push_back(input.name);
      impl->declared_inputs.push_back(Declare(input, header.ends.inputs));
    }
    for (const std::string& name : ends.outputs)
      impl->declared_outputs.emplace_back().name = VisibleLine(name);
    const auto note =
        options.plan.empty() ? std::nullopt : NoteOfThreads(options.plan, header, machine->threads());
    if (note && options.strict) {
      throw Error(ErrorCode::kUsage, fmt::format("{}: plan: made for {} threads, asked to run with {}",
                                                 options.plan, header.threads, machine->threads()));
    }
    if (note) impl->warnings.push_back(*note);
  }
  const auto limit =
      static_cast<size_t>(graph ? graph->limits().network_bytes : LimitsOf(base).network_bytes);
  const auto prepare = [=, strict = options.strict](const InputShapes& shapes, bool first) {
    const DerivedTensors::Preparation preparation(*derived);
    ModelOptions sized = base;
    sized.batch = 0;
    sized.input_shapes.clear();
    for (size_t i = 0; i < names.size(); ++i) sized.shapes[names[i]] = shapes[i];
    return prepare_graph(LoadModel(sized), {.other_sizes = !first || count > 1, .strict = strict});
  };
  std::optional<PreparedSize> first;
  if (graph) first = prepare_graph(std::move(*graph), {.strict = options.strict, .notes = &impl->warnings});
  impl->sizes = std::make_unique<PreparedSizes>(std::move(first),
                                                SizesLimit{count > 0 ? count - 1 : 0, limit}, prepare);
  for (size_t i = 1; i < listed.size(); ++i) {
    Graph other = LoadModel(listed[i]);
    InputShapes shapes;
    for (const Graph::NodeId id : other.GraphInputs()) shapes.push_back(other.node(id).shape);
    impl->sizes->For(shapes, [&] {
      return prepare_graph(std::move(other), {.other_sizes = true, .strict = options.strict});
    });
  }
  return Model(std::move(impl));
}

Model ModelFromGraph::Of(std::shared_ptr<const CompiledNetwork> network, double predicted_seconds) {
  auto impl = std::make_shared<Model::Impl>();
  impl->device = network->device;
  impl->sizes =
      std::make_unique<PreparedSizes>(SizeOf(std::move(network), predicted_seconds), SizesLimit(), nullptr);
  return Model(std::move(impl));
}

}  // namespace tilesmith
