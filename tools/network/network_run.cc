#include "tools/network/network_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "layouts/random_tensor.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/streams.h"
#include "tools/network/outputs.h"

namespace tilesmith {
namespace {

std::vector<Tensor> MakeOutputs(const Graph& graph, const Layout& layout) {
  std::vector<Tensor> outputs;
  for (Graph::NodeId id : graph.outputs()) {
    const Node& node = graph.node(id);
    outputs.emplace_back(node.shape, EndLayout(node, layout));
  }
  return outputs;
}

std::vector<std::string> OutputNames(const Graph& graph) {
  std::vector<std::string> names;
  for (const Graph::NodeId id : graph.outputs()) names.push_back(graph.node(id).name);
  return names;
}

// "x=1x3x224x224", as --input-shape takes them.
std::string InputSizes(const Graph& graph) {
  std::vector<std::string> sizes;
  for (const Graph::NodeId id : graph.GraphInputs())
    sizes.push_back(fmt::format("{}={}", graph.node(id).name, ShapeToString(graph.node(id).shape)));
  return fmt::format("{}", fmt::join(sizes, " "));
}

}  // namespace

NetworkRun::NetworkRun(Graph graph, const Plan& plan, const DevicePtr& machine, std::vector<Tensor> inputs,
                       const StopFlag* stop)
    : plan_(plan),
      cpu_(machine->target()),
      host_(HostOf(*machine)),
      output_names_(OutputNames(graph)),
      tail_(graph.tail()),
      plain_inputs_(std::move(inputs)),
      inputs_(InputsIn(plan_.ends.inputs, graph, plain_inputs_)),
      outputs_(MakeOutputs(graph, plan_.ends.outputs)),
      input_pointers_(PointersTo<const Tensor*>(inputs_)),
      output_pointers_(PointersTo<Tensor*>(outputs_)),
      executor_(std::move(graph), plan, machine, stop) {}

void NetworkRun::Run() { executor_.Run(input_pointers_, output_pointers_); }

RunTimes NetworkRun::Time(int64_t runs, const std::function<void(size_t)>& between) {
  RunTimes times;
  times.untimed_seconds = SecondsOf([&] { Run(); });
  const bool as_sessions_do = executor_.device().ReadsHostMemory();  // else tensors would move, too
  UnlessInterrupted([&] {
    for (int64_t run = 0; run < runs; ++run) {
      times.seconds.push_back(SecondsOf([&] { as_sessions_do ? Run() : RunAgain(); }));
      if (between) between(times.seconds.size());
    }
  });
  if (times.seconds.empty()) throw Error(ErrorCode::kInterrupted, "interrupted before the first run");
  times.median = Quantile(times.seconds, 0.5);
  times.p10 = Quantile(times.seconds, 0.1);
  times.p90 = Quantile(times.seconds, 0.9);
  times.minimum = Quantile(times.seconds, 0);
  return times;
}

std::vector<StepProfile> NetworkRun::Profile(int runs) {
  return executor_.Profile(input_pointers_, output_pointers_, runs);
}

std::vector<StepProfile> NetworkRun::ProfileRepeated(int runs) {
  constexpr int kRepeats = 5;
  return executor_.RepeatSteps(input_pointers_, output_pointers_, runs, kRepeats);
}

bool NetworkRun::StoresBf16() const {
  return std::ranges::any_of(plan_.nodes, [](const NodePlan& node) {
    return node.layouts.in.type() == DataType::kBf16 || node.layouts.out.type() == DataType::kBf16;
  });
}

std::vector<NamedTensor> NetworkRun::Outputs() const {
  if (tail_) return Named(tail_->outputs(), tail_->Run(PlainTensors(outputs_).pointers(), &host_));
  std::vector<Tensor> plain;
  plain.reserve(outputs_.size());
  for (const Tensor& output : outputs_) plain.push_back(InLayout(output, Layout::Nchw(output.type())));
  return Named(output_names_, std::move(plain));
}

std::vector<Tensor> RandomInputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (Graph::NodeId id : graph.GraphInputs()) {
    const Node& node = graph.node(id);
    inputs.push_back(RandomInput(node.shape, node.type, seed + inputs.size()));
  }
  return inputs;
}

void TakeQuantization(const std::string& path, ModelOptions* model) {
  if (!path.empty() && !model->quantization) model->quantization = ReadPlanHeader(path).quantization;
}

int64_t ThreadsFor(const std::string& path, int64_t asked) {
  const bool fewer = asked > DetectCpu().cores && !path.empty() && asked <= ReadPlanHeader(path).threads;
  return fewer ? 0 : asked;
}

std::optional<std::string> NoteOfThreads(const std::string& path, const Plan& plan, int threads) {
  if (plan.threads == threads) return std::nullopt;
  return fmt::format("{}: made for {} thread{}, and {} run{} it: other schedules may be faster", path,
                     plan.threads, plan.threads == 1 ? "" : "s", threads, threads == 1 ? "s" : "");
}

namespace {

// What a plan predicts is of its own threads.
void ForgetPredictions(Plan& plan) {
  plan.predicted_seconds = 0;
  plan.at_distances.clear();
  for (NodePlan& node : plan.nodes) node.predicted_seconds = node.crossing_seconds = 0;
  for (TransformPlan& transform : plan.transforms)
    transform.predicted_seconds = transform.crossing_seconds = 0;
}

}  // namespace

Plan LoadPlan(const std::string& path, const Graph& graph, const DevicePtr& machine,
              const PlanLoading& loading) {
  if (path.empty()) return HeuristicPlan(graph, machine->target(), machine->threads());
  std::vector<Plan> plans = ReadPlans(path, loading.notes);
  const auto fitting = std::ranges::find(plans, GraphHash(graph), &Plan::graph_hash);
  if (fitting == plans.end() && !loading.force && (plans.size() > 1 || loading.other_sizes) &&
      std::ranges::find(plans, graph.name(), &Plan::network) != plans.end()) {
    if (loading.notes != nullptr) {
      loading.notes->push_back(fmt::format("{}: no plan in it is for inputs of {}: default schedules run",
                                           path, InputSizes(graph)));
    }
    return HeuristicPlan(graph, machine->target(), machine->threads());
  }
  Plan plan = std::move(fitting == plans.end() ? plans.front() : *fitting);
  try {
    CheckPlan(plan, graph, machine->target(), loading.strict ? machine->threads() : plan.threads,
              loading.force);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
  if (const auto note = NoteOfThreads(path, plan, machine->threads())) {
    ForgetPredictions(plan);
    if (loading.notes != nullptr && !loading.force) loading.notes->push_back(*note);
  }
  return plan;
}

Plan OpenPlan(const std::string& path, const Graph& graph, const DevicePtr& machine, PlanLoading loading) {
  std::vector<std::string> notes;
  loading.notes = &notes;
  Plan plan = LoadPlan(path, graph, machine, loading);
  for (const std::string& line : notes) PrintNote(line + "\n");
  return plan;
}

}  // namespace tilesmith
