// The tests' own instrument: a guard that does not guard would let every other test pass.
#include "tests/support/guarded_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/random.h"

namespace tilesmith {
namespace {

TEST(GuardedTensor, StartsAsNan) {
  for (Guard guard : {Guard::kAfter, Guard::kBefore}) {
    for (int64_t size : {0, 1, 1023, 1024, 1025}) {
      const GuardedTensor tensor(size, guard);
      EXPECT_EQ(tensor.end() - tensor.begin(), size);
      EXPECT_TRUE(std::all_of(tensor.begin(), tensor.end(), [](float x) { return std::isnan(x); }));
      EXPECT_TRUE(tensor.SlackIntact());
    }
  }
}

TEST(GuardedTensorDeathTest, FaultsBeyondTheGuardedEnd) {
  GuardedTensor after(5, Guard::kAfter), before(5, Guard::kBefore);
  volatile float* past = after.data() + 5;
  volatile float* ahead = before.data() - 1;
  EXPECT_DEATH({ [[maybe_unused]] const float read = *past; }, "");
  EXPECT_DEATH({ *ahead = 0; }, "");
  after.MakeReadOnly();
  volatile float* first = after.data();
  EXPECT_DEATH({ *first = 0; }, "");
}

TEST(GuardedTensor, SlackShowsWritesBeyondTheOtherEnd) {
  GuardedTensor after(5, Guard::kAfter), before(5, Guard::kBefore);
  after.data()[-1] = 0;
  before.data()[5] = 0;
  EXPECT_FALSE(after.SlackIntact());
  EXPECT_FALSE(before.SlackIntact());
}

TEST(TestRandom, RangesAndRepeatability) {
  std::vector<float> a(1000), b(1000);
  FillIntegers(a, 5);
  FillIntegers(b, 5);
  EXPECT_EQ(a, b);
  EXPECT_EQ(*std::min_element(a.begin(), a.end()), -8);
  EXPECT_EQ(*std::max_element(a.begin(), a.end()), 8);
  EXPECT_TRUE(std::all_of(a.begin(), a.end(), [](float x) { return x == std::floor(x); }));
  FillUniform(a, 5);
  FillUniform(b, 6);
  EXPECT_NE(a, b);
  EXPECT_TRUE(std::all_of(a.begin(), a.end(), [](float x) { return x >= -1 && x < 1; }));
}

}  // namespace
}  // namespace tilesmith
