// Convolutions over one and three axes as two-dimensional ones.
//
// Over {N, C, D, H, W}, a convolution is the sum over its taps along D of two-dimensional ones, of which each
// takes every image at once: D becomes part of the batch. A transposed one is an ordinary one of the input
// with zeros between its elements.
#pragma once

#include "ops/base/op_registry.h"

namespace tilesmith {

// Conv and ConvTranspose of an input that is not of rank 4: 3 or 5.
BuiltOp BuildConvOfOtherRank(const NodeSpec& spec);
BuiltOp BuildConvTransposeOfOtherRank(const NodeSpec& spec);

}  // namespace tilesmith
