#include "templates/depthwise/row_pairs.h"

namespace tilesmith::depthwise {

std::vector<PairPass> PairPasses(int64_t kernel_rows) {
  std::vector<PairPass> shared, own;
  int64_t tap = 0;
  if (kernel_rows % 2 == 1) {
    shared.push_back({{PairSum::kBoth, 1, 2, false, 0, {0.5F, 0.5F, 0.5F}},
                      {PairSum::kOpposed, 2, 1, true, 0, {0.5F, -0.5F, 0.5F}}});
    own.push_back({{PairSum::kUpper, 0, 2, true, 0, {1, 0, 0}}, {PairSum::kLower, 3, 1, true, 0, {0, 0, 1}}});
    tap = 3;
  }
  for (; tap < kernel_rows; tap += 2) {
    shared.push_back({{PairSum::kBoth, tap + 1, -1, false, tap, {1, 1, 0}}});
    own.push_back({{PairSum::kUpper, tap, tap + 1, true, tap, {1, 0, 0}},
                   {PairSum::kLower, tap + 2, tap + 1, true, tap, {0, 1, 0}}});
  }
  shared.insert(shared.end(), own.begin(), own.end());
  return shared;
}

int64_t PairProducts(int64_t kernel_rows) {
  return kernel_rows % 2 == 1 ? 4 + 3 * ((kernel_rows - 3) / 2) : 3 * (kernel_rows / 2);
}

}  // namespace tilesmith::depthwise
