#include "layouts/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

bool AllZero(const AlignedBuffer& buffer) {
  const auto* bytes = static_cast<const unsigned char*>(buffer.data());
  return std::all_of(bytes, bytes + buffer.bytes(), [](unsigned char byte) { return byte == 0; });
}

uintptr_t Address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

TEST(AlignedBuffer, IsAlignedAndZero) {
  for (size_t bytes : {size_t{1}, size_t{64}, size_t{4097}, size_t{2} << 20, (size_t{2} << 20) + 4}) {
    // Dirties memory that the next allocation is likely to get.
    { std::fill_n(static_cast<unsigned char*>(AlignedBuffer(bytes).data()), bytes, 0xFF); }
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(Address(buffer.data()) % 64, 0u) << bytes;
    if (bytes >= size_t{2} << 20) {
      EXPECT_EQ(Address(buffer.data()) % (size_t{2} << 20), 0u) << bytes;
    }
    EXPECT_TRUE(AllZero(buffer)) << bytes;
  }
}

TEST(AlignedBuffer, OfAnythingIsAlignedAndCopied) {
  for (const size_t bytes : {size_t{1}, size_t{4097}, (size_t{2} << 20) + 4}) {
    const AlignedBuffer buffer(bytes, NewMemory::kAnything);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(Address(buffer.data()) % (bytes >= size_t{2} << 20 ? size_t{2} << 20 : 64), 0u) << bytes;
    std::memset(buffer.data(), 0x5A, bytes);
    const AlignedBuffer copy = buffer;
    EXPECT_EQ(std::memcmp(copy.data(), buffer.data(), bytes), 0) << bytes;
  }
}

TEST(AlignedBuffer, EmptyHoldsNothing) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
  const AlignedBuffer copy = AlignedBuffer(0);
  EXPECT_EQ(copy.bytes(), 0u);
}

TEST(AlignedBuffer, CopiesDeeplyAndMovesCheaply) {
  AlignedBuffer a(8);
  a.floats()[1] = 3;
  AlignedBuffer b = a;
  b.floats()[1] = 4;
  EXPECT_EQ(a.floats()[1], 3);
  a = b;
  EXPECT_EQ(a.floats()[1], 4);
  EXPECT_NE(a.data(), b.data());
  const void* memory = a.data();
  const AlignedBuffer c = std::move(a);
  EXPECT_EQ(c.data(), memory);
}

TEST(AlignedBuffer, TooLargeThrowsNamingTheSize) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer ends the process on such a request";
#endif
  const size_t bytes = size_t{1} << 60;
  try {
    AlignedBuffer buffer(bytes);
    ADD_FAILURE() << "allocated an exabyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(std::to_string(bytes)));
  }
}

TEST(Tensor, HasShapeLayoutAndPadding) {
  Tensor tensor({2, 20, 3, 5}, Layout::Blocked(16));
  EXPECT_EQ(tensor.size(), 600);
  EXPECT_EQ(tensor.padded_size(), 960);
  EXPECT_EQ(tensor.input_view().batch_stride, 480 * 4);
  EXPECT_EQ(tensor.output_view().data, tensor.floats());
  EXPECT_TRUE(std::all_of(tensor.floats(), tensor.floats() + 960, [](float x) { return x == 0; }));
}

TEST(Tensor, IsAValue) {
  Tensor a({3});
  a.floats()[2] = 7;
  Tensor b = a;
  b.floats()[2] = 8;
  EXPECT_EQ(a.floats()[2], 7);
  EXPECT_EQ(b.shape(), Shape{3});
}

TEST(Tensor, TypesAreChecked) {
  Tensor ints({2}, Layout::Nchw(DataType::kI64));
  ints.ints()[1] = int64_t{1} << 40;
  EXPECT_EQ(std::as_const(ints).ints()[1], int64_t{1} << 40);
  EXPECT_THROW(ints.floats(), Error);
  EXPECT_THROW(Tensor({2}).ints(), Error);
  Tensor bytes({2, 20, 3, 5}, Layout::Blocked(16, DataType::kU8));
  EXPECT_EQ(bytes.type(), DataType::kU8);
  EXPECT_EQ(bytes.bytes(), 960);
  EXPECT_EQ(bytes.input_view().batch_stride, 480);
  EXPECT_EQ(bytes.input_view().image<uint8_t>(1), bytes.data<uint8_t>() + 480);
  EXPECT_THROW(bytes.data<int8_t>(), Error);
  EXPECT_THROW(bytes.floats(), Error);
}

TEST(Tensor, ReshapedKeepsElements) {
  Tensor tensor({2, 6});
  for (int i = 0; i < 12; ++i) tensor.floats()[i] = static_cast<float>(i);
  const Tensor reshaped = tensor.Reshaped({3, 2, 2});
  EXPECT_EQ(reshaped.shape(), (Shape{3, 2, 2}));
  EXPECT_TRUE(std::equal(tensor.floats(), tensor.floats() + 12, reshaped.floats()));
  EXPECT_THROW(tensor.Reshaped({5}), Error);
  EXPECT_THROW(Tensor({1, 4, 1, 1}, Layout::Blocked(4)).Reshaped({4}), Error);
}

TEST(Tensor, ScalarHasOneElement) { EXPECT_EQ(Tensor(Shape{}).size(), 1); }

}  // namespace
}  // namespace tilesmith
