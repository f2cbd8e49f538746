// Rounding errors of convs: what to allow for, and what a kernel, ours or oneDNN's, really makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ops/onednn/onednn.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// |result - exact| of one output when its terms are summed in float in any order, post-ops with slopes of at
// most 1 included: (terms + 2) * eps * magnitude; the terms of a conv fused in front count too, and an
// activation between may have slope 2. `magnitude`: the sum of the absolute values of the terms,
// ConvSample::magnitude. To be multiplied with ConvTemplate::ErrorFactor.
double RoundingBound(const ConvWorkload& workload, double magnitude);

// Both relative to the root mean square of the exact outputs.
struct ConvError {
  double rms = 0;
  double max = 0;
};

// The errors of a kernel on data uniform in [-1, 1), the same for everyone asked about a workload, at some
// thousand outputs, the corners among them. Post-ops are left out: they are the same whatever the algorithm.
ConvError MeasureConvError(const ConvTemplate& conv_template, const ConvWorkload& workload,
                           const Config& config, const Target& cpu);
// Null when oneDNN cannot, with the reason in *refusal when given.
std::optional<ConvError> MeasureOneDnnError(const ConvWorkload& workload, OneDnnAlgorithm algorithm,
                                            std::string* refusal = nullptr);

}  // namespace tilesmith
