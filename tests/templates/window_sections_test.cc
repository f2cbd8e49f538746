#include <gtest/gtest.h>

#include "templates/direct_int8/sections.h"
#include "tests/support/random.h"

namespace tilesmith::direct_int8 {
namespace {

// Tap by tap.
bool Reads(const WindowAxis& axis, int64_t output, int64_t tap) {
  const int64_t at = output * axis.stride - axis.padding + tap * axis.tap_step;
  return at >= 0 && at < axis.inputs;
}

TEST(WindowTaps, AreThoseInsideTheImage) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    TestRandom random(seed);
    const WindowAxis axis{.outputs = random.Integer(1, 30),
                          .inputs = random.Integer(1, 20),
                          .taps = random.Integer(1, 7),
                          .stride = random.Integer(1, 3),
                          .tap_step = random.Integer(1, 12),
                          .padding = random.Integer(0, 30)};
    const std::vector<AlikeOutputs> found = OutputsByTaps(axis);
    int64_t next = 0, read = 0;
    for (const AlikeOutputs& some : found) {
      ASSERT_EQ(some.first, next) << "seed " << seed;
      ASSERT_LT(some.first, some.end) << "seed " << seed;
      for (int64_t output = some.first; output < some.end; ++output) {
        for (int64_t tap = 0; tap < axis.taps; ++tap) {
          const bool among = tap >= some.tap && tap < some.end_tap;
          ASSERT_EQ(among, Reads(axis, output, tap)) << "seed " << seed << ", " << output << ", " << tap;
          read += among ? 1 : 0;
        }
      }
      next = some.end;
    }
    EXPECT_EQ(next, axis.outputs) << "seed " << seed;
    EXPECT_NEAR(SharePadded(axis, found), 1 - static_cast<double>(read) / (axis.outputs * axis.taps), 1e-12);
    for (size_t i = 1; i < found.size(); ++i)
      EXPECT_FALSE(found[i].tap == found[i - 1].tap && found[i].end_tap == found[i - 1].end_tap) << seed;
  }
}

TEST(WindowTaps, OfAnImageOfSevenRows) {
  const std::vector<AlikeOutputs> expected = {{0, 1, 1, 3}, {1, 6, 0, 3}, {6, 7, 0, 2}};
  const WindowAxis axis{.outputs = 7, .inputs = 7, .taps = 3, .padding = 1};
  EXPECT_EQ(OutputsByTaps(axis), expected);
  EXPECT_NEAR(SharePadded(axis, expected), 2.0 / 21, 1e-12);
}

}  // namespace
}  // namespace tilesmith::direct_int8
