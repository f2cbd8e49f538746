#include "templates/row_tiles.h"

#include <gtest/gtest.h>

namespace tilesmith {
namespace {

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
