#include "layouts/base/boxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/random_grid.h"

namespace tilesmith {
namespace {

bool IsIn(const Box& box, double image, double channel, double row) {
  const auto in = [](const AxisPart& part, double at) { return part.begin <= at && at < part.end; };
  return in(box.images, image) && in(box.channels, channel) && in(box.rows, row);
}

// Asks for the middle of every task's first unit.
TEST(Boxes, AreWhereTheTasksAre) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    TestRandom random(seed);
    const TaskGrid grid = RandomGrid(random, 1);
    for (const Split split : kSplits) {
      for (const int threads : {1, 2, 3, 7}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << SplitName(split) << " on " << threads);
        double volume = 0;
        for (int thread = 0; thread < threads; ++thread) {
          const std::vector<Box> boxes = BoxesOf(grid, split, thread, threads);
          volume += VolumeOutside(boxes, {});
          std::vector<bool> mine(static_cast<size_t>(grid.tasks()));
          const Share share(grid, split, thread, threads);
          share.ForEachRange(0, share.tasks(), thread, [&](TaskRange range) {
            std::fill(mine.begin() + range.begin, mine.begin() + range.end, true);
          });
          for (int64_t task = 0; task < grid.tasks(); ++task) {
            const int64_t inner = grid.channels_inner ? grid.channels : grid.rows;
            const int64_t at = task % inner, line = task / inner % (grid.channels * grid.rows / inner);
            const int64_t channel = grid.channels_inner ? at : line, row = grid.channels_inner ? line : at;
            const double units = static_cast<double>(grid.height * grid.row_units);
            const bool found = std::ranges::any_of(boxes, [&](const Box& box) {
              return IsIn(box,
                          (static_cast<double>(task / (grid.channels * grid.rows)) + 0.5) /
                              static_cast<double>(grid.images),
                          (static_cast<double>(channel) + 0.5) / static_cast<double>(grid.channels),
                          (static_cast<double>(row * grid.part_units) + 0.5) / units);
            });
            EXPECT_EQ(found, mine[static_cast<size_t>(task)]) << "task " << task;
          }
        }
        EXPECT_NEAR(volume, 1, 1e-9);
      }
    }
  }
}

TEST(Boxes, ASplitMakesOneBox) {
  const TaskGrid grid = {.images = 4, .channels = 8, .rows = 6, .height = 12, .part_units = 2};
  for (const Split split : {Split::kRows, Split::kChannels, Split::kImages}) {
    for (const int thread : {0, 1}) EXPECT_EQ(BoxesOf(grid, split, thread, 2).size(), 1U) << SplitName(split);
  }
  EXPECT_TRUE(BoxesOf(TaskGrid::List(6), Split::kEven, 0, 2).empty());
}

TEST(Boxes, VolumesOfWhatOverlapsCountOnce) {
  const Box upper = {.rows = {0, 0.5}}, left = {.channels = {0, 0.5}}, all;
  const Box corner = {.channels = {0.25, 0.75}, .rows = {0.25, 0.75}};
  EXPECT_DOUBLE_EQ(VolumeOutside(std::vector{upper, left}, {}), 0.75);
  EXPECT_DOUBLE_EQ(VolumeOutside(std::vector{upper, left}, std::vector{upper}), 0.25);
  EXPECT_DOUBLE_EQ(VolumeOutside(std::vector{all}, std::vector{corner}), 0.75);
  EXPECT_DOUBLE_EQ(VolumeOutside(std::vector{upper}, std::vector{corner}), 0.375);
  EXPECT_DOUBLE_EQ(VolumeOutside(std::vector{corner}, std::vector{all}), 0);
  EXPECT_DOUBLE_EQ(VolumeOutside({}, std::vector{all}), 0);
}

}  // namespace
}  // namespace tilesmith
