#include <algorithm>
#include <set>

#include "ops/conv/conv.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/passes/pass_util.h"
#include "ops/passes/passes.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

// A node as slices of rows and columns of `source`, which is no slice itself.
struct Slices {
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

std::optional<Slices> SlicesOf(const Graph& graph, NodeId id) {
  const Shape& shape = graph.node(id).shape;
  if (shape.size() != 4) return std::nullopt;
  Slices slices{id, {0, 1, shape[2]}, {0, 1, shape[3]}};
  while (const SliceOp* op = OpAs<SliceOp>(graph, slices.source)) {
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
  const ConcatOp* concat = OpAs<ConcatOp>(graph, id);
  if (concat == nullptr || concat->axis() != 1) return std::nullopt;
  SpaceToDepth found;
  for (const NodeId input : graph.Inputs(id)) {
    const std::optional<Slices> slices = SlicesOf(graph, input);
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
  auto weights = std::make_shared<Tensor>(w.weights_shape());
  const float* in = conv.weights()->floats();
  for (int64_t o = 0; o < old.oc; ++o) {
    for (int64_t c = 0; c < old.ic; ++c) {
      const auto [y, x] = from.phases[c / w.ic];
      float* out = weights->floats() + (o * w.ic + c % w.ic) * w.kh * w.kw;
      for (int64_t i = 0; i < old.kh; ++i) {
        for (int64_t j = 0; j < old.kw; ++j) out[(i * from.sy + y) * w.kw + j * from.sx + x] = *in++;
      }
    }
  }
  return std::make_shared<ConvOp>(w, std::move(weights), conv.bias());
}

// By node: what its concat is, where every reader can take it.
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
  // For slices and what is folded: the node of the result that they are cut from.
  std::vector<NodeId> images(graph.size());
  return RewriteGraph(
      graph, [&](NodeId id, const std::vector<NodeId>& inputs, Graph& result) -> std::optional<NodeId> {
        if (OpAs<SliceOp>(graph, id) != nullptr) {
          const NodeId input = graph.Inputs(id)[0];
          images[id] = OpAs<SliceOp>(graph, input) != nullptr ? images[input] : inputs[0];
        }
        if (foldable[id]) images[id] = images[graph.Inputs(id)[0]];
        const ConvOp* conv = OpAs<ConvOp>(graph, id);
        if (conv == nullptr || !foldable[graph.Inputs(id)[0]]) return std::nullopt;
        const NodeId concat = graph.Inputs(id)[0];
        std::vector<NodeId> sources = inputs;
        sources[0] = images[concat];
        return result.Add(graph.node(id).name, OnTheImage(*conv, *foldable[concat]), sources);
      });
}

}  // namespace tilesmith
