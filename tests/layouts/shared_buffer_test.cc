#include "layouts/shared_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

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
  EXPECT_EQ(Pooled(Filled(100, 1), &pool).data(), one.data());
  EXPECT_NE(Pooled(Filled(100, 1), nullptr).data(), one.data());
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

}  // namespace
}  // namespace tilesmith
