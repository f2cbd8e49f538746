// How the caller of a network lays out what goes in and what comes out.
#pragma once

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

}  // namespace tilesmith
