// The machine's measured FMA peak: what "% of peak" in every table refers to.
#pragma once

#include <functional>

#include "layouts/base/target.h"
#include "layouts/data_type.h"

namespace tilesmith {

// Multiplications and additions per second that `threads` threads reach together on independent register-only
// FMAs of the widest vectors cpu.isa allows, for bf16 and bytes (kI8) on products of pairs and fours or,
// better, of tiles where the CPU has them, else on FMAs and on products of 16 bits that are added; by
// UndisturbedSeconds of short runs, on zeros, which cost less power than numbers do. About 60 ms. Must not
// run while anything else measures. 0 where there is no code for the ISA (portable).
double MeasureFmaPeak(const Target& cpu, int threads, DataType type = DataType::kF32);

// What a run by so many threads, each with as much to do as one alone, takes while all of them have cores:
// the shortest of several bursts of runs, with pauses between them, and of more bursts, for a second at most,
// as long as even that is far longer than what one thread takes alone: then the host keeps a core to itself.
// `seconds_of_run` takes the time of one run by the given number of threads. Source: original.
double UndisturbedSeconds(const std::function<double(int threads)>& seconds_of_run, int threads);

}  // namespace tilesmith
