#include "ops/quantize/byte_sums.h"

#include "ops/quantize/integer_products.h"
#include "ops/quantize/quantized_conv.h"

namespace tilesmith {

bool AddsBytes(const Graph& graph) {
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const Op* op = graph.node(id).op.get();
    if (dynamic_cast<const QuantizedConvOp*>(op) || dynamic_cast<const IntegerProductOp*>(op)) return true;
  }
  return false;
}

bool MaySaturate(const Graph& graph, const Target& cpu) { return !cpu.vnni && AddsBytes(graph); }

}  // namespace tilesmith
