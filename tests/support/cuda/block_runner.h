// Runs the blocks of a CUDA kernel that g++ has compiled (emulation.inc), one after the other, with a fiber
// for each thread. What a GPU would do to a kernel that does not wait where it must is provoked: threads run
// in ascending order in one block and in descending order in the next; the target of an asynchronous copy is
// NaN from the copy on until it is waited for; shared memory is NaN at first and ends at an unreadable page.
// Misaligned copies, and barriers that not all threads of a block or a warp reach, end the process with a
// message. One thread at a time.
#pragma once

#include <array>
#include <cstdint>

#include "templates/cuda/program.h"

namespace tilesmith {

struct EmulatedHooks;

using EmulatedFunction = void (*)(CudaArguments);

// What `ts_hooks` of what is loaded must point to.
EmulatedHooks* HooksOfBlockRunner();

void RunBlocks(EmulatedFunction function, const std::array<int64_t, 3>& grid, int64_t threads,
               int64_t shared_bytes, const CudaArguments& arguments);

}  // namespace tilesmith
