// Values of knobs that the templates of byte convolutions have in common.
#pragma once

#include <cstdint>
#include <vector>

namespace tilesmith {

// The parts that `count` things are cut into evenly, by their sizes, and `given`; ascending.
std::vector<int64_t> PartSizes(int64_t count, int64_t given);
// The x of the layouts NCHW[x]c of bytes that are tried: 1, whole vectors, and 0 for NHWC.
std::vector<int64_t> ByteBlocks(int64_t channels);

}  // namespace tilesmith
