// The machine's measured FMA peak: what "% of peak" in every table refers to.
#pragma once

#include "layouts/base/target.h"

namespace tilesmith {

// Multiplications and additions per second that `threads` threads reach together on independent register-only
// FMAs of the widest vectors cpu.isa allows; the best of several short runs. About 20 ms. Must not run while
// anything else measures. 0 where there is no code for the ISA (portable).
double MeasureFmaPeak(const Target& cpu, int threads);

}  // namespace tilesmith
