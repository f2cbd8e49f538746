// What every template that generates code must refuse.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

// Displacements, row strides and steps are 32-bit in generated code: no when an image of the workload, or
// what its kernel or its stride reaches over, is larger than that allows, with so many channels of padding as
// the template's layouts may add. A yes also means that such sizes may be multiplied in int64. Of a fused
// workload, both convs.
constexpr int64_t kMaxPaddingChannels = 64;
Support FitsDisplacements(const ConvWorkload& workload, int64_t padding_channels = kMaxPaddingChannels);

// Yes when a template's default config is valid in the template's own space, as it must be wherever the
// template supports the workload; otherwise no, with what is invalid about it.
Support HasValidDefault(const ConfigSpace& space, const Config& preset);

// Code that outgrows the first-level instruction cache runs 10-70% slower; a little above is still worth a
// trial.
constexpr int64_t kMaxCodeBytes = 48 << 10;

}  // namespace tilesmith
