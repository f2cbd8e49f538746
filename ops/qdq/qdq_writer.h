// A plan carried out on the model.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ops/qdq/qdq_plan.h"

namespace tilesmith {

// The plan is the graph's; a quantiser for each of its groups. `source` is for messages.
struct QdqJob {
  const onnx::GraphProto& graph;
  const QdqPlan& plan;
  std::span<const TensorQuantizer> quantizers;
  int largest_weight;
  const std::string& source;
};

struct WrittenQdq {
  onnx::GraphProto graph;
  std::vector<QdqLayer> layers;                   // of each unit, in order
  std::map<std::string, std::string> byte_nodes;  // as QdqFile has them
};

// As QdqModel::Write, WriteSimulated and WriteAlone say.
WrittenQdq WriteQdqGraph(const QdqJob& job);
WrittenQdq WriteSimulatedGraph(const QdqJob& job);
WrittenQdq WriteLayersAlone(const QdqJob& job);

}  // namespace tilesmith
