// What `tilesmith graph-tune` and the APIs ask the planner: for a model, a tuning log and a plan file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph_tuner/planner/plan_network.h"
#include "tools/cli/graph_tuning.h"

namespace tilesmith {

// A MODEL as the planner sees it. What the options' own quantization says is left aside.
class ModelNetwork : public NetworkSource {
 public:
  // `machine` is what it is calibrated on.
  ModelNetwork(ModelOptions model, DevicePtr machine);
  Graph Load(const QuantizationPtr& quantization) const override;
  std::vector<std::vector<Tensor>> Samples(const Graph& graph, int64_t most) const override;
  // The same whenever it is asked.
  QuantizationPtr Calibrate(const WorkSinks& sinks) override;
  ModelFile File() const override;

 private:
  ModelOptions model_;
  const DevicePtr machine_;
  QuantizationPtr calibrated_;
};

// A model with every size of its inputs (SizesOf).
class ModelSizes {
 public:
  ModelSizes(const ModelOptions& model, const DevicePtr& machine);
  const std::vector<NetworkSource*>& networks() const { return pointers_; }

 private:
  std::vector<std::unique_ptr<ModelNetwork>> networks_;
  std::vector<NetworkSource*> pointers_;
};

struct GraphTuneModelRequest : PlanEffort {
  GraphTuningArguments arguments;  // model, machine, log, and how to choose
  std::string plan_path;           // written as soon as there is a plan worth having
};

// Plans every size of the model's inputs (PlanSizes); the file holds a plan for each, the best so far from
// the first solution on. `on_planned` is called behind each, with the size's options. Nothing else may run in
// the process meanwhile. Throws as PlanNetwork does, Error(kEnvironment) when the plan cannot be written, and
// Error(kInterrupted), which says what the file holds, behind the size in which it is stopped.
void GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks,
                    const std::function<void(const ModelOptions&, const PlannedNetwork&)>& on_planned = {});

// What `open_costs` of the planner's requests is; at first it warns where others use the machine.
std::function<std::unique_ptr<CostSource>()> CostsOf(const GraphTuningArguments& arguments,
                                                     const DevicePtr& machine, const WorkSinks& sinks);

}  // namespace tilesmith
