#include "graph_tuner/planner/network_run.h"

#include <algorithm>

#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/planner/work.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "layouts/random_tensor.h"

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

std::vector<std::pair<std::string, Tensor>> NetworkRun::Outputs() const {
  std::vector<Tensor> plain;
  if (tail_) plain = tail_->Run(PlainTensors(outputs_).pointers(), &host_);
  const std::vector<std::string>& names = tail_ ? tail_->outputs() : output_names_;
  std::vector<std::pair<std::string, Tensor>> named;
  for (size_t i = 0; i < names.size(); ++i) {
    named.emplace_back(names[i],
                       tail_ ? std::move(plain[i]) : InLayout(outputs_[i], Layout::Nchw(outputs_[i].type())));
  }
  return named;
}

std::vector<Tensor> SeededInputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (Graph::NodeId id : graph.GraphInputs()) {
    const Node& node = graph.node(id);
    inputs.push_back(RandomInput(node.shape, node.type, seed + inputs.size()));
  }
  return inputs;
}

}  // namespace tilesmith
