#include "graph_tuner/executor/memory_planner.h"

#include <gtest/gtest.h>

#include <algorithm>

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
    size_t sum = 0;
    for (BufferRequest& request : requests) {
      request.first = static_cast<int>(random.Integer(0, 30));
      request.last = request.first + static_cast<int>(random.Integer(0, 6));
      request.bytes = random.Integer(0, 3) == 0 ? random.Integer(0, 300000) : random.Integer(0, 3000);
      sum += (request.bytes + 4095) / 4096 * 4096;
    }
    const MemoryPlan plan = PlanMemory(requests);
    ExpectDisjoint(requests, plan);
    EXPECT_LE(plan.bytes, sum);
    EXPECT_GE(plan.bytes, LivenessLowerBound(requests));
  }
}

TEST(MemoryPlanner, AChainTakesTwoBuffers) {
  std::vector<BufferRequest> requests;
  for (int step = 0; step < 20; ++step) requests.push_back({step, step + 1, 1 << 20});
  EXPECT_EQ(PlanMemory(requests).bytes, size_t{2} << 20);
}

TEST(MemoryPlanner, TheSmallestGapIsTaken) {
  // The first three lie side by side; the last one fits where the middle one was.
  const std::vector<BufferRequest> requests = {{0, 9, 4096}, {0, 4, 2048}, {0, 9, 1024}, {5, 9, 2048}};
  const MemoryPlan plan = PlanMemory(requests);
  EXPECT_EQ(plan.bytes, size_t{4096 + 2048 + 1024});
  EXPECT_EQ(plan.bytes, LivenessLowerBound(requests));
  ExpectDisjoint(requests, plan);
}

}  // namespace
}  // namespace tilesmith
