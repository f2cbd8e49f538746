#include "graph_tuner/problem/within_limits.h"

#include <gtest/gtest.h>

#include <vector>

namespace tilesmith {
namespace {

// What costs `price` shrinks as the price rises.
double Needed(double price) { return 100 / (1 + price); }

TEST(WithinLimits, TheLowestPriceIsFoundToAHundredth) {
  const PriceRange range = {1e-3, 1e6};
  const auto at = [&](double most) {
    return AtLowestPrice(range, Needed, [&](double needed) { return needed <= most; });
  };
  EXPECT_EQ(at(100).price, 0);
  const auto found = at(10);  // at a price of 9
  EXPECT_TRUE(found.fits);
  EXPECT_GE(found.price, 9);
  EXPECT_LE(found.price, 9 * 1.01);
  EXPECT_EQ(found.solved, Needed(found.price));
  EXPECT_FALSE(at(-1).fits);
}

TEST(WithinLimits, ItIsTightenedUntilWhatIsMeasuredFits) {
  double aim = 10;
  std::vector<double> tightened;
  const auto choose = [&](bool) { return 2 * aim; };
  const auto tighten = [&](double measured) {
    tightened.push_back(measured);
    aim *= 0.5;
  };
  EXPECT_EQ(ChooseWithin(6, choose, tighten), 5);
  EXPECT_EQ(tightened, (std::vector<double>{20, 10}));
  int times = 0;
  const auto never = [&](bool is_last) {
    EXPECT_EQ(is_last, ++times == 6);
    return 1.0;
  };
  EXPECT_EQ(ChooseWithin(0, never, [](double) {}), 1);
  EXPECT_EQ(times, 6);
}

}  // namespace
}  // namespace tilesmith
