// What every template that generates code must refuse.
#pragma once

#include "templates/conv_template.h"

namespace tilesmith {

// Displacements, row strides and steps are 32-bit in generated code: no when an image of the workload, or
// what its kernel or its stride reaches over, is larger than that allows, with so many channels of padding as
// the template's layouts may add. A yes also means that such sizes may be multiplied in int64. Of a fused
// workload, both convs.
constexpr int64_t kMostPaddingChannels = 64;
Support FitsDisplacements(const ConvWorkload& workload, int64_t padding_channels = kMostPaddingChannels);

// Yes when the template's default config is valid in the template's own space, as it must be wherever the
// template supports the workload; otherwise no, with what is invalid about it. Precondition: all else that
// Supports asks.
Support HasValidDefault(const ConvTemplate& conv_template, const ConvWorkload& workload, const CpuInfo& cpu);

}  // namespace tilesmith
