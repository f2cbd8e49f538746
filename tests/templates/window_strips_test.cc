// Positions that tiles of products compute: every output pixel of a tile once, from its own window, and
// nothing read outside of the tile's widened input.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "templates/amx/strips.h"
#include "tests/support/random.h"
#include "tests/support/random_workload.h"

namespace tilesmith::amx {
namespace {

WindowForm RandomForm(TestRandom& random) {
  return {.number_bytes = random.Integer(1, 2), .lanes = 32, .pixels = 32, .amx = true};
}

WindowCut RandomCut(const ConvWorkload& w, TestRandom& random) {
  const WindowPlan whole(w, {.number_bytes = 2, .lanes = 32, .pixels = 32, .amx = true}, 2);
  if (random.Integer(0, 3) == 0) return {};
  return {.tile_rows = random.Integer(1, whole.conv.oh), .tile_columns = random.Integer(1, whole.conv.ow)};
}

void CheckTile(const WindowPlan& plan, int64_t rows, int64_t columns) {
  std::map<std::pair<int64_t, int64_t>, int> seen;
  WindowStrip strip;
  const int64_t window_bytes = (plan.window_rows - 1) * plan.row_pitch +
                               (plan.window_columns - 1) * plan.pitch +
                               plan.pixel_numbers * plan.number_bytes;
  const auto store = [&](const WindowSegment& segment) {
    ASSERT_GT(segment.count, 0);
    for (int64_t i = 0; i < segment.count; ++i) {
      const int64_t position = segment.position + i;
      ASSERT_LT(position, strip.positions);
      // Rows of a tile as wide as the image follow each other.
      const int64_t row = segment.row + (segment.column + i) / columns,
                    column = (segment.column + i) % columns;
      ++seen[{row, column}];
      EXPECT_EQ(strip.offset + position * plan.position_bytes(),
                row * plan.row_stride * plan.row_pitch + column * plan.column_stride * plan.pitch);
    }
  };
  const auto compute = [&](const WindowStrip& next) {
    strip = next;
    ASSERT_GT(strip.positions, 0);
    ASSERT_LE(strip.positions, plan.pixels);
    const int64_t last = strip.offset + (strip.positions - 1) * plan.position_bytes();
    EXPECT_LE(last + window_bytes, plan.RowsSeenBy(plan.tile_rows) * plan.row_pitch);
  };
  ForEachStrip(plan, rows, columns, compute, store);
  EXPECT_EQ(std::ssize(seen), rows * columns);
  for (const auto& [pixel, times] : seen) EXPECT_EQ(times, 1) << pixel.first << " " << pixel.second;
}

TEST(WindowStrips, CoverEveryPixelOnce) {
  for (uint64_t seed = 0; seed < 300 && !testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    const ConvWorkload w = RandomWorkload(random);
    const WindowPlan plan(w, RandomForm(random), 2, RandomCut(w, random));
    SCOPED_TRACE(
        fmt::format("{} {}x{} seed {}", WorkloadToString(w), plan.tile_rows, plan.tile_columns, seed));
    const int64_t last_rows = plan.conv.oh - (plan.row_tiles - 1) * plan.tile_rows;
    const int64_t last_columns = plan.conv.ow - (plan.column_tiles - 1) * plan.tile_columns;
    CheckTile(plan, std::min(plan.tile_rows, plan.conv.oh), std::min(plan.tile_columns, plan.conv.ow));
    CheckTile(plan, last_rows, last_columns);
  }
}

// Steps are equal and hold whole words, so that nothing beside a window is multiplied with it.
TEST(WindowPlan, StepsOfTilesAreEqual) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    TestRandom random(seed);
    const ConvWorkload w = RandomWorkload(random);
    const WindowPlan plan(w, RandomForm(random), 2);
    SCOPED_TRACE(fmt::format("{} seed {}", WorkloadToString(w), seed));
    EXPECT_GE(plan.step_words, 1);
    EXPECT_LE(plan.step_words, kTileWords);
    EXPECT_EQ(plan.run_length % (plan.step_words * plan.word), 0);
    EXPECT_EQ(plan.run_length, plan.run_columns * plan.pixel_numbers);
    EXPECT_GE(plan.pixel_numbers, plan.group_in);
    EXPECT_EQ(std::ssize(plan.runs), w.kh * w.kw / plan.run_columns);
  }
}

}  // namespace
}  // namespace tilesmith::amx
