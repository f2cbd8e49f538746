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
  // With `calibrated` that is what Calibrate gives.
  ModelNetwork(ModelOptions model, DevicePtr machine, QuantizationPtr calibrated = {});
  Graph Load(const QuantizationPtr& quantization) const override;
  std::vector<std::vector<Tensor>> Samples(const Graph& graph, int64_t most) const override;
  QuantizationPtr Calibrate(const WorkSinks& sinks) override;
  QuantizedLayers LayerErrors(const QuantizationPtr& quantization, int64_t samples,
                              const WorkSinks& sinks) const override;

 private:
  ModelOptions model_;
  const DevicePtr machine_;
  const QuantizationPtr calibrated_;
};

struct GraphTuneModelRequest : PlanEffort {
  GraphTuningArguments arguments;   // model, machine, log, and how to choose
  std::string plan_path;            // written as soon as there is a plan worth having
  QuantizationPtr calibrated = {};  // by which mixed quantises; null: the model is calibrated
};

// Plans every size of the model's inputs (SizesOf), one after the other, each with its share of the time that
// is left; the file holds a plan for each, the best so far from the first solution on. `on_planned` is called
// behind each, with the size's options. Nothing else may run in the process meanwhile. Throws as PlanNetwork
// does, Error(kEnvironment) when the plan cannot be written, and Error(kInterrupted), which says what the
// file holds, behind the size in which it is stopped.
void GraphTuneModel(const GraphTuneModelRequest& request, const WorkSinks& sinks,
                    const std::function<void(const ModelOptions&, const PlannedNetwork&)>& on_planned = {});

}  // namespace tilesmith
