#include "layouts/transform_benchmark.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

TEST(MeasureTransform, MeasuresSomething) {
  for (int threads : {1, 2}) {
    const TransformTiming timing =
        MeasureTransform({1, 30, 8, 8}, Layout::Nchw(), Layout::Blocked(16), TestCpu(), threads);
    EXPECT_GT(timing.seconds, 0);
    EXPECT_GT(timing.copy_seconds, 0);
    EXPECT_TRUE(std::isfinite(timing.seconds) && std::isfinite(timing.copy_seconds));
  }
}

TEST(MeasureTransform, NothingToDoCostsNothing) {
  const Target cpu = TestCpu();
  EXPECT_EQ(MeasureTransform({1, 16, 9, 9}, Layout::Nhwc(), Layout::Blocked(16), cpu, 1).seconds, 0);
  EXPECT_EQ(MeasureTransform({1, 64, 1, 1}, Layout::Nchw(), Layout::Blocked(8), cpu, 1).seconds, 0);
  EXPECT_EQ(MeasureTransform({0, 64, 3, 3}, Layout::Nchw(), Layout::Blocked(8), cpu, 1).seconds, 0);
}

}  // namespace
}  // namespace tilesmith
