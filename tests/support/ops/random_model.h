// Random small models of what stands beside convolutions, as exporters write it: element-wise functions and
// broadcasting, reductions, normalizations, softmax, moves of every kind, products, attention, gates, the
// heads of detectors; whole and written out in formulas; and whole numbers, bools and float16. Opset 20.
//
// Values stay of moderate size and nothing is discontinuous, so that what is computed in another order
// differs by roundings only. Nor is any result NaN or infinite: of nothing, only what is finite is computed.
#pragma once

#include "tests/support/ops/random_model_writer.h"

namespace tilesmith {

OnnxModel RandomModel(TestRandom& random, RandomSizes sizes = RandomSizes::kMixed);

}  // namespace tilesmith
