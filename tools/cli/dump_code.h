// --dump-code and --perf-map.
#pragma once

#include <span>
#include <string>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/code_sink.h"

namespace tilesmith {

// Builds one config and writes its code into directory/WORKLOAD. Throws Error(kEnvironment).
void DumpConv(const ConvWorkload& workload, const std::string& template_name, const Config& config,
              const Target& cpu, const std::string& directory);

}  // namespace tilesmith
