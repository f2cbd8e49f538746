#include "layouts/data_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(DataType, NamesAndSizesRoundTrip) {
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(ParseDataType(DataTypeName(type)), type);
    VisitType(type, [&](auto tag) {
      EXPECT_EQ(kDataTypeOf<typename decltype(tag)::Type>, type);
      EXPECT_EQ(ElementBytes(type), sizeof(typename decltype(tag)::Type));
    });
  }
  EXPECT_EQ(DataTypeName(DataType::kBf16), "bf16");
  EXPECT_EQ(static_cast<int>(DataType::kF32), 0) << "hashes of networks would change";
  EXPECT_EQ(static_cast<int>(DataType::kI64), 1) << "hashes of networks would change";
  try {
    ParseDataType("int8");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("\"int8\""), testing::HasSubstr("bf16")));
  }
}

// A format of 16 bits, by its definition.
struct Format {
  int exponent_bits, fraction_bits;
  uint16_t (*to_bits)(float);
  float (*from_bits)(uint16_t);

  int exponent(uint16_t bits) const { return bits >> fraction_bits & ((1 << exponent_bits) - 1); }
  int fraction(uint16_t bits) const { return bits & ((1 << fraction_bits) - 1); }
  bool special(uint16_t bits) const { return exponent(bits) == (1 << exponent_bits) - 1; }
  double Value(uint16_t bits) const {  // of what is not special
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double magnitude = exponent(bits) == 0 ? std::ldexp(fraction(bits), 1 - bias - fraction_bits)
                                                 : std::ldexp((1 << fraction_bits) + fraction(bits),
                                                              exponent(bits) - bias - fraction_bits);
    return bits & 0x8000 ? -magnitude : magnitude;
  }
};
const Format kFormats[] = {{5, 10, F16Bits, FromF16Bits}, {8, 7, Bf16Bits, FromBf16Bits}};

TEST(DataType, EveryNumberOf16BitsIsItself) {
  for (const Format& format : kFormats) {
    for (uint32_t i = 0; i <= 0xffff; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const float value = format.from_bits(bits);
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
      if (!format.special(bits)) {
        ASSERT_EQ(value, format.Value(bits)) << i;
        ASSERT_EQ(format.to_bits(value), bits) << i;
      } else if (format.fraction(bits) == 0) {
        ASSERT_EQ(std::abs(value), kInf) << i;
        ASSERT_EQ(format.to_bits(value), bits) << i;
      } else {
        ASSERT_TRUE(std::isnan(value)) << i;
        const uint16_t again = format.to_bits(value);
        ASSERT_TRUE(format.special(again) && format.fraction(again) != 0) << i;
        ASSERT_EQ(again & 0x8000, bits & 0x8000) << i;
      }
    }
  }
}

TEST(DataType, WhatLiesBetweenGoesToTheNearestAndTiesToEven) {
  for (const Format& format : kFormats) {
    for (uint32_t i = 0; i < 0x7fff; ++i) {
      const auto low = static_cast<uint16_t>(i), high = static_cast<uint16_t>(i + 1);
      if (format.special(low)) continue;
      // What is half a step above the largest number rounds as if there were one more.
      const double step = format.special(high) ? format.Value(low) - format.Value(low - 1)
                                               : format.Value(high) - format.Value(low);
      const auto middle = static_cast<float>(format.Value(low) + step / 2);
      const uint16_t even = low & 1 ? high : low;
      ASSERT_EQ(format.to_bits(middle), even) << i;
      ASSERT_EQ(format.to_bits(-middle), even | 0x8000) << i;
      ASSERT_EQ(format.to_bits(std::nextafter(middle, 0.0f)), low) << i;
      ASSERT_EQ(format.to_bits(std::nextafter(middle, kInf)), high) << i;
      ASSERT_EQ(format.to_bits(-std::nextafter(middle, kInf)), high | 0x8000) << i;
    }
  }
  EXPECT_EQ(F16Bits(1e30f), 0x7c00);
  EXPECT_EQ(F16Bits(-1e-30f), 0x8000);
}

TEST(DataType, ManyFloatsAsF16WithoutTablesOfOurs) {
  for (uint64_t i = 0; i < 1u << 20; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(i * 4099 + 17));
    if (std::isnan(value)) continue;
    const auto bits = F16Bits(value);
    const float back = FromF16Bits(bits);
    // No neighbour is nearer.
    if (std::isinf(back)) {
      ASSERT_GE(std::abs(value), 65520.0f) << value;
      continue;
    }
    const double error = std::abs(double{back} - double{value});
    for (const int step : {-1, 1}) {
      const auto other = static_cast<uint16_t>(bits + step);
      if ((other & 0x7fff) >= 0x7c00 || (other & 0x8000) != (bits & 0x8000)) continue;
      ASSERT_LE(error, std::abs(double{FromF16Bits(other)} - double{value})) << value;
    }
  }
}

TEST(DataType, DoublesAreRoundedOnce) {
  // A little above a tie of f16, but not by as much as a float can tell.
  EXPECT_EQ(ConvertElement<F16>(1 + 0x1p-11 + 0x1p-40).bits, 0x3c01);
  EXPECT_EQ(ConvertElement<F16>(1 + 0x1p-11 - 0x1p-40).bits, 0x3c00);
  EXPECT_EQ(ConvertElement<F16>(-1 - 0x1p-11 - 0x1p-40).bits, 0xbc01);
  EXPECT_EQ(ConvertElement<Bf16>(1 + 0x1p-8 + 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(ConvertElement<Bf16>(int64_t{1} << 40 | int64_t{1} << 32 | 1).bits, 0x5381);
  EXPECT_TRUE(std::isnan(float{ConvertElement<F16>(double{NAN})}));
}

TEST(DataType, IntegersTakeWhatFits) {
  const auto to_i8 = [](float value) { return static_cast<int>(ConvertElement<int8_t>(value)); };
  EXPECT_EQ(to_i8(1.9f), 1);
  EXPECT_EQ(to_i8(-1.9f), -1);
  EXPECT_EQ(to_i8(127.9f), 127);
  EXPECT_EQ(to_i8(128), 127);
  EXPECT_EQ(to_i8(-128.9f), -128);
  EXPECT_EQ(to_i8(-1e9f), -128);
  EXPECT_EQ(to_i8(NAN), 0);
  EXPECT_EQ(ConvertElement<uint8_t>(-0.5f), 0);
  EXPECT_EQ(ConvertElement<uint8_t>(255.5f), 255);
  EXPECT_EQ(ConvertElement<int64_t>(0x1p63f), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ConvertElement<int64_t>(-0x1p63f), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ConvertElement<uint64_t>(0x1p63f), uint64_t{1} << 63);
  EXPECT_EQ(ConvertElement<uint64_t>(kInf), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ConvertElement<int32_t>(F16(-2.5f)), -2);
  EXPECT_EQ(static_cast<int>(ConvertElement<int8_t>(int64_t{300})), 44);
  EXPECT_EQ(ConvertElement<uint32_t>(int8_t{-1}), 0xffffffffu);
  EXPECT_TRUE(ConvertElement<bool>(0.25f));
  EXPECT_TRUE(ConvertElement<bool>(NAN));
  EXPECT_FALSE(ConvertElement<bool>(-0.0f));
  EXPECT_TRUE(ConvertElement<bool>(int64_t{1} << 40));
  EXPECT_EQ(ConvertElement<int64_t>(true), 1);
  EXPECT_EQ(ConvertElement<float>(uint64_t{1} << 63), 0x1p63f);
}

}  // namespace
}  // namespace tilesmith
