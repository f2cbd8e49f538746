// Machine code as people read it.
#pragma once

#include <string>

#include "templates/base/conv_template.h"

namespace tilesmith {

// What objdump says about it, when there is one in PATH; else its bytes in hexadecimal, with a hint. Ends in
// a newline. Throws Error(kEnvironment).
std::string DisassemblyText(const CodeBlob& code);

}  // namespace tilesmith
