#include "ops/passes/dense_image.h"

#include "layouts/base/error.h"
#include "ops/movement/transpose.h"
#include "ops/movement/view.h"
#include "ops/passes/pass_util.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;
using Permutation = std::vector<int64_t>;

const Permutation kChannelsLast = {0, 2, 3, 1}, kChannelsSecond = {0, 3, 1, 2};

// A view of `node` under another shape, without the reshapes in front of it.
NodeId Reshaped(Graph& result, NodeId node, const Shape& shape, const std::string& name = "") {
  while (OpAs<ViewOp>(result, node) != nullptr) node = result.Inputs(node)[0];
  if (name.empty() && result.node(node).shape == shape) return node;
  return result.Add(name, std::make_shared<ViewOp>("Reshape", shape), {node});
}

// Moves the channels, or back what moved them before.
NodeId Transposed(Graph& result, NodeId node, const Permutation& perm, const std::string& name = "") {
  const TransposeOp* before = OpAs<TransposeOp>(result, node);
  if (name.empty() && before != nullptr && before->perm() != perm && before->IsView()) {
    return result.Inputs(node)[0];
  }
  return result.Add(name, std::make_shared<TransposeOp>(perm), {node});
}

// Rows of `channels` as the pixels of one image, which is how they lie in NHWC.
NodeId AsImage(Graph& result, NodeId rows, int64_t pixels, int64_t channels) {
  if (pixels == 1) return Reshaped(result, rows, {1, channels, 1, 1});
  return Transposed(result, Reshaped(result, rows, {1, 1, pixels, channels}), kChannelsSecond);
}

}  // namespace

std::optional<ConvWorkload> DenseWorkload(const GemmOp& gemm, const Shape& shape) {
  ConvWorkload w;
  w.ic = gemm.k(), w.oc = gemm.n();
  w.ih = w.oh = 1;
  w.iw = w.ow = w.oc == 0 ? 0 : ElementCount(shape) / w.oc;
  w.post = {.bias = gemm.bias() != nullptr, .sum = gemm.sum(), .activation = gemm.activation()};
  try {
    ValidateWorkload(w);
  } catch (const Error&) {
    return std::nullopt;
  }
  return w;
}

Graph::NodeId AddDense(Graph& result, const DenseNode& dense, OpPtr conv, const std::vector<NodeId>& inputs) {
  const auto& [name, shape, output, w] = dense;
  std::vector<NodeId> images = {AsImage(result, inputs[0], w.iw, w.ic)};
  if (w.post.sum) images.push_back(AsImage(result, inputs[1], w.ow, w.oc));
  NodeId last = result.Add(output ? name + ".conv" : name, std::move(conv), images);
  const std::string view = output ? name : name + ".view";
  if (w.ow == 1) return Reshaped(result, last, shape, view);
  const Shape rows = {1, 1, w.ow, w.oc};
  const bool reshaped = shape != rows;
  last = Transposed(result, last, kChannelsLast, reshaped ? name + ".rows" : view);
  return reshaped ? Reshaped(result, last, shape, view) : last;
}

}  // namespace tilesmith
