// Layouts of nodes, and how the caller of a network lays out what goes in and what comes out.
#pragma once

#include <algorithm>

#include "layouts/layout.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// The layouts of the 4-D float tensors among the graph's inputs and outputs; all others are NCHW.
struct EndLayouts {
  Layout inputs = Layout::Nchw(), outputs = Layout::Nchw();
  friend bool operator==(const EndLayouts&, const EndLayouts&) = default;
};

// `layout` as the node's tensor takes it: of another type than f32, in the same order but with that type.
inline Layout TensorLayout(const Node& node, const Layout& layout) {
  return node.type == DataType::kF32 ? layout : layout.WithType(node.type);
}

// The order that a node's inputs have where its output is in `layout`: the same, floats being f32 where the
// output is something else.
inline Layout InputOrder(const Node& node, const Layout& layout) {
  return node.type == DataType::kF32 ? layout : layout.WithType(DataType::kF32);
}

// `layout` where the node's tensor can have it, else NCHW of its type.
inline Layout EndLayout(const Node& node, const Layout& layout) {
  return node.shape.size() == 4 && node.type == DataType::kF32 ? layout : Layout::Nchw(node.type);
}

// Whether the node's op runs with all its tensors in the order of `layout`, floats stored in its type.
inline bool NodeRunsIn(const Graph& graph, Graph::NodeId id, const Layout& layout) {
  const Node& node = graph.node(id);
  const bool stored_as_is = layout.type() == DataType::kF32;
  if (layout.is_nchw() && stored_as_is) return true;
  const std::vector<Shape> shapes = graph.InputShapes(id);
  const auto is_empty = [](const Shape& shape) { return ElementCount(shape) == 0; };
  if (std::ranges::any_of(shapes, is_empty)) return false;  // its Reference runs
  std::vector<DataType> types = graph.InputTypes(id);
  const std::vector<DataType> stored(types.size(), layout.type());
  const bool takes = node.op->AnyTypeInAnyLayout() && node.op->KernelTakes(stored_as_is ? types : stored);
  types.push_back(node.type);
  const bool floats = std::ranges::all_of(types, [](DataType type) { return type == DataType::kF32; });
  if (!stored_as_is) return floats && takes && node.op->RunsIn(layout, shapes);
  return (floats || takes) && node.op->RunsIn(layout, shapes);
}

}  // namespace tilesmith
