#include "graph_tuner/plan/concat_slices.h"

#include "ops/movement/concat.h"

namespace tilesmith {
namespace {

const ConcatOp* ChannelConcat(const Graph& graph, Graph::NodeId id) {
  const auto* concat = graph.As<ConcatOp>(id);
  if (!concat || graph.node(id).shape.size() < 2) return nullptr;
  return concat->axis() == 1 ? concat : nullptr;
}

bool MayOwn(const Graph& graph, Graph::NodeId id) {
  const Op& op = *graph.node(id).op;
  return op.Type() != "Input" && op.Type() != "Constant" && !op.IsView() && !graph.IsOutput(id);
}

}  // namespace

Slices ConcatSlices(const Graph& graph) {
  Slices slices(graph.size());
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    if (!ChannelConcat(graph, id)) continue;
    int64_t offset = 0;
    int slot = 0;
    for (Graph::NodeId input : graph.Inputs(id)) {
      if (!slices[input] && MayOwn(graph, input)) slices[input] = ConcatSlice{id, slot, offset};
      offset += graph.node(input).shape[1];
      ++slot;
    }
  }
  return slices;
}

bool ConcatIsSliceable(const Graph& graph, Graph::NodeId concat, const Layout& layout) {
  if (!ChannelConcat(graph, concat)) return false;
  const int64_t total = graph.node(concat).shape[1];
  if (total == 0) return true;
  const int64_t block = layout.BlockFor(total);
  int64_t offset = 0;
  for (const Shape& shape : graph.InputShapes(concat)) {
    if (shape[1] != 0 && offset % block != 0) return false;
    offset += shape[1];
  }
  return true;
}

bool MustFillSlice(const Graph& graph, const Slices& slices, const InputSlot& input, const Layout& layout) {
  if (!ConcatIsSliceable(graph, input.consumer, layout)) return false;
  const auto& slice = slices[graph.Inputs(input.consumer)[input.slot]];
  return !slice || slice->concat != input.consumer || slice->slot != static_cast<int>(input.slot);
}

}  // namespace tilesmith
