// Values of knobs that cut something into parts.
#pragma once

#include <cstdint>
#include <vector>

namespace tilesmith {

// The parts that `count` things are cut into evenly, by their sizes, and `given`; ascending.
std::vector<int64_t> PartSizes(int64_t count, int64_t given);

}  // namespace tilesmith
