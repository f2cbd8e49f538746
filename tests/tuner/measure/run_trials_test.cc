#include <gtest/gtest.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "tests/tuner/support/simulated_measurer.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {
namespace {

// Its results say which config they are of.
class EchoMeasurer : public SimulatedMeasurer {
 public:
  TrialResult Measure(const TrialRequest& request) override {
    TrialResult result;
    result.seconds = static_cast<double>(request.config.Get("number"));
    return result;
  }
};

TrialRequest Numbered(int64_t number) {
  TrialRequest request;
  request.config.Set("number", number);
  return request;
}

TEST(RunTrials, EveryResultIsItsRequestsAndTheQueueIsKeptFull) {
  for (const int capacity : {1, 2, 4, 7}) {
    EchoMeasurer measurer;
    measurer.capacity = capacity;
    int64_t asked = 0;
    std::vector<size_t> order;
    const auto next = [&]() -> std::optional<TrialRequest> {
      return asked < 30 ? std::optional(Numbered(asked++)) : std::nullopt;
    };
    RunTrials(measurer, next, [&](size_t index, const TrialResult& result) {
      EXPECT_EQ(result.seconds, static_cast<double>(index));
      order.push_back(index);
    });
    EXPECT_EQ(order.size(), 30u);
    EXPECT_EQ(measurer.most_in_flight, static_cast<size_t>(capacity));
    EXPECT_EQ(std::ranges::is_sorted(order), capacity == 1) << "shuffled, where it can be";
    std::ranges::sort(order);
    EXPECT_EQ(std::ranges::adjacent_find(order), order.end()) << "each once";
  }
}

TEST(RunTrials, WhatIsAvailableOnlyAfterAResultIsAskedForThen) {
  EchoMeasurer measurer;
  measurer.capacity = 4;
  int64_t asked = 0, done = 0;
  const auto next = [&]() -> std::optional<TrialRequest> {
    return asked == 9 || asked > done ? std::nullopt : std::optional(Numbered(asked++));
  };
  RunTrials(measurer, next, [&](size_t, const TrialResult&) { ++done; });
  EXPECT_EQ(done, 9);
  EXPECT_EQ(measurer.most_in_flight, 1u);
}

TEST(RunTrials, AnExceptionLeavesAMeasurerThatCanBeginAgain) {
  EchoMeasurer measurer;
  measurer.capacity = 3;
  const auto always = [] { return std::optional(Numbered(1)); };
  EXPECT_THROW(RunTrials(measurer, always,
                         [](size_t, const TrialResult&) { throw Error(ErrorCode::kInterrupted, "enough"); }),
               Error);
  measurer.Begin({});
  int done = 0;
  RunTrials(
      measurer, [&] { return done == 0 ? always() : std::nullopt; },
      [&](size_t, const TrialResult&) { ++done; });
  EXPECT_GE(done, 1);
}

}  // namespace
}  // namespace tilesmith
