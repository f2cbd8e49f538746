#include "tools/network/network_run.h"

#include <algorithm>

#include "graph_tuner/executor/end_tensors.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "tools/bench/random_tensor.h"
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

Plan OpenPlan(const std::string& path, const Graph& graph, const DevicePtr& machine, PlanLoading loading) {
  std::vector<std::string> notes;
  loading.notes = &notes;
  Plan plan = LoadPlan(path, graph, machine, loading);
  for (const std::string& line : notes) PrintNote(line + "\n");
  return plan;
}

}  // namespace tilesmith
