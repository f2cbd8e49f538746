#include <algorithm>
#include <set>

#include "layouts/base/error.h"
#include "layouts/derived_tensors.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/movement/concat.h"
#include "ops/movement/depth_to_space.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"
#include "ops/pool/pool.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

bool PadsPlanesWithZeros(const PadOp& pad) {
  const auto& begin = pad.begin();
  const auto& end = pad.end();
  if (pad.mode() != PadMode::kConstant || pad.value() != 0 || begin.size() != 4) return false;
  if (begin[0] != 0 || begin[1] != 0 || end[0] != 0 || end[1] != 0) return false;
  return std::min({begin[2], begin[3], end[2], end[3]}) >= 0;
}

OpPtr WithPad(const PadOp& pad, const ConvOp& conv) {
  ConvWorkload workload = conv.workload();
  workload.ih -= pad.begin()[2] + pad.end()[2];
  workload.iw -= pad.begin()[3] + pad.end()[3];
  workload.ph += pad.begin()[2];
  workload.pw += pad.begin()[3];
  try {
    ValidateWorkload(workload);
  } catch (const Error&) {
    return nullptr;  // more padding at the end than a workload can state
  }
  return std::make_shared<ConvOp>(workload, conv.weights(), conv.bias());
}

OpPtr WithPad(const PadOp& pad, const PoolOp& pool) {
  PoolWindow window = pool.window();
  const bool own_padding = window.top + window.left + window.bottom + window.right > 0;
  if (window.kind != PoolKind::kAverage || window.ceil_mode || (own_padding && !window.count_include_pad)) {
    return nullptr;
  }
  window.count_include_pad = true;  // the zeros were data, and counted
  window.top += pad.begin()[2];
  window.left += pad.begin()[3];
  window.bottom += pad.end()[2];
  window.right += pad.end()[3];
  return std::make_shared<PoolOp>(window);
}

OpPtr Folded(const Graph& graph, NodeId id) {
  const std::vector<NodeId> inputs = graph.Inputs(id);
  if (inputs.empty()) return nullptr;
  const PadOp* pad = graph.As<PadOp>(inputs[0]);
  if (pad == nullptr || !PadsPlanesWithZeros(*pad)) return nullptr;
  if (const ConvOp* conv = graph.As<ConvOp>(id)) return WithPad(*pad, *conv);
  if (const PoolOp* pool = graph.As<PoolOp>(id)) return WithPad(*pad, *pool);
  return nullptr;
}

}  // namespace

Graph FoldPad(const Graph& graph) {
  std::vector<NodeId> unpadded(graph.size());  // of each Pad, its input in the result
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (graph.As<PadOp>(id) != nullptr) unpadded[id] = inputs[0];
        OpPtr folded = Folded(graph, id);
        if (folded == nullptr) return std::nullopt;
        std::vector<NodeId> sources = inputs;
        sources[0] = unpadded[graph.Inputs(id)[0]];
        return result.Add(graph.node(id).name, std::move(folded), sources);
      });
}

namespace {

// A node as slices of rows and columns of `source`, which is no slice itself.
struct SlicedImage {
  NodeId source = 0;
  SliceAxis rows, columns;
};

bool IsWhole(const SliceAxis& axis, int64_t size) {
  return axis.start == 0 && axis.step == 1 && axis.count == size;
}

// Position i of `inner` is a position of the tensor that `outer` cuts.
SliceAxis Composed(const SliceAxis& outer, const SliceAxis& inner) {
  return {outer.start + inner.start * outer.step, outer.step * inner.step, inner.count};
}

std::optional<SlicedImage> SlicesOf(const Graph& graph, NodeId id) {
  const Shape& shape = graph.node(id).shape;
  if (shape.size() != 4) return std::nullopt;
  SlicedImage slices{id, {0, 1, shape[2]}, {0, 1, shape[3]}};
  while (const SliceOp* op = graph.As<SliceOp>(slices.source)) {
    const NodeId input = graph.Inputs(slices.source)[0];
    const Shape& whole = graph.node(input).shape;
    const std::vector<SliceAxis> axes = op->Axes(whole);
    if (!IsWhole(axes[0], whole[0]) || !IsWhole(axes[1], whole[1])) return std::nullopt;
    slices = {input, Composed(axes[2], slices.rows), Composed(axes[3], slices.columns)};
  }
  return slices;
}

// A concat of all phases (y, x) of an image cut with steps sy and sx, in the order of the inputs.
struct SpaceToDepth {
  NodeId source = 0;
  int64_t sy = 1, sx = 1;
  std::vector<std::pair<int64_t, int64_t>> phases;
};

bool IsPhase(const SliceAxis& axis, int64_t step, int64_t size) {
  return axis.step == step && axis.start >= 0 && axis.start < step && axis.count * step == size;
}

std::optional<SpaceToDepth> SpaceToDepthOf(const Graph& graph, NodeId id) {
  const ConcatOp* concat = graph.As<ConcatOp>(id);
  if (concat == nullptr || concat->axis() != 1) return std::nullopt;
  SpaceToDepth found;
  for (const NodeId input : graph.Inputs(id)) {
    const std::optional<SlicedImage> slices = SlicesOf(graph, input);
    if (!slices) return std::nullopt;
    if (found.phases.empty()) {
      found = {slices->source, slices->rows.step, slices->columns.step, {}};
    }
    const Shape& image = graph.node(found.source).shape;
    if (slices->source != found.source || !IsPhase(slices->rows, found.sy, image[2]) ||
        !IsPhase(slices->columns, found.sx, image[3])) {
      return std::nullopt;
    }
    found.phases.emplace_back(slices->rows.start, slices->columns.start);
  }
  const std::set<std::pair<int64_t, int64_t>> distinct(found.phases.begin(), found.phases.end());
  const int64_t phases = found.sy * found.sx;
  const bool complete =
      static_cast<int64_t>(distinct.size()) == phases && static_cast<int64_t>(found.phases.size()) == phases;
  return complete && phases > 1 ? std::optional(found) : std::nullopt;
}

bool CanReadTheImage(const Graph& graph, NodeId consumer, NodeId tensor) {
  const ConvWorkload* w = ConvReading(graph, consumer, tensor);
  return w != nullptr && w->g == 1 && w->dh == 0 && w->dw == 0;
}

OpPtr OnTheImage(const ConvOp& conv, const SpaceToDepth& from) {
  const ConvWorkload& old = conv.workload();
  ConvWorkload w = old;
  const int64_t phases = from.sy * from.sx;
  w.ic /= phases;
  w.ih *= from.sy, w.kh *= from.sy, w.sh *= from.sy, w.ph *= from.sy;
  w.iw *= from.sx, w.kw *= from.sx, w.sw *= from.sx, w.pw *= from.sx;
  Derivation derivation("weights of phases, on the image");
  derivation.Add(conv.weights()).Add({from.sy, from.sx});
  for (const auto& [y, x] : from.phases) derivation.Add({y, x});
  TensorPtr weights = Derived(std::move(derivation), [&] {
    auto spread = std::make_shared<Tensor>(w.weights_shape());
    const float* in = conv.weights()->floats();
    for (int64_t o = 0; o < old.oc; ++o) {
      for (int64_t c = 0; c < old.ic; ++c) {
        const auto [y, x] = from.phases[c / w.ic];
        float* out = spread->floats() + (o * w.ic + c % w.ic) * w.kh * w.kw;
        for (int64_t i = 0; i < old.kh; ++i) {
          for (int64_t j = 0; j < old.kw; ++j) out[(i * from.sy + y) * w.kw + j * from.sx + x] = *in++;
        }
      }
    }
    return spread;
  });
  return std::make_shared<ConvOp>(w, std::move(weights), conv.bias());
}

// For each node what its concat is, where every reader can take it.
std::vector<std::optional<SpaceToDepth>> FindFoldable(const Graph& graph) {
  std::vector<std::optional<SpaceToDepth>> foldable(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::vector<NodeId> consumers = graph.Consumers(id);
    const bool taken = !graph.IsOutput(id) && std::ranges::all_of(consumers, [&](NodeId consumer) {
      return CanReadTheImage(graph, consumer, id);
    });
    if (taken) foldable[id] = SpaceToDepthOf(graph, id);
  }
  return foldable;
}

}  // namespace

Graph FoldSpaceToDepth(const Graph& graph) {
  const std::vector<std::optional<SpaceToDepth>> foldable = FindFoldable(graph);
  if (std::ranges::none_of(foldable, [](const auto& found) { return found.has_value(); })) return graph;
  // For slices and what is folded: the node of the result that they are cut from.
  std::vector<NodeId> images(graph.size());
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (graph.As<SliceOp>(id) != nullptr) {
          const NodeId input = graph.Inputs(id)[0];
          images[id] = graph.As<SliceOp>(input) != nullptr ? images[input] : inputs[0];
        }
        if (foldable[id]) images[id] = images[graph.Inputs(id)[0]];
        const ConvOp* conv = graph.As<ConvOp>(id);
        if (conv == nullptr || !foldable[graph.Inputs(id)[0]]) return std::nullopt;
        const NodeId concat = graph.Inputs(id)[0];
        std::vector<NodeId> sources = inputs;
        sources[0] = images[concat];
        return result.Add(graph.node(id).name, OnTheImage(*conv, *foldable[concat]), sources);
      });
}

namespace {

// One axis. Output position y with y + begin = stride * q + r gets, for each m, tap r + stride * m of input
// q - m: for each phase r a conv with every stride-th tap, in reverse order.
struct SlicedAxis {
  int64_t stride, taps;  // of the conv: the longest phase's, the others end in zeros
  int64_t first, count;  // the q that are computed: those with outputs, and what a conv cannot leave out
  int64_t crop_begin, crop_end;
};

struct PhaseSizes {
  int64_t input, kernel, stride, begin, output;
};

SlicedAxis AxisOf(const PhaseSizes& sizes) {
  SlicedAxis axis{};
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
  SlicedAxis rows, columns;
  DepthToSpaceOp shuffle;

  int64_t phases() const { return rows.stride * columns.stride; }
};

Lowering LoweringOf(const ConvTransposeOp& op) {
  const ConvTransposeParams& p = op.params();
  const Shape& kernel = op.weights()->shape();
  const SlicedAxis rows = AxisOf({p.input[2], kernel[2], p.sh, p.top, p.oh});
  const SlicedAxis columns = AxisOf({p.input[3], kernel[3], p.sw, p.left, p.ow});
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

TensorPtr WeightsOf(const Lowering& l, const ConvWorkload& w) {
  Derivation derivation("taps by phases");
  derivation.Add(l.op.weights())
      .Add({w.oc, w.ic, w.g, w.kh, w.kw, l.rows.stride, l.columns.stride,
            static_cast<int64_t>(l.shuffle.params().order)});
  return Derived(std::move(derivation), [&] {
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
  });
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
        const ConvTransposeOp* op = graph.As<ConvTransposeOp>(id);
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

Graph LowerDense(const Graph& graph) {
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        const GemmOp* gemm = graph.As<GemmOp>(id);
        if (gemm == nullptr) return std::nullopt;
        const Node& node = graph.node(id);
        const std::optional<ConvWorkload> w = DenseWorkload(*gemm, node.shape);
        if (!w) return std::nullopt;
        return AddDense(result, {node.name, node.shape, graph.IsOutput(id), *w},
                        std::make_shared<ConvOp>(*w, gemm->weights(), gemm->bias()), inputs);
      });
}

}  // namespace tilesmith
