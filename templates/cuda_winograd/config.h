// The knobs of cuda_winograd, and which workloads it is for.
#pragma once

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"

namespace tilesmith::cuda_winograd {

Support Supports(const ConvWorkload& workload, const Target& target);
ConfigSpace Space(const ConvWorkload& workload, const Target& target);
Config Default(const ConvWorkload& workload, const Target& target);
// As winograd's.
double ErrorFactor(const ConvWorkload& workload, const Config& config);

}  // namespace tilesmith::cuda_winograd
