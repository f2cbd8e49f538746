// The amx_int8 template's knobs: those of all templates by AMX tiles (templates/amx/config.h).
#pragma once

#include "templates/amx/config.h"

namespace tilesmith::amx_int8 {

constexpr int64_t kNumberBytes = 1;

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::amx_int8
