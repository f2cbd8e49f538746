// A type that the program does not have: the entry for it is made by example_type.cmake, and this, the tests
// that go through all types, and what of the folder works with elements are compiled with it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "layouts/base/error.h"
#include "layouts/transform.h"

namespace tilesmith {
namespace {

F8 FromBits(uint32_t bits) {
  F8 number;
  number.bits = static_cast<uint8_t>(bits);
  return number;
}

TEST(ExampleType, ItsNumbersAreTheirOwnNearest) {
  EXPECT_EQ(ParseDataType("f8"), DataType::kF8);
  EXPECT_TRUE(IsFloating(DataType::kF8));
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const float value = FromBits(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float{F8(value)}));
      continue;
    }
    EXPECT_EQ(F8(value).bits, bits);
    const float next = FromBits(bits + 1);
    if (bits % 128 >= 0x7b) continue;  // its neighbour is infinite
    const float middle = (value + next) / 2;
    EXPECT_EQ(F8(middle).bits, bits + bits % 2);
    EXPECT_EQ(F8(std::nextafter(middle, value)).bits, bits);
    EXPECT_EQ(F8(std::nextafter(middle, next)).bits, bits + 1);
  }
}

TEST(ExampleType, OtherTypesBecomeIt) {
  EXPECT_EQ(float{ConvertElement<F8>(int64_t{1} << 40)}, std::numeric_limits<float>::infinity());
  EXPECT_EQ(float{ConvertElement<F8>(1 + 0x1p-3 + 0x1p-40)}, 1.25f);
  EXPECT_EQ(float{ConvertElement<F8>(F16(3.4f))}, 3.5f);
  EXPECT_EQ(ConvertElement<int8_t>(F8(-2.5f)), -2);
  EXPECT_EQ(ConvertElement<Bf16>(F8(1.75f)).bits, Bf16(1.75f).bits);
  EXPECT_TRUE(ConvertElement<bool>(F8(0.25f)));
}

TEST(ExampleType, LayoutsMoveItAndTakeNoOtherTypeForIt) {
  Tensor source({2, 37, 5, 9}, Layout::Nchw(DataType::kF8));
  for (int64_t i = 0; i < source.size(); ++i) source.data<F8>()[i] = FromBits(static_cast<uint32_t>(i * 7));
  for (const Isa isa : {Isa::kPortable, DetectCpu().isa}) {
    const Target cpu = CapIsa(DetectCpu(), isa);
    for (const char* text : {"NHWC:f8", "NCHW16c:f8", "NCHW3c:f8"}) {
      const Tensor moved = Transform(source, Layout::Parse(text), cpu, 2);
      const Tensor expected = TransformGeneric(source, moved.layout());
      ASSERT_EQ(moved.bytes(), expected.bytes());
      EXPECT_EQ(std::memcmp(moved.raw(), expected.raw(), static_cast<size_t>(moved.bytes())), 0) << text;
      const Tensor back = Transform(moved, source.layout(), cpu, 1);
      EXPECT_EQ(std::memcmp(back.raw(), source.raw(), static_cast<size_t>(source.bytes())), 0) << text;
    }
    EXPECT_THROW(Transform(source, Layout::Nchw(), cpu, 1), Error);
  }
}

}  // namespace
}  // namespace tilesmith
