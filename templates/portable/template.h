// The portable template: plain C++ built once per instruction set. Supports every workload with
// nothing fused in front of the conv on every CPU, in any pair of layouts; the fallback where no generated
// kernel applies.
#pragma once

#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& PortableTemplate();

}  // namespace tilesmith
