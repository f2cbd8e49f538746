// Builds a network node by node, each as an ONNX file would state it (opset 13), so that what comes out is
// what importing the exported model would give: batch norms unfolded, activations separate.
//
// Parameters are random, drawn from a generator seeded by (network seed, node name): the same network always
// has the same weights, whatever order its nodes are built in. Their scale follows He et al., "Delving Deep
// into Rectifiers" (2015), section 2.2, so that a signal keeps its size through any depth.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/op_registry.h"
#include "ops/graph/graph.h"

namespace tilesmith {

struct ListedNode {
  std::string name;  // of its output as well
  std::string op_type;
  std::map<std::string, Attribute, std::less<>> attributes;
  std::vector<std::string> inputs;                       // names of graph inputs and nodes
  std::vector<std::shared_ptr<const Tensor>> constants;  // inputs that follow these
};

struct ModelListing {
  std::string name;
  int64_t opset = 13;
  std::vector<std::pair<std::string, Shape>> inputs;
  std::vector<ListedNode> nodes = {};
  std::vector<std::pair<std::string, Shape>> outputs;
};

struct Kernel2d {
  int64_t h = 1, w = 1;
};

struct ConvSpec {
  int64_t channels = 0;  // of the output
  Kernel2d kernel = {};
  int64_t stride = 1;
  Kernel2d pad = {0, 0};  // on both sides
  int64_t groups = 1;
  bool bias = false;
  // What the conv reads has passed a rectifier, which halves its second moment; the weights make up for it.
  bool rectified_input = true;
};

// A transposed conv whose kernel is as large as its stride: every input pixel becomes a square of its own.
struct UpConvSpec {
  int64_t channels = 0;  // of the output
  int64_t stride = 2;
};

struct PoolSpec {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  bool ceil_mode = false;
};

// Not thread-safe. Every method adds one node and returns it; it throws Error(kBadModel) naming the node when
// the input is too small for it.
class NetworkBuilder {
 public:
  using Id = Graph::NodeId;
  // `listing`, when there is one, gets everything that is added.
  NetworkBuilder(std::string network_name, uint64_t seed, ModelListing* listing = nullptr,
                 const SizeLimits& limits = {});

  Id Input(const std::string& name, Shape shape);
  Id Conv(const std::string& name, Id x, const ConvSpec& spec);
  Id ConvTranspose(const std::string& name, Id x, const UpConvSpec& spec);  // with bias, after a rectifier
  // Scales around `gain`, shifts and means around 0, variances around 1.
  Id BatchNorm(const std::string& name, Id x, float epsilon = 1e-5f, float gain = 1);
  Id Relu(const std::string& name, Id x);
  Id Relu6(const std::string& name, Id x);  // Clip to 0..6
  Id MaxPool(const std::string& name, Id x, const PoolSpec& spec);
  Id AveragePool(const std::string& name, Id x, const PoolSpec& spec);  // padding counts in the divisor
  Id GlobalAveragePool(const std::string& name, Id x);
  Id Concat(const std::string& name, const std::vector<Id>& inputs);  // along channels
  Id Add(const std::string& name, Id a, Id b);
  Id Flatten(const std::string& name, Id x);
  Id Gemm(const std::string& name, Id x, int64_t features);  // with bias
  Id Softmax(const std::string& name, Id x);

  const Shape& shape(Id id) const { return graph_.node(id).shape; }
  int64_t channels(Id id) const { return shape(id)[1]; }
  // Marks the output and hands the graph over; the builder is empty afterwards.
  Graph Finish(Id output);

 private:
  using Attributes = std::map<std::string, Attribute, std::less<>>;
  using Constant = std::shared_ptr<const Tensor>;
  Id AddNode(const std::string& name, std::string op_type, Attributes attributes,
             const std::vector<Id>& inputs, const std::vector<Constant>& constants = {});
  Attributes PoolAttributes(const PoolSpec& spec) const;
  // Uniform in [center - radius, center + radius].
  Constant Random(const std::string& name, Shape shape, float center, float radius) const;

  Graph graph_;
  uint64_t seed_;
  ModelListing* listing_;
};

}  // namespace tilesmith
