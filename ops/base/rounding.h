// What the bounds of rounding (Op::RoundingBound) are made of: for every element
//
//   eps * (roundings of the reduction) * (magnitude of its terms).
#pragma once

#include <limits>

#include "ops/base/activation.h"
#include "ops/base/op.h"

namespace tilesmith {

constexpr double kRoundingEps = std::numeric_limits<float>::epsilon();
constexpr double kSmallestBound = 1e-36;  // what a result that is not a normal float may be off
// Functions promise a few ulp of their result.
constexpr double kFunctionRoundings = 16;

// Roundings of a sum of `terms` floats, in units of eps times the sum of the terms' magnitudes: `terms` at
// worst, and hardly ever 16 * sqrt(terms), as they rarely all fall on one side. Source: Higham and Mary, "A
// New Approach to Probabilistic Rounding Error Analysis", 2019, theorem 2.4 with lambda = 32.
double SumRoundings(double terms);
// The largest |act'(x)|, at least 1.
double Slope(const Activation& activation);
// What computing the activation of a value of this magnitude adds, in units of eps.
double ActivationRoundings(const Activation& activation, double magnitude);

// |x| of every element.
Tensor Absolute(const Tensor& tensor);
// The largest finite |x|, or 0.
float LargestFinite(const Tensor& tensor);
// The op of the inputs' absolute values, which for sums and means is the magnitude of their terms.
Tensor OfAbsolutes(const Op& op, std::span<const Tensor* const> inputs);

// The bound of act(x) where each x has one of these magnitudes and is the result of `roundings`.
Tensor BoundsOf(const Tensor& magnitudes, double roundings, const Activation& activation = {});
// The same bound for all elements: where sums cancel out, the result says little about its terms.
Tensor BoundsOfLargest(const OpRun& run, double roundings);

}  // namespace tilesmith
