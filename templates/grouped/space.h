// What the grouped template accepts, and what can be chosen.
#pragma once

#include "layouts/base/cpu.h"
#include "templates/conv_template.h"

namespace tilesmith::grouped {

Support WhatIsSupported(const ConvWorkload& workload, const CpuInfo& cpu);
ConfigSpace Space(const ConvWorkload& workload, const CpuInfo& cpu);
// A config without tuning: the widest tile that fits the registers, vector-width blocks.
Config Default(const ConvWorkload& workload, const CpuInfo& cpu);

}  // namespace tilesmith::grouped
