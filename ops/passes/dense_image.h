// Dense layers as 1x1 convolutions: rows are the pixels of one image, which is how they lie in NHWC.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/dense/gemm.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// nullopt where no workload can state it: of no rows, or of none or too many channels. `shape` is that of the
// output.
std::optional<ConvWorkload> DenseWorkload(const GemmOp& gemm, const Shape& shape);

struct DenseNode {
  std::string name;
  Shape shape;          // of its output
  bool output = false;  // whose name stays with the last node, any other with the convolution
  ConvWorkload workload;
};
// Adds the convolution `conv` of these inputs, of any types, and the views around it; the last of them.
Graph::NodeId AddDense(Graph& result, const DenseNode& dense, OpPtr conv,
                       const std::vector<Graph::NodeId>& inputs);

}  // namespace tilesmith
