// Target texts of Apache TVM: "llvm -mcpu=skylake-avx512 -num-cores=4".
#pragma once

#include <string>
#include <string_view>

#include "layouts/base/target.h"

namespace tilesmith {

// From -mcpu and -mattr. AVX2 where they name neither, since no template is tuned for less.
Isa IsaOfAutotvmTarget(std::string_view target);
// From -num-cores, or 1.
int CoresOfAutotvmTarget(std::string_view target);
// A CPU with these instructions. The portable ISA is plain "llvm".
std::string AutotvmTargetText(Isa isa);

}  // namespace tilesmith
