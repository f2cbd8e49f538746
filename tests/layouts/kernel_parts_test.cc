#include "layouts/kernel_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/refusal.h"

namespace tilesmith {
namespace {

AlignedBuffer Filled(size_t floats, float value) {
  AlignedBuffer buffer(floats * sizeof(float));
  std::fill_n(buffer.floats(), floats, value);
  return buffer;
}

TEST(SharedBufferTest, HoldsWhatItWasGiven) {
  const SharedBuffer buffer(Filled(5, 2));
  EXPECT_EQ(buffer.bytes().size(), 5 * sizeof(float));
  EXPECT_THAT(std::vector<float>(buffer.floats(), buffer.floats() + 5), testing::Each(2.0F));
  EXPECT_TRUE(SharedBuffer().bytes().empty());
}

TEST(SharedBufferTest, EqualContentsOfAPoolAreOne) {
  BufferPool pool;
  const SharedBuffer one = pool.Add(Filled(100, 1)), again = pool.Add(Filled(100, 1));
  EXPECT_EQ(one.data(), again.data());
  EXPECT_NE(pool.Add(Filled(100, 2)).data(), one.data());
  EXPECT_NE(pool.Add(Filled(99, 1)).data(), one.data());
  EXPECT_NE(BufferPool().Add(Filled(100, 1)).data(), one.data());
  EXPECT_TRUE(pool.Add({}).bytes().empty());
}

TEST(SharedBufferTest, ContentsThatNobodyHoldsAreForgotten) {
  BufferPool pool;
  pool.Add(Filled(100, 1));
  const SharedBuffer other = pool.Add(Filled(100, 2)), again = pool.Add(Filled(100, 1));
  EXPECT_EQ(again.floats()[99], 1);
  EXPECT_EQ(pool.Add(Filled(100, 1)).data(), again.data());
}

TEST(SharedBufferTest, ThreadsShareAPool) {
  BufferPool pool;
  std::vector<SharedBuffer> found(4);
  std::vector<std::thread> threads;
  for (SharedBuffer& buffer : found) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) pool.Add(Filled(64, static_cast<float>(i)));
      buffer = pool.Add(Filled(64, 7));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const SharedBuffer& buffer : found) EXPECT_EQ(buffer.data(), found[0].data());
}

TEST(KernelPartsTest, GivesThePartsThatWereMadeInTheirOrder) {
  KernelParts made;
  const SharedBuffer data = DataPart(&made, 20, [] { return Filled(5, 2); });
  const SharedBuffer floats = FloatsPart(&made, data.floats(), 2, 4);
  const SharedBuffer ones = FloatsPart(&made, nullptr, 2, 3, 1);
  EXPECT_THAT(std::vector<float>(floats.floats(), floats.floats() + 4), testing::ElementsAre(2, 2, 0, 0));
  EXPECT_THAT(std::vector<float>(ones.floats(), ones.floats() + 3), testing::ElementsAre(1, 1, 0));
  EXPECT_TRUE(DataPart(&made, 0, [] { return Filled(1, 1); }).bytes().empty());
  CodePart(&made, [] { return KernelPart{.memory = SharedBuffer(Filled(1, 3)), .is_code = true}; });
  ASSERT_EQ(made.parts().size(), 4U);

  const auto never = []() -> AlignedBuffer { throw Error(ErrorCode::kInternal, "made again"); };
  KernelParts known(made.parts());
  EXPECT_FALSE(known.complete());
  EXPECT_EQ(DataPart(&known, 20, never).data(), data.data());
  EXPECT_EQ(FloatsPart(&known, nullptr, 2, 4).data(), floats.data());
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { DataPart(&known, 8, never); }),
              testing::HasSubstr("has 12 bytes, 8 are expected"));
  EXPECT_EQ(CodePart(&known, [] { return KernelPart(); }).memory.bytes().size(), 4U);
  EXPECT_TRUE(known.complete());
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { DataPart(&known, 8, never); }),
              testing::HasSubstr("part 4 of a kernel is missing"));
  KernelParts other(made.parts());
  EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { CodePart(&other, [] { return KernelPart(); }); }),
              testing::HasSubstr("is no code"));
}

TEST(BufferPoolTest, PartsOfOneKeyAreOneAsLongAsTheirSourcesAre) {
  BufferPool pool;
  auto weights = std::make_shared<const Tensor>(Shape{4});
  int made = 0;
  const auto data_of = [&](const std::shared_ptr<const Tensor>& from, int64_t number) {
    KernelParts parts({.pool = &pool, .weights = {from}});
    const auto make = [&] {
      ++made;
      return Filled(5, static_cast<float>(made));
    };
    return DataPart(&parts, 20, make, [&] { return PartKey("numbers").Add(number); });
  };
  const SharedBuffer one = data_of(weights, 1), again = data_of(weights, 1), other = data_of(weights, 2);
  EXPECT_EQ(one.data(), again.data());
  EXPECT_NE(one.data(), other.data());
  EXPECT_EQ(made, 2);
  EXPECT_NE(data_of(std::make_shared<const Tensor>(Shape{4}), 1).data(), one.data());
  EXPECT_EQ(made, 3);
  weights = nullptr;
  for (int i = 0; i < 20; ++i) {  // one of them may well have the address of the first
    const auto now = std::make_shared<const Tensor>(Shape{4});
    EXPECT_NE(data_of(now, 1).data(), one.data());
  }
}

TEST(BufferPoolTest, KeepsTheCodeThatWasUsedLast) {
  BufferPool pool;
  int made = 0;
  const auto code_of = [&](int64_t number) {
    KernelParts parts({.pool = &pool, .kernel = PartKey("kernel").Add(number)});
    return CodePart(&parts, [&] {
      ++made;
      return KernelPart{.memory = SharedBuffer(Filled(1 << 20, static_cast<float>(number))),
                        .functions = {static_cast<uint32_t>(number)},
                        .is_code = true};
    });
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(code_of(1).functions, std::vector<uint32_t>{1});
    EXPECT_EQ(code_of(2).memory.floats()[0], 2);
  }
  EXPECT_EQ(made, 2);
  for (int i = 10; i < 30; ++i) code_of(i);  // 80 MiB
  EXPECT_EQ(made, 22);
  code_of(29);
  EXPECT_EQ(made, 22);
  code_of(1);
  EXPECT_EQ(made, 23);
}

}  // namespace
}  // namespace tilesmith
