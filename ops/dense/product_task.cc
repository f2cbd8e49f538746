#include "ops/dense/product_task.h"

#include "layouts/base/error.h"
#include "ops/conv/convolution.h"

namespace tilesmith {
namespace {

// Whether the rows of what is seen lie side by side, and not its columns; of a vector, no.
bool IsTransposed(const Arrangement& arrangement, const Shape& tensor) {
  const std::vector<int64_t> strides = StridesOf(arrangement, tensor).strides;
  const size_t rank = strides.size();
  return rank >= 2 && strides[rank - 1] != 1 && strides[rank - 2] == 1;
}

}  // namespace

std::optional<ConvWorkload> ProductOf(const MatMulOp& op, std::span<const Shape> inputs) {
  const MatMulParams& params = op.params();
  const MatMulShapes s = ShapesOf(params, inputs);
  ConvWorkload workload =
      ProductWorkload({ElementCount(s.batch), s.m, s.n, s.k},
                      {IsTransposed(params.a, inputs[0]), IsTransposed(params.b, inputs[1])});
  try {
    ValidateWorkload(workload);
  } catch (const Error&) {
    return std::nullopt;
  }
  return workload;
}

std::optional<ConvWorkload> TaskOf(const Graph& graph, Graph::NodeId id) {
  const Op* const op = graph.node(id).op.get();
  if (const auto* conv = dynamic_cast<const ConvolutionOp*>(op)) return conv->workload();
  if (const auto* product = dynamic_cast<const MatMulOp*>(op))
    return ProductOf(*product, graph.InputShapes(id));
  return std::nullopt;
}

}  // namespace tilesmith
