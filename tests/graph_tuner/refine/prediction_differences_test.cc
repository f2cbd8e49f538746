#include "graph_tuner/refine/prediction_differences.h"

#include <gtest/gtest.h>

#include <map>

#include "graph_tuner/problem/graph_tune.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

// Two convs, "small" and "large", whose tensors are 64 KiB each, and a relu; the measurement is made up.
class PredictionDifferencesTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto small = AddConv(graph_, "small", AddInput(graph_, {1, 256, 8, 8}), 256);
    const auto large = AddConv(graph_, "large", small, 256, 3);
    graph_.MarkOutput(AddRelu(graph_, "relu", large));
    std::vector<Record> log;
    for (const Record& record : SyntheticLog(graph_, {1}, 1)) {
      log.push_back(record);
      log.back().seconds = 1;
    }
    GraphTuneOptions options;
    options.cpu = cpu_;
    options.threads = 2;
    plan_ = GraphTune(graph_, log, costs_, options).plan;
    measurement_.steps = {Step("small", 1.02, 64 << 10), Step("large", 1.5, 4 << 20),
                          Step("relu", 2 * plan_.nodes[2].predicted_seconds, 0)};
    measurement_.seconds = ProfiledSeconds(measurement_) + 0.25;
  }

  static StepProfile Step(const std::string& node, double seconds, int64_t weights) {
    StepProfile step;
    step.node = node;
    step.seconds = seconds;
    step.packed_weight_bytes = weights;
    return step;
  }

  std::map<std::string, Cause> Causes() {
    std::map<std::string, Cause> causes;
    for (const StepDifference& step : ExplainSteps(graph_, plan_, costs_, measurement_, cpu_))
      causes[step.matched.step.node] = step.cause;
    return causes;
  }

  StepProfile& Large() { return measurement_.steps[1]; }
  MeasureConditions& LargeConditions() { return plan_.nodes[1].record->conditions; }

  Target cpu_ = [] {
    Target cpu = SyntheticCpu();
    cpu.l2_bytes = 1 << 20;
    cpu.l3_bytes = 2 << 20;
    return cpu;
  }();
  Graph graph_{"net"};
  SyntheticCosts costs_{1};
  Plan plan_;
  PlanMeasurement measurement_;
};

TEST_F(PredictionDifferencesTest, ColdWeightsAreNamedWhereTheyCanBe) {
  std::map<std::string, Cause> causes = Causes();
  EXPECT_EQ(causes["large"], Cause::kColdWeights);
  EXPECT_EQ(causes["small"], Cause::kUnknown);  // as fast as predicted
  EXPECT_EQ(causes["relu"], Cause::kUnknown);
  EXPECT_EQ(CauseName(Cause::kColdWeights), "cold weights");
  EXPECT_EQ(CauseName(Cause::kUnknown), "");
  measurement_.steps[0].seconds = 2;  // weights smaller than its tensors
  EXPECT_EQ(Causes()["small"], Cause::kUnknown);
}

TEST_F(PredictionDifferencesTest, ColdWeightsAreNotNamedWhereTheyCannotBe) {
  LargeConditions().cold_weights = true;
  EXPECT_EQ(Causes()["large"], Cause::kUnknown);
  LargeConditions().cold_weights = false;
  cpu_.l3_bytes = 64 << 20;  // all weights stay
  EXPECT_EQ(Causes()["large"], Cause::kUnknown);
  cpu_.l3_bytes = 2 << 20;
  Large().seconds = 1.04;
  EXPECT_EQ(Causes()["large"], Cause::kUnknown);
  Large().seconds = 1.06;
  EXPECT_EQ(Causes()["large"], Cause::kColdWeights);
  plan_.nodes[1].record->seconds = 0;  // never measured
  EXPECT_EQ(Causes()["large"], Cause::kUnknown);
}

TEST_F(PredictionDifferencesTest, PartsAddUpToTheRun) {
  StepProfile copy = Step("relu", 0.125, 0);
  copy.conversion = LayoutPair{};
  copy.planned = false;
  measurement_.steps.push_back(copy);
  measurement_.seconds += 0.125;
  const auto parts = SumDifferences(ExplainSteps(graph_, plan_, costs_, measurement_, cpu_), measurement_);
  std::vector<std::string> names;
  double seconds = 0, stand_alone = 0;
  for (const DifferencePart& part : parts) {
    names.push_back(part.name);
    seconds += part.seconds;
    stand_alone += part.stand_alone_seconds;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"convolutions with cold weights", "other convolutions", "other ops",
                                      "copies the plan does not know", "threads and barriers"}));
  EXPECT_NEAR(seconds, measurement_.seconds, 1e-12);
  EXPECT_NEAR(stand_alone, plan_.predicted_seconds, 1e-12);
  EXPECT_DOUBLE_EQ(parts[0].seconds, 1.5);
  EXPECT_DOUBLE_EQ(parts[0].stand_alone_seconds, 1);
  EXPECT_NEAR(parts[4].seconds, 0.25, 1e-12);
  EXPECT_EQ(parts[4].steps, 0);
}

}  // namespace
}  // namespace tilesmith
