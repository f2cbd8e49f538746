#include "layouts/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

TEST(Layout, ParsesWhatItPrints) {
  for (const char* text : {"NCHW", "NHWC", "NCHW2c", "NCHW5c", "NCHW16c", "NCHW1024c", "NCHW65536c"}) {
    EXPECT_EQ(Layout::Parse(text).ToString(), text);
  }
  EXPECT_EQ(Layout::Parse("NCHW16c"), Layout::Blocked(16));
  EXPECT_EQ(Layout::Parse("NHWC"), Layout::Nhwc());
  EXPECT_EQ(Layout(), Layout::Nchw());
}

TEST(Layout, HasAType) {
  EXPECT_EQ(Layout::Parse("NCHW16c:bf16"), Layout::Blocked(16, DataType::kBf16));
  EXPECT_EQ(Layout::Parse("NHWC:u8").type(), DataType::kU8);
  EXPECT_EQ(Layout::Parse("NCHW").type(), DataType::kF32);
  EXPECT_EQ(Layout::Parse("NCHW16c:f32").ToString(), "NCHW16c");
  for (int i = 1; i < kDataTypes; ++i) {
    for (const Layout& order : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8)}) {
      const Layout typed = order.WithType(static_cast<DataType>(i));
      EXPECT_EQ(Layout::Parse(typed.ToString()), typed);
      EXPECT_NE(typed, order);
      EXPECT_TRUE(order < typed && typed.WithType(DataType::kF32) == order);
      EXPECT_EQ(typed.is_nchw(), order.is_nchw());
      EXPECT_EQ(typed.is_nhwc(), order.is_nhwc());
      EXPECT_FALSE(SameMemory({1, 8, 1, 1}, typed, order));
      EXPECT_TRUE(SameMemory({1, 8, 1, 1}, typed, Layout::Nchw(typed.type())));
      EXPECT_EQ(PaddedBytes({2, 3, 5, 7}, typed) * 4,
                PaddedBytes({2, 3, 5, 7}, order) * typed.element_bytes());
      EXPECT_EQ(BatchBytes({2, 3, 5, 7}, typed), BatchStride({2, 3, 5, 7}, order) * typed.element_bytes());
    }
  }
  EXPECT_LT(Layout::Nchw(DataType::kBool), Layout::Blocked(2)) << "the order of f32 layouts stays";
  for (const char* text : {"NCHW:", "NCHW:float", "NCHW16c:u8 ", ":u8", "NCHW:u8:u8"})
    EXPECT_THROW(Layout::Parse(text), Error) << text;
}

TEST(Layout, BlockOneIsNchw) {
  EXPECT_EQ(Layout::Parse("NCHW1c"), Layout::Nchw());
  EXPECT_EQ(Layout::Blocked(1), Layout::Nchw());
  EXPECT_TRUE(Layout::Blocked(1).is_nchw());
  EXPECT_FALSE(Layout::Blocked(1).is_nhwc());
}

TEST(Layout, ParseErrorsNameTextAndAllowedForms) {
  for (const char* text : {"", "nchw", "NCHWc", "NCHW0c", "NCHW-8c", "NCHW8", "NCHW 8c", "NCHW8cc", "NHWC8c",
                           "NCHW65537c", "NCHW9223372036854775807c", "NCHW99999999999999999999c"}) {
    try {
      Layout::Parse(text);
      ADD_FAILURE() << "accepted \"" << text << '"';
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_THAT(error.what(), HasSubstr('"' + std::string(text) + '"'));
      EXPECT_THAT(error.what(), HasSubstr("NCHW16c"));
    }
  }
}

TEST(Layout, BlocksAndPadding) {
  EXPECT_EQ(Layout::Blocked(16).Blocks(16), 1);
  EXPECT_EQ(Layout::Blocked(16).Blocks(17), 2);
  EXPECT_EQ(Layout::Blocked(16).PaddedChannels(17), 32);
  EXPECT_EQ(Layout::Nchw().Blocks(17), 17);
  EXPECT_EQ(Layout::Nchw().PaddedChannels(17), 17);
  EXPECT_EQ(Layout::Nhwc().Blocks(17), 1);
  EXPECT_EQ(Layout::Nhwc().BlockFor(17), 17);
  EXPECT_EQ(Layout::Nhwc().PaddedChannels(17), 17);
  EXPECT_EQ(Layout::Nhwc().Blocks(0), 0);
  EXPECT_THROW(Layout::Blocked(0), Error);
}

TEST(Layout, OffsetsByHand) {
  const Dims4 dims = {.n = 2, .c = 20, .h = 3, .w = 5};
  const Dims4 at = {.n = 1, .c = 17, .h = 2, .w = 4};
  EXPECT_EQ(ElementOffset(dims, Layout::Nchw(), at), ((1 * 20 + 17) * 3 + 2) * 5 + 4);
  EXPECT_EQ(ElementOffset(dims, Layout::Nhwc(), at), ((1 * 3 + 2) * 5 + 4) * 20 + 17);
  EXPECT_EQ(ElementOffset(dims, Layout::Blocked(16), at), (((1 * 2 + 1) * 3 + 2) * 5 + 4) * 16 + 1);
}

TEST(Layout, OffsetsAreDistinctAndInside) {
  const Shape shape = {2, 7, 3, 4};
  const Dims4 dims = ToDims4(shape);
  for (const Layout& layout : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(3), Layout::Blocked(8)}) {
    std::set<int64_t> seen;
    Dims4 at;
    for (at.n = 0; at.n < dims.n; ++at.n) {
      for (at.c = 0; at.c < dims.c; ++at.c) {
        for (at.h = 0; at.h < dims.h; ++at.h) {
          for (at.w = 0; at.w < dims.w; ++at.w) seen.insert(ElementOffset(dims, layout, at));
        }
      }
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), ElementCount(shape)) << layout.ToString();
    EXPECT_GE(*seen.begin(), 0);
    EXPECT_LT(*seen.rbegin(), PaddedElementCount(shape, layout)) << layout.ToString();
  }
}

TEST(Layout, CountsAndStrides) {
  const Shape shape = {2, 20, 3, 5};
  EXPECT_EQ(ElementCount(shape), 600);
  EXPECT_EQ(BatchStride(shape, Layout::Nchw()), 300);
  EXPECT_EQ(BatchStride(shape, Layout::Nhwc()), 300);
  EXPECT_EQ(BatchStride(shape, Layout::Blocked(16)), 480);
  EXPECT_EQ(PaddedElementCount(shape, Layout::Blocked(16)), 960);
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(PaddedElementCount({}, Layout::Nchw()), 1);
  EXPECT_EQ(BatchStride({3, 2, 2, 2, 2}, Layout::Nchw()), 16);
  EXPECT_EQ(PaddedElementCount({0, 3, 2, 2}, Layout::Blocked(8)), 0);
}

TEST(Layout, ToDims4FillsWithOnes) {
  const Dims4 dims = ToDims4({4, 10});
  EXPECT_EQ(dims.n, 4);
  EXPECT_EQ(dims.c, 10);
  EXPECT_EQ(dims.h, 1);
  EXPECT_EQ(dims.w, 1);
  EXPECT_THROW(ToDims4({1, 2, 3, 4, 5}), Error);
}

TEST(Layout, SameMemoryCases) {
  const Layout nchw = Layout::Nchw(), nhwc = Layout::Nhwc();
  EXPECT_TRUE(SameMemory({1, 16, 7, 7}, nhwc, Layout::Blocked(16)));
  EXPECT_FALSE(SameMemory({1, 17, 7, 7}, nhwc, Layout::Blocked(16)));
  EXPECT_FALSE(SameMemory({1, 15, 7, 7}, nhwc, Layout::Blocked(16)));
  EXPECT_TRUE(SameMemory({2, 1, 7, 7}, nhwc, nchw));
  EXPECT_TRUE(SameMemory({2, 64, 1, 1}, nchw, Layout::Blocked(8)));
  EXPECT_FALSE(SameMemory({2, 65, 1, 1}, nchw, Layout::Blocked(8)));
  EXPECT_FALSE(SameMemory({1, 64, 7, 7}, Layout::Blocked(8), Layout::Blocked(16)));
  EXPECT_TRUE(SameMemory({1, 3, 7, 7}, Layout::Blocked(8), Layout::Blocked(8)));
  EXPECT_TRUE(SameMemory({2, 2, 2, 2, 2}, nchw, nchw));
  EXPECT_FALSE(SameMemory({2, 2, 2, 2, 2}, nchw, nhwc));
}

// The definition, on small shapes: equal padded size and equal offset of every element.
TEST(Layout, SameMemoryAgreesWithOffsets) {
  const std::vector<Layout> layouts = {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(2),
                                       Layout::Blocked(4)};
  for (const Shape& shape : {Shape{1, 4, 2, 3}, Shape{2, 1, 3, 1}, Shape{2, 4, 1, 1}, Shape{1, 3, 1, 1}}) {
    const Dims4 dims = ToDims4(shape);
    for (const Layout& a : layouts) {
      for (const Layout& b : layouts) {
        bool same = PaddedElementCount(shape, a) == PaddedElementCount(shape, b);
        for (int64_t i = 0; i < ElementCount(shape); ++i) {
          const Dims4 at = {.n = i / (dims.c * dims.h * dims.w),
                            .c = i / (dims.h * dims.w) % dims.c,
                            .h = i / dims.w % dims.h,
                            .w = i % dims.w};
          same = same && ElementOffset(dims, a, at) == ElementOffset(dims, b, at);
        }
        EXPECT_EQ(SameMemory(shape, a, b), same)
            << ShapeToString(shape) << " " << a.ToString() << " " << b.ToString();
      }
    }
  }
}

TEST(Layout, ShapePrints) {
  EXPECT_EQ(ShapeToString({1, 64, 56, 56}), "1x64x56x56");
  EXPECT_EQ(ShapeToString({}), "");
}

}  // namespace
}  // namespace tilesmith
