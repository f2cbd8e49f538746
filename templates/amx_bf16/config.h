// The amx_bf16 template's knobs, read once from a Config into a plain struct.
#pragma once

#include "templates/amx/config.h"
#include "templates/base/type_knobs.h"

namespace tilesmith::amx_bf16 {

constexpr int64_t kBf16Bytes = 2;

struct AmxBf16Config {
  amx::AmxConfig common;
  StoredTypes types;
};

AmxBf16Config ReadConfig(const Config& config);

Support Supports(const ConvWorkload& workload, const Target& cpu);
ConfigSpace Space(const ConvWorkload& workload, const Target& cpu);
Config Default(const ConvWorkload& workload, const Target& cpu);

}  // namespace tilesmith::amx_bf16
