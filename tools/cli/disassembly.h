// Machine code as people read it.
#pragma once

#include <span>
#include <string>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/code_sink.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// What objdump says about it, when there is one in PATH; else its bytes in hexadecimal, with a hint. Ends in
// a newline. Throws Error(kEnvironment).
std::string DisassemblyText(const CodeBlob& code);

// Builds one config and writes its code into directory/WORKLOAD. Throws Error(kEnvironment).
void DumpConv(const ConvWorkload& workload, const std::string& template_name, const Config& config,
              const Target& cpu, const std::string& directory);

}  // namespace tilesmith
