// The matmul template's knobs: those of a MatMulSchedule (ops/dense/matmul.h), one by one.
#pragma once

#include "layouts/base/target.h"
#include "ops/dense/matmul.h"
#include "templates/base/conv_template.h"

namespace tilesmith::matmul {

MatMulSchedule ReadConfig(const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
// The schedule that products have without tuning.
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::matmul
