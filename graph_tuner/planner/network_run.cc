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

std::vector<Tensor> InputsIn(const std::vector<UserTensor>& wanted, const std::vector<Tensor>& plain) {
  std::vector<Tensor> inputs;
  inputs.reserve(plain.size());
  for (size_t i = 0; i < plain.size(); ++i) inputs.push_back(InLayout(plain[i], wanted[i].layout));
  return inputs;
}

std::vector<Tensor> MakeOutputs(const std::vector<UserTensor>& wanted) {
  std::vector<Tensor> outputs;
  outputs.reserve(wanted.size());
  for (const UserTensor& tensor : wanted) outputs.emplace_back(tensor.shape, tensor.layout);
  return outputs;
}

}  // namespace

NetworkRun::NetworkRun(std::shared_ptr<const CompiledNetwork> network, Plan plan, std::vector<Tensor> inputs,
                       const StopFlag* stop)
    : network_(std::move(network)),
      plan_(std::move(plan)),
      cpu_(network_->device->target()),
      host_(HostOf(*network_->device)),
      plain_inputs_(std::move(inputs)),
      inputs_(InputsIn(network_->inputs, plain_inputs_)),
      outputs_(MakeOutputs(network_->outputs)),
      input_pointers_(PointersTo<const Tensor*>(inputs_)),
      output_pointers_(PointersTo<Tensor*>(outputs_)),
      executor_(network_, stop) {}

NetworkRun::NetworkRun(Graph graph, const Plan& plan, const DevicePtr& machine, std::vector<Tensor> inputs,
                       const StopFlag* stop)
    : NetworkRun(CompileNetwork(std::move(graph), plan, machine, stop), plan, std::move(inputs), stop) {}

NetworkRun::NetworkRun(std::shared_ptr<const CompiledNetwork> network, std::vector<Tensor> inputs,
                       const StopFlag* stop)
    : NetworkRun(std::move(network), {}, std::move(inputs), stop) {}

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
  const std::shared_ptr<const Tail>& tail = network_->tail;
  std::vector<Tensor> plain;
  if (tail) plain = tail->Run(PlainTensors(outputs_).pointers(), &host_);
  std::vector<std::pair<std::string, Tensor>> named;
  named.reserve(std::max(plain.size(), outputs_.size()));
  for (size_t i = 0; i < plain.size(); ++i) named.emplace_back(tail->outputs()[i], std::move(plain[i]));
  for (size_t i = 0; !tail && i < outputs_.size(); ++i)
    named.emplace_back(network_->outputs[i].name, InLayout(outputs_[i], Layout::Nchw(outputs_[i].type())));
  return named;
}

std::vector<Tensor> SeededInputs(std::span<const UserTensor> wanted, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const UserTensor& tensor : wanted)
    inputs.push_back(RandomInput(tensor.shape, tensor.layout.type(), seed + inputs.size()));
  return inputs;
}

std::vector<Tensor> SeededInputs(const Graph& graph, uint64_t seed) {
  return SeededInputs(UserTensors(graph, graph.GraphInputs()), seed);
}

}  // namespace tilesmith
