// Sums of products of bytes, which others do not always add up as the formulas of this folder say.
#pragma once

#include "layouts/base/target.h"
#include "ops/graph/graph.h"

namespace tilesmith {

// Whether a network has convolutions or matrix products of bytes.
bool AddsBytes(const Graph& graph);

// Whether what ONNX Runtime and oneDNN compute of this network may be wrong on such a CPU: without VNNI they
// add products of bytes in pairs of 16 bits, which saturate. Sources: ONNX Runtime's page "Quantize ONNX
// models", oneDNN's "Nuances of int8 computations".
bool MaySaturate(const Graph& graph, const Target& cpu);

}  // namespace tilesmith
