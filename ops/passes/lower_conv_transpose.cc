#include <algorithm>

#include "layouts/base/error.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/movement/depth_to_space.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// One axis. Output position y with y + begin = stride * q + r gets, for each m, tap r + stride * m of input
// q - m: for each phase r a conv with every stride-th tap, in reverse order.
struct Axis {
  int64_t stride, taps;  // of the conv: the longest phase's, the others end in zeros
  int64_t first, count;  // the q that are computed: those with outputs, and what a conv cannot leave out
  int64_t crop_begin, crop_end;
};

struct AxisSizes {
  int64_t input, kernel, stride, begin, output;
};

Axis AxisOf(const AxisSizes& sizes) {
  Axis axis{};
  axis.stride = sizes.stride;
  axis.taps = (sizes.kernel + sizes.stride - 1) / sizes.stride;
  axis.first = std::min(sizes.begin / sizes.stride, axis.taps - 1);
  const int64_t end = (sizes.begin + sizes.output - 1) / sizes.stride + 1;
  axis.count = std::max(end, sizes.input) - axis.first;
  axis.crop_begin = sizes.begin - axis.first * sizes.stride;
  axis.crop_end = axis.count * sizes.stride - axis.crop_begin - sizes.output;
  return axis;
}

struct Lowering {
  const ConvTransposeOp& op;
  Axis rows, columns;
  DepthToSpaceOp shuffle;

  int64_t phases() const { return rows.stride * columns.stride; }
};

Lowering LoweringOf(const ConvTransposeOp& op) {
  const ConvTransposeParams& p = op.params();
  const Shape& kernel = op.weights()->shape();
  const Axis rows = AxisOf({p.input[2], kernel[2], p.sh, p.top, p.oh});
  const Axis columns = AxisOf({p.input[3], kernel[3], p.sw, p.left, p.ow});
  DepthToSpaceParams shuffle{.bh = p.sh, .bw = p.sw};
  // Each group's outputs must be adjacent; without groups the other order moves more at once.
  shuffle.order = p.groups == 1 ? DepthOrder::kDcr : DepthOrder::kCrd;
  shuffle.top = rows.crop_begin, shuffle.bottom = rows.crop_end;
  shuffle.left = columns.crop_begin, shuffle.right = columns.crop_end;
  return {op, rows, columns, DepthToSpaceOp(shuffle)};
}

ConvWorkload WorkloadOf(const Lowering& l) {
  const ConvTransposeParams& p = l.op.params();
  ConvWorkload w;
  w.mb = p.input[0], w.ic = p.input[1], w.ih = p.input[2], w.iw = p.input[3];
  w.g = p.groups, w.oc = (Checked(l.op.output_channels()) * l.phases()).value();
  w.oh = l.rows.count, w.ow = l.columns.count;
  w.kh = l.rows.taps, w.kw = l.columns.taps;
  w.ph = l.rows.taps - 1 - l.rows.first, w.pw = l.columns.taps - 1 - l.columns.first;
  w.post.bias = l.op.bias() != nullptr;
  w.post.activation = l.op.activation();
  return w;
}

// Calls body(o, i, j, channel) for output channel o and phase (i, j) of the transposed conv, and the channel
// of the conv that computes them.
template <typename Body>
void ForEachChannel(const Lowering& l, const Body& body) {
  const int64_t channels = l.op.output_channels();
  for (int64_t o = 0; o < channels; ++o) {
    for (int64_t i = 0; i < l.rows.stride; ++i) {
      for (int64_t j = 0; j < l.columns.stride; ++j) body(o, i, j, l.shuffle.Channel(channels, o, i, j));
    }
  }
}

std::shared_ptr<const Tensor> WeightsOf(const Lowering& l, const ConvWorkload& w) {
  auto result = std::make_shared<Tensor>(w.weights_shape());
  const Shape& from = l.op.weights()->shape();
  const int64_t group_in = w.ic / w.g;
  ForEachChannel(l, [&](int64_t o, int64_t i, int64_t j, int64_t channel) {
    const int64_t group = o / from[1];
    for (int64_t c = 0; c < group_in; ++c) {
      const float* taps =
          l.op.weights()->floats() + ((group * group_in + c) * from[1] + o % from[1]) * from[2] * from[3];
      float* out = result->floats() + (channel * group_in + c) * w.kh * w.kw;
      for (int64_t y = i, row = w.kh - 1; y < from[2]; y += l.rows.stride, --row) {
        for (int64_t x = j, column = w.kw - 1; x < from[3]; x += l.columns.stride, --column) {
          out[row * w.kw + column] = taps[y * from[3] + x];
        }
      }
    }
  });
  return result;
}

std::shared_ptr<const Tensor> BiasOf(const Lowering& l, const ConvWorkload& w) {
  if (l.op.bias() == nullptr) return nullptr;
  auto result = std::make_shared<Tensor>(Shape{w.oc});
  ForEachChannel(l, [&](int64_t o, int64_t, int64_t, int64_t channel) {
    result->floats()[channel] = l.op.bias()->floats()[o];
  });
  return result;
}

// Null where no workload can state it: dilated, or with an output far larger than what the input reaches; and
// where strides beyond the kernel would make weights of zeros.
std::shared_ptr<const ConvOp> ConvOf(const Lowering& l) {
  constexpr int64_t kMaxGrowth = 16;
  if (l.op.params().dh != 1 || l.op.params().dw != 1) return nullptr;
  ConvWorkload w;
  try {
    w = WorkloadOf(l);
    ValidateWorkload(w);
  } catch (const Error&) {
    return nullptr;
  }
  if (ElementCount(w.weights_shape()) > kMaxGrowth * l.op.weights()->size()) return nullptr;
  return std::make_shared<ConvOp>(w, WeightsOf(l, w), BiasOf(l, w));
}

}  // namespace

Graph LowerConvTranspose(const Graph& graph) {
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const ConvTransposeOp* op = OpAs<ConvTransposeOp>(graph, id);
        if (op == nullptr) return std::nullopt;
        const Lowering lowering = LoweringOf(*op);
        const std::shared_ptr<const ConvOp> conv = ConvOf(lowering);
        if (conv == nullptr) return std::nullopt;
        const std::string& name = graph.node(id).name;
        const bool shuffles =
            lowering.phases() > 1 || conv->workload().output_shape() != graph.node(id).shape;
        const NodeId product = result.Add(shuffles ? name + ".conv" : name, conv, inputs);
        if (!shuffles) return product;
        return result.Add(name, std::make_shared<DepthToSpaceOp>(lowering.shuffle), {product});
      });
}

}  // namespace tilesmith
