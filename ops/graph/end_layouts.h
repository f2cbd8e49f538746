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

// `layout` where the node's tensor can have it, else NCHW.
inline Layout EndLayout(const Node& node, const Layout& layout) {
  return node.shape.size() == 4 && node.type == DataType::kF32 ? layout : Layout::Nchw();
}

}  // namespace tilesmith
