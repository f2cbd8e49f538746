#include "templates/base/byte_knobs.h"

#include <set>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

std::vector<int64_t> PartSizes(int64_t count, int64_t given) {
  std::set<int64_t> sizes = {given};
  for (const int64_t parts : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 56, 64})
    if (parts <= count) sizes.insert(CeilDiv(count, parts));
  return {sizes.begin(), sizes.end()};
}

std::vector<int64_t> ByteBlocks(int64_t channels) {
  std::vector<int64_t> blocks = {1};
  for (const int64_t block : BlocksOfVectors(channels, 8)) blocks.push_back(block);
  blocks.push_back(0);
  return blocks;
}

}  // namespace tilesmith
