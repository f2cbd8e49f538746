// Rounding errors of convs: what to allow for, and what a kernel, ours or another library's, really makes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "templates/base/conv_template.h"

namespace tilesmith {

// |result - exact| of one output when its terms are summed in float in any order, post-ops with slopes of at
// most 1 included: (terms + 2) * eps * magnitude; the terms of a conv fused in front count too, and an
// activation between may have slope 2. `magnitude`: the sum of the absolute values of the terms,
// ConvSample::magnitude. To be multiplied with ConvTemplate::ErrorFactor.
double RoundingBound(const ConvWorkload& workload, double magnitude);

// What types of fewer bits than f32 add to that, as shares of half a unit in the last place: `factors` of the
// sum of the terms' magnitudes, `output` of the result.
struct TypeRounding {
  double factors = 0, output = 0;
  bool any() const { return factors > 0 || output > 0; }
};
// The relative error of rounding to a type; 0 for f32, whose rounding the bounds of sums count.
double HalfUlp(DataType type);
// Inputs are rounded where they are stored, and where they are multiplied once more if something in front of
// the conv has made others of them; weights where they are multiplied; residuals where they are stored.
TypeRounding TypeRoundingOf(const ConvTemplate& conv_template, const ConvWorkload& workload,
                            const LayoutPair& layouts);
// The bound of one output where f32 alone is off by `float_bound`: post-ops have a slope of at most 1.5, and
// so may an activation in front of the conv.
double TypedBound(const TypeRounding& rounding, double float_bound, double magnitude, double value);

// Both relative to the root mean square of the exact outputs.
struct ConvError {
  double rms = 0;
  double max = 0;
};

// The outputs of a conv without post-ops for a plain input and plain weights, plain too, or none where it
// cannot be computed.
using ConvFunction =
    std::function<std::optional<Tensor>(const ConvWorkload&, const Tensor& input, const float* weights)>;

// The errors of `compute` on data uniform in [-1, 1), the same for everyone asked about a workload, at some
// thousand outputs, the corners among them. Post-ops are left out: they are the same whatever the algorithm.
std::optional<ConvError> MeasureConvError(const ConvWorkload& workload, const ConvFunction& compute);
// Those of a template's kernel.
ConvError MeasureConvError(const ConvTemplate& conv_template, const ConvWorkload& workload,
                           const Config& config, const Target& cpu);

}  // namespace tilesmith
