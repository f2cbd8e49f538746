#include "graph_tuner/executor/memory_planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "layouts/base/split.h"
#include "tests/graph_tuner/support/liveness.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

bool LivesBeside(const BufferRequest& a, const BufferRequest& b) {
  return a.first <= b.last && b.first <= a.last;
}

void ExpectDisjoint(const std::vector<BufferRequest>& requests, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
    EXPECT_EQ(plan.offsets[i] % 64, 0u);
    if (requests[i].bytes >= (64 << 10)) {
      EXPECT_EQ(plan.offsets[i] % 4096, 0u);
    }
    for (size_t j = 0; j < i; ++j) {
      if (!LivesBeside(requests[i], requests[j])) continue;
      const bool disjoint = plan.offsets[i] + requests[i].bytes <= plan.offsets[j] ||
                            plan.offsets[j] + requests[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(disjoint) << "buffers " << i << " and " << j;
    }
  }
}

TEST(MemoryPlanner, RandomBuffersNeverOverlapWhileBothLive) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    std::vector<BufferRequest> requests(random.Integer(0, 40));
    int64_t sum = 0;
    for (BufferRequest& request : requests) {
      request.first = static_cast<int>(random.Integer(0, 30));
      request.last = request.first + static_cast<int>(random.Integer(0, 6));
      request.bytes = random.Integer(0, 3) == 0 ? random.Integer(0, 300000) : random.Integer(0, 3000);
      sum += (request.bytes + 4095) / 4096 * 4096;
    }
    for (const MemoryPlan& plan : {PackMemory(requests), PlaceInSlots(requests), PlanMemory(requests, 2)}) {
      ExpectDisjoint(requests, plan);
      EXPECT_LE(plan.bytes, sum);
      EXPECT_GE(plan.bytes, LivenessLowerBound(requests));
    }
  }
}

TEST(MemoryPlanner, AChainTakesTwoBuffers) {
  std::vector<BufferRequest> requests;
  requests.reserve(20);
  for (int step = 0; step < 20; ++step) requests.push_back({step, step + 1, 1 << 20});
  EXPECT_EQ(PackMemory(requests).bytes, int64_t{2} << 20);
  EXPECT_EQ(PlaceInSlots(requests).bytes, int64_t{2} << 20);
}

TEST(MemoryPlanner, TheSmallestGapIsTaken) {
  // The first three lie side by side; the last one fits where the middle one was.
  const std::vector<BufferRequest> requests = {{0, 9, 4096}, {0, 4, 2048}, {0, 9, 1024}, {5, 9, 2048}};
  const MemoryPlan plan = PackMemory(requests);
  EXPECT_EQ(plan.bytes, int64_t{4096 + 2048 + 1024});
  EXPECT_EQ(plan.bytes, LivenessLowerBound(requests));
  ExpectDisjoint(requests, plan);
}

TEST(MemoryPlanner, BuffersOfASlotHaveTheSameMiddle) {
  const std::vector<BufferRequest> requests = {
      {0, 1, 1 << 20}, {1, 2, 1 << 18}, {2, 3, 1 << 19}, {3, 4, 1 << 18}, {4, 5, 640}};
  const MemoryPlan plan = PlaceInSlots(requests);
  EXPECT_EQ(plan.bytes, int64_t{(1 << 20) + (1 << 18)});
  const auto middle = [&](size_t i) { return plan.offsets[i] + requests[i].bytes / 2; };
  EXPECT_EQ(middle(2), middle(0));
  EXPECT_EQ(middle(3), middle(1));
  EXPECT_EQ(middle(4), middle(0));
}

// Bytes, in whole lines, that a thread writes where another one wrote last, when each writes its even share
// of every buffer.
int64_t BytesTakenOver(const std::vector<BufferRequest>& requests, const MemoryPlan& plan, int threads) {
  constexpr int64_t kLine = 64;
  std::vector<size_t> order(requests.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return requests[i].first; });
  std::vector<int> owners(static_cast<size_t>(plan.bytes / kLine + 1), -1);
  int64_t lines = 0;
  for (const size_t i : order) {
    for (int thread = 0; thread < threads; ++thread) {
      const TaskRange share = ShareOf((requests[i].bytes + kLine - 1) / kLine, thread, threads);
      for (int64_t line = share.begin; line < share.end; ++line) {
        int& owner = owners[static_cast<size_t>(plan.offsets[i] / kLine + line)];
        lines += owner >= 0 && owner != thread;
        owner = thread;
      }
    }
  }
  return lines * kLine;
}

TEST(MemoryPlanner, InSlotsEachOfTwoThreadsWritesWhereItWroteBefore) {
  constexpr int64_t kMoved = 4096 + 2 * 64;  // by alignment
  int64_t in_slots = 0, packed = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    TestRandom random(seed);
    std::vector<BufferRequest> requests;
    for (int step = 0; step < 30; ++step) requests.push_back({step, step + 1, random.Integer(1, 1 << 20)});
    const int64_t taken = BytesTakenOver(requests, PlaceInSlots(requests), 2);
    EXPECT_LE(taken, 30 * kMoved);
    EXPECT_EQ(BytesTakenOver(requests, PlaceInSlots(requests), 1), 0);
    in_slots += taken;
    packed += BytesTakenOver(requests, PackMemory(requests), 2);
  }
  EXPECT_LT(in_slots * 10, packed);
}

// Where a large buffer was, one small one is, and the others are beside it.
TEST(MemoryPlanner, SlotsAreLeftWhereTheyTakeMuchMore) {
  std::vector<BufferRequest> requests = {{0, 0, 1 << 20}};
  requests.resize(4, {1, 1, 1 << 17});
  const int64_t packed = int64_t{1} << 20;
  EXPECT_EQ(PackMemory(requests).bytes, packed);
  EXPECT_EQ(PlaceInSlots(requests).bytes, packed + (2 << 17));
  EXPECT_EQ(PlanMemory(requests, 2).offsets, PlaceInSlots(requests).offsets);
  EXPECT_EQ(PlanMemory(requests, 1).offsets, PackMemory(requests).offsets);
  requests.resize(9, {1, 1, 1 << 17});
  EXPECT_EQ(PackMemory(requests).bytes, packed);
  EXPECT_EQ(PlanMemory(requests, 2).offsets, PackMemory(requests).offsets);
}

}  // namespace
}  // namespace tilesmith
