// If, Loop and Scan as the nodes that run: what decides must be known, at load time or in the tail.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// If, Loop, Scan. A Loop becomes the nodes of one iteration, and a Loop of those that are left.
std::vector<OpImporter> ControlFlowImporters();

}  // namespace tilesmith
