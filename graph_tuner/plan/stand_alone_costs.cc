#include "graph_tuner/plan/stand_alone_costs.h"

#include <algorithm>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/concat_slices.h"

namespace tilesmith {

double TolerantSeconds(const Graph& graph, Graph::NodeId id, const Layout& layout, CostSource& costs) {
  const Node& node = graph.node(id);
  if (node.op->Type() == "Input" || node.op->IsView() || ConcatIsSliceable(graph, id, layout)) return 0;
  const auto inputs = graph.Inputs(id);
  const bool floats = std::all_of(inputs.begin(), inputs.end(), [&](Graph::NodeId input) {
    return graph.node(input).type == DataType::kF32;
  });
  // Other types have one layout only, so there is nothing to choose; plans correct the time by what they
  // measure.
  if (!floats || node.type != DataType::kF32) return 0;
  return costs.OpSeconds({node.op, graph.InputShapes(id), node.shape, layout});
}

double FillSeconds(const Shape& shape, const Layout& from, const Layout& to, CostSource& costs) {
  return SameForm(shape, from, to) ? costs.CopySeconds(shape, to) : costs.TransformSeconds(shape, from, to);
}

}  // namespace tilesmith
