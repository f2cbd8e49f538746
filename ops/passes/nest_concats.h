// Concats that begin with another concat's inputs read that concat instead.
#pragma once

#include "ops/graph.h"

namespace tilesmith {

// concat(a, b, c) becomes concat(concat(a, b), c) where concat(a, b), the longest such prefix, is a node
// already. DenseNets state every layer's input from scratch; nested, each concat adds its last input in place
// behind the one before, and the layout problem's graph becomes a chain instead of one of width 12 and more.
// The tensors, and their names, stay the same.
Graph NestConcats(const Graph& graph);

}  // namespace tilesmith
