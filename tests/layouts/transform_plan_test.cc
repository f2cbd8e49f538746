#include "layouts/transform_plan.h"

#include <gtest/gtest.h>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

TEST(MovePlan, KindsFollowTheBlocks) {
  const Shape shape = {1, 64, 7, 7};
  const Layout nchw = Layout::Nchw(), nhwc = Layout::Nhwc();
  EXPECT_EQ(PlanTransform(shape, nchw, Layout::Blocked(16)).kind, MoveKind::kInterleave);
  EXPECT_EQ(PlanTransform(shape, nchw, nhwc).kind, MoveKind::kInterleave);
  EXPECT_EQ(PlanTransform(shape, nhwc, nchw).kind, MoveKind::kDeinterleave);
  EXPECT_EQ(PlanTransform(shape, nhwc, Layout::Blocked(16)).kind, MoveKind::kRuns);
  EXPECT_EQ(PlanTransform(shape, nhwc, Layout::Blocked(64)).kind, MoveKind::kFlat);
  EXPECT_EQ(PlanTransform(shape, nchw, nchw).kind, MoveKind::kFlat);
  EXPECT_EQ(PlanTransform({1, 63, 1, 1}, nchw, Layout::Blocked(16)).kind, MoveKind::kFlat);
  EXPECT_EQ(PlanTransform({1, 63, 7, 7}, Layout::Blocked(16), Layout::Blocked(16)).kind, MoveKind::kRuns);
}

TEST(MovePlan, RegroupingJoinsEqualRuns) {
  const MovePlan plan = PlanTransform({1, 128, 10, 10}, Layout::Blocked(16), Layout::Blocked(64));
  ASSERT_EQ(plan.moves.size(), 2u);
  const ChannelMove want = {.in_offset = 64 * 100,
                            .out_offset = 64 * 100,
                            .in_run_stride = 16 * 100,
                            .out_run_stride = 16,
                            .runs = 4,
                            .length = 16,
                            .padded = 16,
                            .in_block = 4,
                            .out_block = 1,
                            .in_run_blocks = 1};
  EXPECT_EQ(plan.moves[1], want);
  // Of images of which half the rows are there.
  const ChannelMove shifted = plan.Shifted(1, {.in = -800, .out = -3200});
  EXPECT_EQ(shifted.in_offset, 64 * 50);
  EXPECT_EQ(shifted.out_offset, 64 * 50);
  EXPECT_EQ(shifted.in_run_stride, 16 * 50);
  EXPECT_EQ(shifted.out_run_stride, 16);
}

TEST(MovePlan, CutsWhereEitherSideStartsABlock) {
  const MovePlan plan = PlanTransform({1, 10, 4, 4}, Layout::Blocked(3), Layout::Blocked(8));
  const std::vector<std::pair<int64_t, int64_t>> want = {{3, 3}, {2, 2}, {1, 1}, {1, 7}};  // 3 3 2 | 1 1+6
  ASSERT_EQ(plan.moves.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(plan.moves[i].length, want[i].first) << i;
    EXPECT_EQ(plan.moves[i].padded, want[i].second) << i;
  }
  EXPECT_EQ(plan.moves[0].runs, 2);
}

TEST(MovePlan, ChunksCoverThePixelsInWholeLines) {
  for (int64_t side : {1, 2, 5, 7, 14, 28, 57, 112}) {
    for (int64_t channels : {3, 64, 512}) {
      const MovePlan plan = PlanTransform({1, channels, side, side}, Layout::Nchw(), Layout::Blocked(16));
      EXPECT_EQ(plan.ChunkBegin(0), 0);
      EXPECT_EQ(plan.ChunkBegin(plan.chunks), plan.pixels);
      for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
        EXPECT_LT(plan.ChunkBegin(chunk), plan.ChunkBegin(chunk + 1));
        EXPECT_EQ(plan.ChunkBegin(chunk) % 16, 0);
      }
    }
  }
}

// Tasks are worth starting, and where there is work for many threads there are tasks for them.
TEST(MovePlan, TaskSizesSuitManyThreads) {
  const Layout nchw = Layout::Nchw(), nhwc = Layout::Nhwc(), c8 = Layout::Blocked(8),
               c16 = Layout::Blocked(16);
  for (const Shape& shape : {Shape{1, 64, 56, 56}, Shape{1, 512, 7, 7}, Shape{1, 2048, 7, 7},
                             Shape{1, 3, 224, 224}, Shape{8, 256, 14, 14}, Shape{1, 1280, 2, 2}}) {
    for (const auto& [from, to] : {std::pair{nchw, c16},
                                   {c16, nchw},
                                   {nhwc, nchw},
                                   {nchw, nhwc},
                                   {nhwc, c8},
                                   {c8, nhwc},
                                   {c8, c16},
                                   {c16, c8},
                                   {nchw, nchw}}) {
      const MovePlan plan = PlanTransform(shape, from, to);
      const int64_t tasks = plan.images * plan.TasksPerImage();
      const int64_t bytes = PaddedElementCount(shape, to) * 4;
      EXPECT_GE(bytes / tasks, 2048) << ShapeToString(shape) << " " << from.ToString() << " "
                                     << to.ToString();
      EXPECT_LE(bytes / tasks, 32768)
          << ShapeToString(shape) << " " << from.ToString() << " " << to.ToString();
    }
  }
}

TEST(MovePlan, HigherRanksOnlyInNchw) {
  const Shape shape = {2, 3, 2, 2, 2};
  EXPECT_EQ(PlanTransform(shape, Layout::Nchw(), Layout::Nchw()).images, 2);
  EXPECT_THROW(PlanTransform(shape, Layout::Nchw(), Layout::Nhwc()), Error);
}

}  // namespace
}  // namespace tilesmith
