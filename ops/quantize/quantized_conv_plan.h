// How the work of a quantised convolution is cut (ops/conv/window_plan.h).
#pragma once

#include "layouts/base/target.h"
#include "ops/conv/window_plan.h"
#include "ops/quantize/quantized_conv_loops.h"

namespace tilesmith {

bool IsByteDepthwise(const ConvWorkload& workload);
// Whether the kernel multiplies bytes: not where weights are no bytes with a sign, and not in depthwise
// convolutions, which have another kernel for that.
bool MultipliesBytes(const ConvWorkload& workload, const Target& cpu);

// Preconditions of both: workload.bytes. The plan is of fewer groups than the workload
// where several small ones are computed as one, with zeros for weights between them.
WindowForm QuantizedConvForm(const ConvWorkload& workload, const Target& cpu);
WindowPlan QuantizedConvPlan(const ConvWorkload& workload, const Target& cpu, const WindowCut& cut = {});

// Bytes of the widened input that one tile of either kernel sees, at least.
double WidenedWindowBytes(const ConvWorkload& workload);

}  // namespace tilesmith
