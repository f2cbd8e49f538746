// Which code an execution reached, where the code is built with -fsanitize-coverage=trace-pc (the CMake
// option TILESMITH_FUZZ); elsewhere nothing is ever new.
#pragma once

#include <cstddef>

namespace tilesmith::fuzz {

// Watches the calling thread from now on, and forgets the execution before.
void BeginCoverage();
// How many features the execution since BeginCoverage had that none before had: edges, by how often they were
// taken (once, twice, thrice, 4 to 7 times, ...).
size_t NewFeatures();

}  // namespace tilesmith::fuzz
