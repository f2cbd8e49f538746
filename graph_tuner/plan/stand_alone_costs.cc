#include "graph_tuner/plan/stand_alone_costs.h"

#include <algorithm>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/concat_slices.h"

namespace tilesmith {

double TolerantSeconds(const Graph& graph, Graph::NodeId id, const Layout& layout, CostSource& costs) {
  const Node& node = graph.node(id);
  if (node.op->Type() == "Input" || node.op->IsView() || ConcatIsSliceable(graph, id, layout)) return 0;
  std::vector<DataType> types = graph.InputTypes(id);
  const bool floats = node.type == DataType::kF32 &&
                      std::ranges::all_of(types, [](DataType type) { return type == DataType::kF32; });
  if (floats && layout.type() == DataType::kF32)
    return costs.OpSeconds({node.op, graph.InputShapes(id), node.shape, layout});
  if (floats) {
    types.assign(types.size(), layout.type());
    return costs.OpSeconds(
        {node.op, graph.InputShapes(id), node.shape, layout, std::move(types), layout.type()});
  }
  // With one layout only there is nothing to choose; plans correct the time by what they measure.
  if (!node.op->AnyTypeInAnyLayout() || !node.op->KernelTakes(types)) return 0;
  return costs.OpSeconds({node.op, graph.InputShapes(id), node.shape, layout.WithType(DataType::kF32),
                          std::move(types), node.type});
}

double FillSeconds(const Shape& shape, const Layout& from, const Layout& to, CostSource& costs) {
  return SameForm(shape, from, to) ? costs.CopySeconds(shape, to) : costs.TransformSeconds(shape, from, to);
}

}  // namespace tilesmith
