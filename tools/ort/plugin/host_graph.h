// ONNX Runtime's graph as plain values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/onnx/host_model.h"
#include "tools/ort/plugin/ort_api.h"
#include "tools/ort/regions.h"

namespace tilesmith {

struct HostValue {
  std::string name;  // "" where an input is absent
  HostTensorType type;
  const OrtValue* constant = nullptr;  // the host's, while its graph lives
};

struct HostGraphNode {
  const OrtNode* handle = nullptr;
  HostNode node;
  std::vector<HostValue> inputs, outputs;
  std::vector<std::string> read_by_subgraphs;  // names, where the node has some
  bool is_context = false;                     // what this provider compiled
  std::string unreadable;                      // why its attributes cannot be had; "" when they can
};

struct HostGraph {
  int64_t opset = 0;                 // of the default domain
  bool is_subgraph = false;          // of an If, a Loop, ...
  std::vector<HostGraphNode> nodes;  // in an order of execution
  std::vector<HostValue> inputs;     // weights excepted
  std::vector<std::string> outputs;
};
HostGraph ReadGraph(const OrtApi& api, const OrtGraph* graph);

// What a node reads or writes, in its order; for the one that stands for a whole region, too.
std::vector<HostValue> InputsOf(const OrtApi& api, const OrtNode* node);
std::vector<HostValue> OutputsOf(const OrtApi& api, const OrtNode* node);
std::vector<std::string> NamesOf(const std::vector<HostValue>& values);

// An attribute of a node; "" and `otherwise` where it has none of that name.
std::string TextAttribute(const OrtApi& api, const OrtNode* node, const char* name);
int64_t NumberAttribute(const OrtApi& api, const OrtNode* node, const char* name, int64_t otherwise);

// The nodes `members` of the graph as a model with those outputs, and those of `inputs` that are no
// constants. Data of constants stays the host's.
HostModel ModelOf(const OrtApi& api, const HostGraph& graph, const std::string& name,
                  std::span<const size_t> members, std::span<const HostValue> inputs,
                  std::vector<std::string> outputs);
// With so large a batch where the model leaves it open.
HostModel WithBatch(HostModel model, int64_t batch);
bool HasOpenBatch(const HostModel& model);

// One set of nodes to be taken over, and what enters and leaves it.
struct HostRegion {
  std::vector<size_t> members;
  std::vector<HostValue> inputs;
  std::vector<std::string> outputs;
};

struct HostRegions {
  std::vector<HostRegion> regions;
  std::vector<std::string> refused;  // `Op "node": reason`, one for each node that is not supported
};
// What tilesmith can compute of the graph, and what it has compiled. Every region was imported, with an open
// batch for two of its sizes, so that compiling it does not fail for what the model is.
HostRegions SupportedRegions(const OrtApi& api, const HostGraph& graph, const ImportOptions& options);

}  // namespace tilesmith
