// The machine's measured FMA peak: what "% of peak" in every table refers to.
#pragma once

#include "layouts/base/target.h"
#include "layouts/data_type.h"

namespace tilesmith {

// Multiplications and additions per second that `threads` threads reach together on independent register-only
// FMAs of the widest vectors cpu.isa allows, for bf16 and bytes (kI8) on products of pairs and fours or,
// better, of tiles where the CPU has them, else on FMAs and on products of 16 bits that are added; the best
// of several short runs, on zeros, which cost less power than numbers do. About 20 ms. Must not run while
// anything else measures. 0 where there is no code for the ISA (portable).
double MeasureFmaPeak(const Target& cpu, int threads, DataType type = DataType::kF32);

}  // namespace tilesmith
