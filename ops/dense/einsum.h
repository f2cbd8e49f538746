// Einsum as what it consists of: sums over axes, transposes, and a MatMul for two operands.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// Einsum.
std::vector<OpImporter> EinsumImporters();

}  // namespace tilesmith
