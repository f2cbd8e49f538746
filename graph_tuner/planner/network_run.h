// A network made ready to run: executor, inputs, outputs, and how long runs take.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph_tuner/check/network_check.h"
#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/executor.h"

namespace tilesmith {

struct RunTimes {
  std::vector<double> seconds;  // of each run, in order
  double median = 0, p10 = 0, p90 = 0, minimum = 0;
  double untimed_seconds = 0;  // of the run before them
};

class NetworkRun {
 public:
  // Preconditions: the plan belongs to the graph; inputs are the graph's, in its order, plain: they are
  // brought into the plan's end layouts here. A graph that is moved here lets go of weights that are packed.
  // `stop` outlives the object.
  NetworkRun(Graph graph, const Plan& plan, const DevicePtr& machine, std::vector<Tensor> inputs,
             const StopFlag* stop = nullptr);
  // Of a network that is compiled, by this plan where that is known.
  NetworkRun(std::shared_ptr<const CompiledNetwork> network, Plan plan, std::vector<Tensor> inputs,
             const StopFlag* stop = nullptr);
  NetworkRun(std::shared_ptr<const CompiledNetwork> network, std::vector<Tensor> inputs,
             const StopFlag* stop = nullptr);

  // All of these throw Error(kInterrupted) when they are stopped, at the next stage of the network.
  void Run();
  // Once more, without moving inputs and outputs (Executor::RunAgain).
  void RunAgain() { executor_.RunAgain(); }
  // An untimed run, then `runs` timed ones, each followed by `between(how many there are)`. Stopped with at
  // least one run timed, it returns those there are.
  RunTimes Time(int64_t runs, const std::function<void(size_t)>& between = {});
  std::vector<StepProfile> Profile(int runs);
  // The same when every step is repeated.
  std::vector<StepProfile> ProfileRepeated(int runs);
  // Outputs and every layer beside the reference's (network_check.h). Precondition: the graph this was made
  // for and its plan, with its weights.
  NetworkCheck Check(const Graph& graph) {
    return CheckNetwork(executor_, graph, plan_, cpu_, plain_inputs_);
  }

  Executor& executor() { return executor_; }
  const std::vector<Tensor>& inputs() const { return plain_inputs_; }
  const EndLayouts& ends() const { return plan_.ends; }
  // Says whether some node of the plan reads or writes bf16.
  bool StoresBf16() const;
  // The model's, by name, after a run; plain, in their true sizes.
  std::vector<std::pair<std::string, Tensor>> Outputs() const;

 private:
  std::shared_ptr<const CompiledNetwork> network_;
  Plan plan_;
  Target cpu_;
  OpMachine host_;
  std::vector<Tensor> plain_inputs_, inputs_, outputs_;
  std::vector<const Tensor*> input_pointers_;
  std::vector<Tensor*> output_pointers_;
  Executor executor_;
};

// Seeded data for every input, plain.
std::vector<Tensor> SeededInputs(std::span<const UserTensor> inputs, uint64_t seed);
std::vector<Tensor> SeededInputs(const Graph& graph, uint64_t seed);

}  // namespace tilesmith
