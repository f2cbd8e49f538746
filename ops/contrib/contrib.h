// Operators of com.microsoft that ONNX Runtime and its tools write when they optimise a model, as ONNX's own.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// com.microsoft's FusedConv, FusedGemm, FusedMatMul, Gelu, FastGelu, QuickGelu, BiasGelu,
// SkipLayerNormalization, Attention, MultiHeadAttention, MatMulNBits.
std::vector<OpImporter> ContribImporters();

}  // namespace tilesmith
