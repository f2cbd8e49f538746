// What the few_outputs template accepts, and what can be chosen.
#pragma once

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"

namespace tilesmith::few_outputs {

Support WhatIsSupported(const ConvWorkload& workload, const CpuInfo& cpu);
ConfigSpace Space(const ConvWorkload& workload, const CpuInfo& cpu);
// A config without tuning: all outputs, and as much of a row as the registers take.
Config Default(const ConvWorkload& workload, const CpuInfo& cpu);

}  // namespace tilesmith::few_outputs
