// What nodes other than convs and fills of concat slices cost by themselves, corrections aside: the layout
// problem, the prices of plans and what runs of plans are compared with follow the same rules.
#pragma once

#include "graph_tuner/costs/costs.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// Seconds of a node that is no conv with its tensors in `layout`, fills of concat slices not included.
double TolerantSeconds(const Graph& graph, Graph::NodeId id, const Layout& layout, CostSource& costs);

// Seconds to bring a tensor into a concat's slice that it does not own: a copy, or a transform.
double FillSeconds(const Shape& shape, const Layout& from, const Layout& to, CostSource& costs);

}  // namespace tilesmith
