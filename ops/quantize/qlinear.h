// Operators on quantised tensors in terms of the same ones on reals: their inputs are dequantised, their
// results quantised, for the passes to bring together again.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// QLinearConv, QLinearMatMul, DynamicQuantizeLinear, and of com.microsoft QLinearAdd, QLinearMul,
// QLinearConcat, QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearAveragePool,
// QLinearGlobalAveragePool, QGemm, MatMulIntegerToFloat, DynamicQuantizeMatMul.
std::vector<OpImporter> QLinearImporters();

}  // namespace tilesmith
