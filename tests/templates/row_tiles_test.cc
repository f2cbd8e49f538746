#include "templates/base/row_tiles.h"

#include <gtest/gtest.h>

#include "tests/support/random_workload.h"

namespace tilesmith {
namespace {

// Tiles one by one: alike neighbours inside are a run.
std::vector<TileRun> CutOneByOne(const ConvWorkload& w, const RowCut& cut) {
  const int64_t count = (cut.ow + cut.width - 1) / cut.width;
  std::vector<TileRun> runs;
  int64_t first = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t width =
        cut.balance ? cut.ow / count + (i < cut.ow % count) : std::min(cut.width, cut.ow - first);
    bool edge = false;
    for (int64_t position = first; position < first + width; ++position) {
      for (int64_t column = 0; column < w.kw; ++column) {
        const int64_t at = position * w.sw - w.pw + column * (w.dw + 1);
        edge = edge || at < 0 || at >= cut.iw;
      }
    }
    const bool joins = !runs.empty() && !edge && !runs.back().edge && runs.back().width == width;
    if (joins) {
      ++runs.back().count;
    } else {
      runs.push_back({static_cast<int>(first), static_cast<int>(width), 1, edge});
    }
    first += width;
  }
  return runs;
}

TEST(RowTiles, RunsAreThoseOfTilesCutOneByOne) {
  TestRandom random(3);
  for (int i = 0; i < 2000; ++i) {
    const ConvWorkload w = RandomWorkload(random);
    const RowCut cut = {w.iw, w.ow, random.Integer(1, 9), random.Integer(0, 1) == 1};
    const std::vector<TileRun> runs = CutRow(w, cut), expected = CutOneByOne(w, cut);
    ASSERT_EQ(runs.size(), expected.size()) << WorkloadToString(w) << " in " << cut.width;
    for (size_t r = 0; r < runs.size(); ++r) {
      EXPECT_EQ(runs[r].first, expected[r].first) << WorkloadToString(w);
      EXPECT_EQ(runs[r].width, expected[r].width) << WorkloadToString(w);
      EXPECT_EQ(runs[r].count, expected[r].count) << WorkloadToString(w);
      EXPECT_EQ(runs[r].edge, expected[r].edge) << WorkloadToString(w);
    }
    int64_t edges = 0;
    for (const TileRun& run : CutOneByOne(w, {w.iw, w.ow, 1, false})) edges += run.edge ? 1 : 0;
    EXPECT_EQ(EdgePositions(w), edges) << WorkloadToString(w);
  }
}

TEST(InputRows, EveryKernelRowOfEveryOutputRowIsATap) {
  for (const char* text :
       {"mb1ic1ih30oc1kh3ph1", "mb1ic1ih30oc1kh5sh2ph2", "mb1ic1ih30oc1kh3ph2dh1", "mb1ic1ih30oc1kh1sh3"}) {
    const ConvWorkload w = ParseWorkload(text);
    for (int64_t output_rows = 1; output_rows <= 4; ++output_rows) {
      size_t taps = 0;
      int64_t before = -1;
      for (const InputRow& row : InputRowsOf(w, output_rows)) {
        EXPECT_GT(row.offset, before) << text;
        before = row.offset;
        taps += row.taps.size();
        for (const InputRow::Tap& tap : row.taps)
          EXPECT_EQ(tap.output_row * w.sh + tap.kernel_row * (w.dh + 1), row.offset) << text;
      }
      EXPECT_EQ(taps, static_cast<size_t>(output_rows * w.kh)) << text;
    }
  }
}

TEST(InputRows, BitsTellWhichAreInside) {
  const std::vector<InputRow> rows = InputRowsOf(ParseWorkload("mb1ic1ih4oc1kh3ph1"), 2);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(RowsInside(rows, -1, 4), 0b1110U);
  EXPECT_EQ(RowsInside(rows, 1, 4), 0b0111U);
  EXPECT_EQ(RowsInside(rows, 0, 4), 0b1111U);
  EXPECT_EQ(RowsInside(rows, -9, 4), 0U);
}

TEST(FlatRows, OnlyOneByOneConvsAreRecut) {
  EXPECT_FALSE(CanFlatten(ParseWorkload("mb1ic1ih8oc1kh3ph1")));
  EXPECT_FALSE(CanFlatten(ParseWorkload("mb1ic1ih8oc1kh1sh2")));
  const ConvWorkload w = ParseWorkload("mb1ic1ih8oc1kh1");
  ASSERT_TRUE(CanFlatten(w));
  EXPECT_EQ(LongerRowWidths(w), (std::vector<int64_t>{0, 64, 32, 16}));
  const ConvWorkload flat = Flattened(w, 16);
  EXPECT_EQ(flat.ih, 4);
  EXPECT_EQ(flat.ow, 16);
  EXPECT_EQ(Flattened(w, 0), w);
}

}  // namespace
}  // namespace tilesmith
