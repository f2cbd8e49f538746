#include "templates/base/part_sizes.h"

#include <set>

#include "layouts/base/sizes.h"

namespace tilesmith {

std::vector<int64_t> PartSizes(int64_t count, int64_t given) {
  std::set<int64_t> sizes = {given};
  for (const int64_t parts : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 56, 64})
    if (parts <= count) sizes.insert(CeilDiv(count, parts));
  return {sizes.begin(), sizes.end()};
}

}  // namespace tilesmith
