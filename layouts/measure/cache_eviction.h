// Cold weights: getting memory out of the caches, as a network larger than the last level does.
#pragma once

#include <cstddef>
#include <span>

namespace tilesmith {

// After the call the memory is in no cache of the machine (on other CPUs than x86: probably in none).
void EvictFromCaches(std::span<const std::byte> memory);

}  // namespace tilesmith
