#include "graph_tuner/explain/layout_tries.h"

#include <gtest/gtest.h>

#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

class LayoutTriesTest : public testing::Test {
 protected:
  LayoutTriesTest() : graph_("g") {
    graph_.MarkOutput(AddConv(graph_, "a", AddInput(graph_, {1, 8, 4, 4}), 16));
    reader_.cpu = SyntheticCpu();
    reader_.threads = 2;
  }
  const ConvWorkload& workload() const { return graph_.As<ConvOp>(1)->workload(); }
  Record Tried(int64_t in, int64_t out, double seconds) const {
    return SyntheticRecord(workload(), in, out, seconds);
  }
  Record Failed(int64_t in, int64_t out, TrialStatus status) const {
    Record record = Tried(in, out, 0);
    record.status = status;
    record.sample_seconds.clear();
    return record;
  }
  LayoutTries Find(const char* layout, const std::vector<Record>& records) const {
    return FindLayoutTries(workload(), Layout::Parse(layout), records, reader_);
  }

  Graph graph_;
  LogReader reader_;
};

TEST_F(LayoutTriesTest, CountsTrialsAndFailuresOfEitherSide) {
  const std::vector<Record> log = {Tried(1, 16, 5),  // loses
                                   Tried(16, 1, 4),
                                   Tried(16, 1, 3),  // one config, timed again
                                   Tried(1, 1, 2),   // another layout
                                   Failed(16, 8, TrialStatus::kRunCrash),
                                   Failed(16, 16, TrialStatus::kWrongAnswer),
                                   Failed(16, 16, TrialStatus::kWrongAnswer)};
  const LayoutTries tries = Find("NCHW16c", log);
  EXPECT_EQ(tries.records, 6);
  EXPECT_EQ(tries.trials, 4);
  const std::map<TrialStatus, int64_t> failures = {{TrialStatus::kRunCrash, 1},
                                                   {TrialStatus::kWrongAnswer, 2}};
  EXPECT_EQ(tries.failures, failures);
  ASSERT_TRUE(tries.best.has_value());
  EXPECT_EQ(tries.best->seconds, 3);
  EXPECT_EQ(tries.task_trials, 5);
  EXPECT_EQ(tries.ignored, 0);
}

TEST_F(LayoutTriesTest, LayoutsAreWhatTheyAreInMemory) {
  // 8 input channels in NHWC are NCHW8c, and 16 output channels are NCHW16c.
  EXPECT_EQ(Find("NCHW8c", {Tried(0, 1, 5)}).trials, 1);
  EXPECT_EQ(Find("NCHW16c", {Tried(1, 0, 5)}).trials, 1);
  EXPECT_EQ(Find("NHWC", {Tried(8, 1, 5)}).trials, 1);
}

TEST_F(LayoutTriesTest, WhatTheGraphTunerIgnoresDoesNotCount) {
  Record elsewhere = Tried(8, 8, 1), threads = Tried(8, 8, 1), cold = Tried(8, 8, 6);
  elsewhere.target.model = "another";
  threads.conditions.threads = 1;
  LayoutTries tries = Find("NCHW8c", {elsewhere, threads, Tried(8, 8, 5)});
  EXPECT_EQ(tries.trials, 1);
  EXPECT_EQ(tries.ignored, 2);
  EXPECT_EQ(tries.best->seconds, 5);
  EXPECT_FALSE(tries.cold_weights);
  cold.conditions.cold_weights = true;
  tries = Find("NCHW8c", {Tried(8, 8, 5), cold});
  EXPECT_EQ(tries.trials, 1);
  EXPECT_EQ(tries.ignored, 1);
  EXPECT_EQ(tries.best->seconds, 6);
  EXPECT_TRUE(tries.cold_weights);
  Record other = Tried(8, 8, 1);
  other.workload.post.bias = true;
  EXPECT_EQ(Find("NCHW8c", {other}).records, 0);
}

TEST_F(LayoutTriesTest, InaccurateOnesAreNeverTheBest) {
  reader_.accuracy.max_error = 1e-5;
  Record rough = Tried(8, 8, 1), fine = Tried(8, 16, 2);
  rough.error = 1e-3;
  fine.error = 1e-6;
  const LayoutTries tries = Find("NCHW8c", {rough, fine});
  EXPECT_EQ(tries.trials, 2);
  EXPECT_EQ(tries.inaccurate, 1);
  EXPECT_EQ(tries.best->seconds, 2);
}

TEST_F(LayoutTriesTest, SaysWhatTuningWouldTry) {
  const LayoutTries untried = Find("NCHW16c", {});
  EXPECT_EQ(untried.trials, 0);
  EXPECT_FALSE(untried.best.has_value());
  EXPECT_EQ(untried.templates, std::vector<std::string>{"portable"});
  EXPECT_GT(untried.pairs, 1);
  EXPECT_EQ(TrialsToCoverLayouts(untried), 2 * untried.pairs);
  EXPECT_TRUE(Find("NCHW13c", {}).templates.empty());
}

}  // namespace
}  // namespace tilesmith
