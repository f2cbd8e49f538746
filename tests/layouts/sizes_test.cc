#include "layouts/base/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "layouts/base/error.h"
#include "layouts/layout.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

using Wide = __int128;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

bool Fits(Wide value) { return value >= kMin && value <= kMax; }

template <typename Compute>
std::optional<int64_t> ValueOf(const Compute& compute) {
  try {
    return compute().value();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadModel);
    return std::nullopt;
  }
}

std::optional<int64_t> Exact(Wide value) {
  return Fits(value) ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

// Sizes of every magnitude, and right beside the ends and the powers of two.
int64_t AnySize(TestRandom& random) {
  const int64_t base = random.Pick(std::initializer_list<int64_t>{
      0, kMax, kMin, int64_t{1} << random.Integer(0, 62), -(int64_t{1} << random.Integer(0, 62))});
  const int64_t offset = random.Integer(-3, 3);
  if (random.Integer(0, 2) == 0) return static_cast<int64_t>(random.Next()) >> random.Integer(0, 63);
  const Wide sum = static_cast<Wide>(base) + offset;
  return Fits(sum) ? static_cast<int64_t>(sum) : base;
}

TEST(Checked, EqualsWideArithmeticOrRefuses) {
  TestRandom random(1);
  int refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    const int64_t a = AnySize(random), b = AnySize(random);
    SCOPED_TRACE(testing::Message() << a << " and " << b);
    ASSERT_EQ(ValueOf([&] { return Checked(a) + b; }), Exact(static_cast<Wide>(a) + b));
    ASSERT_EQ(ValueOf([&] { return Checked(a) - b; }), Exact(static_cast<Wide>(a) - b));
    const std::optional<int64_t> product = Exact(static_cast<Wide>(a) * b);
    ASSERT_EQ(ValueOf([&] { return Checked(a) * b; }), product);
    refused += !product.has_value();
  }
  EXPECT_GT(refused, 10'000);
  EXPECT_LT(refused, 190'000);
}

TEST(Checked, RoundsUpAsWideArithmeticDoes) {
  TestRandom random(2);
  for (int i = 0; i < 100'000; ++i) {
    const int64_t a = AnySize(random) & kMax, b = std::max<int64_t>(AnySize(random) & kMax, 1);
    SCOPED_TRACE(testing::Message() << a << " to a multiple of " << b);
    const Wide quotient = (static_cast<Wide>(a) + b - 1) / b;
    ASSERT_EQ(CeilDiv(a, b), static_cast<int64_t>(quotient));
    ASSERT_EQ(ValueOf([&] { return Checked(RoundUp(a, b)); }), Exact(quotient * b));
  }
}

TEST(Checked, NamesBothOperands) {
  try {
    (void)(Checked(7) * 7905747460161236407);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("7 * 7905747460161236407"));
  }
}

Shape AnyShape(TestRandom& random) {
  Shape shape(random.Integer(0, 4));
  for (int64_t& size : shape) size = random.Integer(0, 3) == 0 ? AnySize(random) : random.Integer(0, 70'000);
  return shape;
}

std::optional<Wide> WideProduct(const Shape& shape) {
  Wide product = 1;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    product *= size;
    if (!Fits(product)) return std::nullopt;
  }
  return product;
}

TEST(Sizes, CountElementsAsWideArithmeticOrRefuse) {
  TestRandom random(3);
  for (int i = 0; i < 100'000; ++i) {
    const Shape shape = AnyShape(random);
    SCOPED_TRACE(ShapeToString(shape));
    const std::optional<Wide> expected = WideProduct(shape);
    ASSERT_EQ(ValueOf([&] { return Checked(ElementCount(shape)); }),
              expected ? std::optional(static_cast<int64_t>(*expected)) : std::nullopt);
  }
}

// Whatever passes CheckShape has strides, padded sizes and bytes that fit.
TEST(Sizes, OfAcceptedShapesAllThatFollowsFits) {
  TestRandom random(4);
  const SizeLimits limits{.tensor_elements = kMaxTensorElements};
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Shape shape = AnyShape(random);
    SCOPED_TRACE(ShapeToString(shape));
    try {
      CheckShape(shape, limits);
    } catch (const Error&) {
      continue;
    }
    ++accepted;
    Wide elements = 1;
    for (const int64_t size : shape) elements *= std::max<int64_t>(size, 1);
    ASSERT_LE(elements, static_cast<Wide>(kMaxTensorElements));
    for (const Layout layout :
         {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(random.Integer(1, Layout::kMaxBlock))}) {
      const Dims4 dims = ToDims4(shape);
      const Wide channels = static_cast<Wide>(layout.Blocks(dims.c)) * layout.BlockFor(dims.c);
      const Wide image = channels * dims.h * dims.w;
      if (shape.empty() || shape[0] > 0) {
        ASSERT_EQ(Wide{BatchStride(shape, layout)}, image);
      }
      ASSERT_EQ(Wide{PaddedElementCount(shape, layout)}, image * dims.n);
      ASSERT_EQ(Wide{PaddedBytes(shape, layout.WithType(DataType::kI64))}, image * dims.n * 8);
    }
  }
  EXPECT_GT(accepted, 10'000);
}

std::string RefusalOf(const Shape& shape, const SizeLimits& limits) {
  try {
    CheckShape(shape, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadModel);
    return error.what();
  }
  return "";
}

TEST(Sizes, RefusalsNameShapeAndLimit) {
  EXPECT_EQ(RefusalOf({1, 64, 56, 56}, {}), "");
  EXPECT_EQ(RefusalOf({0, 64, 56, 56}, {}), "");
  EXPECT_EQ(RefusalOf({10, 10}, {.tensor_elements = 100}), "");
  EXPECT_THAT(RefusalOf({10, 11}, {.tensor_elements = 100}),
              testing::AllOf(testing::HasSubstr("10x11"), testing::HasSubstr("100 elements")));
  EXPECT_THAT(RefusalOf({7, 7905747460161236407}, {}), testing::HasSubstr("7x7905747460161236407"));
  EXPECT_THAT(RefusalOf({0, 65536, 65536, 65536}, {}), testing::HasSubstr("0x65536x65536x65536"));
  EXPECT_THAT(RefusalOf({3, -1}, {}), testing::HasSubstr("negative"));
  EXPECT_THAT(RefusalOf(Shape(200'000, 1), {}),
              testing::AllOf(testing::HasSubstr("200000 dimensions"), testing::HasSubstr("32")));
}

}  // namespace
}  // namespace tilesmith
