#include "layouts/base/split.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/random_grid.h"

namespace tilesmith {
namespace {

TEST(Share, TheSharesOfEverySplitAreAllTasksOnce) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    TestRandom random(seed);
    const TaskGrid grid = RandomGrid(random, 0);
    for (const Split split : kSplits) {
      for (const int threads : {1, 2, 3, 7}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << SplitName(split) << " on " << threads);
        std::vector<int> runs(grid.tasks());
        for (int thread = 0; thread < threads; ++thread) {
          const Share share(grid, split, thread, threads);
          // In two halves, as somebody else may take the second.
          int64_t seen = 0;
          const auto run = [&](TaskRange range) {
            EXPECT_LT(range.begin, range.end);
            EXPECT_EQ(range.thread, 5);
            for (int64_t task = range.begin; task < range.end; ++task) ++runs.at(task);
            seen += range.end - range.begin;
          };
          share.ForEachRange(0, share.tasks() / 2, 5, run);
          EXPECT_EQ(seen, share.tasks() / 2);
          share.ForEachRange(share.tasks() / 2, share.tasks(), 5, run);
          EXPECT_EQ(seen, share.tasks());
        }
        EXPECT_EQ(runs, std::vector<int>(grid.tasks(), 1));
      }
    }
  }
}

// Part of rows `row` of a task, whatever its image and channels.
int64_t RowOf(const TaskGrid& grid, int64_t task) {
  return (grid.channels_inner ? task / grid.channels : task) % grid.rows;
}

TEST(Share, RowsAreCutAtTheSameRowHoweverTheyAreGrouped) {
  for (const int64_t height : {1, 2, 3, 7, 14, 56, 112}) {
    for (const int threads : {1, 2, 3, 7}) {
      for (const int64_t width : {1, 7, 14}) {
        for (const bool channels_inner : {false, true}) {
          for (const int64_t rows_a_part : {1, 2, 4}) {
            const TaskGrid grid = {.images = 2,
                                   .channels = 3,
                                   .rows = (height + rows_a_part - 1) / rows_a_part,
                                   .channels_inner = channels_inner,
                                   .height = height,
                                   .row_units = width,
                                   .part_units = rows_a_part * width};
            if (!grid.Can(Split::kRows)) continue;
            for (int thread = 0; thread < threads; ++thread) {
              const Share share(grid, Split::kRows, thread, threads);
              const int64_t begin = FirstRowOf(height, thread, threads);
              const int64_t end = FirstRowOf(height, thread + 1, threads);
              share.ForEachRange(0, share.tasks(), thread, [&](TaskRange range) {
                for (int64_t task = range.begin; task < range.end; ++task) {
                  const int64_t row = RowOf(grid, task) * rows_a_part;
                  // At most half a part beyond the boundary.
                  EXPECT_GE(2 * row, 2 * begin - rows_a_part);
                  EXPECT_LE(2 * row, 2 * end + rows_a_part);
                  if (rows_a_part > 1) continue;
                  EXPECT_GE(row, begin);
                  EXPECT_LT(row, end);
                }
              });
            }
          }
        }
      }
    }
  }
}

TEST(Share, OfAGridInTheSplitsOrderIsOneRange) {
  const TaskGrid rows = {.channels = 4, .rows = 8, .channels_inner = true, .height = 8};
  const TaskGrid channels = {.channels = 4, .rows = 8, .height = 8};
  const auto ranges = [](const TaskGrid& grid, Split split) {
    int count = 0;
    const Share share(grid, split, 1, 2);
    share.ForEachRange(0, share.tasks(), 1, [&](TaskRange) { ++count; });
    return count;
  };
  EXPECT_EQ(ranges(rows, Split::kRows), 1);
  EXPECT_EQ(ranges(channels, Split::kChannels), 1);
  EXPECT_EQ(ranges(channels, Split::kRows), 4);
  EXPECT_EQ(ranges(rows, Split::kChannels), 8);
}

TEST(Split, NamesAreReadBack) {
  for (const Split split : kSplits) EXPECT_EQ(SplitOfName(SplitName(split)), split);
  EXPECT_EQ(SplitOfName("columns"), std::nullopt);
}

}  // namespace
}  // namespace tilesmith
