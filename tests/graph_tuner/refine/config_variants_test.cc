#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/prediction_loop.h"
#include "graph_tuner/refine/rivals.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

size_t Differences(const Config& a, const Config& b) {
  size_t differences = 0;
  for (const auto& [knob, value] : a.knobs()) differences += b.Get(knob) != value;
  return differences;
}

// Every config of the portable template in the record's layouts, each a little slower than the one before.
std::vector<Record> Slower(const Record& record, double step) {
  const ConfigSpace space = FindConvTemplate("portable").Space(record.workload, SyntheticCpu());
  std::vector<Record> records;
  for (uint64_t index = 0; index < space.size(); ++index) {
    if (!space.IsValid(index)) continue;
    Record other = record;
    other.config = space.At(index);
    if (FindConvTemplate("portable").Layouts(record.workload, other.config) != record.layouts) continue;
    if (other.config == record.config) continue;
    other.seconds = record.seconds * (1 + step * static_cast<double>(records.size() + 1));
    records.push_back(std::move(other));
  }
  return records;
}

class ConfigVariantsTest : public testing::Test {
 protected:
  void Make(uint64_t seed, double step) {
    graph_ = RandomNetwork(seed, 5 + static_cast<int>(seed % 5));
    log_ = SyntheticLog(graph_, {1, 8}, seed);
    SyntheticCosts costs(seed);
    options_.cpu = SyntheticCpu();
    options_.threads = 2;
    plan_ = GraphTune(graph_, log_, costs, options_).plan;
    const size_t candidates = log_.size();
    for (size_t i = 0; i < candidates; ++i) {
      const std::vector<Record> more = Slower(log_[i], step);
      log_.insert(log_.end(), more.begin(), more.end());
    }
  }

  std::vector<Plan> Variants(const VariantOptions& options = {}) const {
    return ConfigVariants(graph_, plan_, log_, SyntheticCpu(), options);
  }

  Graph graph_;
  std::vector<Record> log_;
  GraphTuneOptions options_;
  Plan plan_;
};

TEST_F(ConfigVariantsTest, KeepLayoutsAndDifferInTwoKnobsFromAllBefore) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 0.001);
    const std::vector<Plan> variants = Variants();
    EXPECT_LE(variants.size(), 4u);
    for (size_t node = 0; node < plan_.nodes.size(); ++node) {
      if (!plan_.nodes[node].record) continue;
      std::vector<const Record*> seen = {&*plan_.nodes[node].record};
      for (const Plan& variant : variants) {
        ASSERT_EQ(variant.nodes[node].layouts, plan_.nodes[node].layouts);
        const Record& record = *variant.nodes[node].record;
        EXPECT_EQ(record.workload, seen[0]->workload);
        EXPECT_EQ(record.layouts, seen[0]->layouts);
        EXPECT_LE(record.seconds, 1.15 * seen[0]->seconds);
        if (record.config == seen[0]->config) continue;  // it has no further one
        for (const Record* before : seen) EXPECT_GE(Differences(record.config, before->config), 2u);
        EXPECT_GE(record.seconds, seen.back()->seconds);
        seen.push_back(&record);
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 20);
}

TEST_F(ConfigVariantsTest, WhatIsMuchSlowerByItselfIsNotTried) {
  Make(3, 0.2);
  EXPECT_TRUE(Variants().empty());
  EXPECT_FALSE(Variants({.variants = 1, .slack = 1e9}).empty());
  EXPECT_EQ(Variants({.variants = 1, .slack = 1e9}).size(), 1u);
}

// Each step takes what a hash of node and config says, whatever else the plan does.
PlanMeasurement Measure(const Plan& plan, uint64_t seed) {
  PlanMeasurement measurement;
  for (const NodePlan& node : plan.nodes) {
    StepProfile step;
    step.node = node.node;
    step.seconds = 1;
    if (node.record) step.seconds = 1 + HashFraction(node.node + node.record->config.ToString(), seed);
    measurement.steps.push_back(step);
  }
  measurement.seconds = ProfiledSeconds(measurement);
  measurement.turns = {measurement.seconds};
  return measurement;
}

TEST_F(ConfigVariantsTest, EveryConvKeepsWhatTookLeast) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 0.001);
    std::vector<Plan> plans = Variants();
    plans.insert(plans.begin(), plan_);
    std::vector<PlanMeasurement> measurements;
    for (const Plan& plan : plans) measurements.push_back(Measure(plan, seed));
    const Plan fastest = FastestConfigs(plans, measurements, 1);
    const PlanMeasurement measured = Measure(fastest, seed);
    for (size_t node = 0; node < plan_.nodes.size(); ++node)
      for (const PlanMeasurement& other : measurements)
        EXPECT_LE(measured.steps[node].seconds, other.steps[node].seconds);
    changed += !SameSchedules(fastest, plan_);
    EXPECT_TRUE(SameSchedules(FastestConfigs(plans, measurements, 0), plan_)) << "no gain is enough";
  }
  EXPECT_GT(changed, 10);
}

TEST_F(ConfigVariantsTest, TheLoopReturnsThemWhereTheyAreFaster) {
  int improved = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed, 0.001);
    SyntheticCosts costs(seed);
    PredictionLoop loop;
    loop.rounds = 1;
    loop.variants_of = &log_;
    loop.measure = [&](const std::vector<const Plan*>& plans, const std::string&) {
      std::vector<PlanMeasurement> measurements;
      for (const Plan* plan : plans) measurements.push_back(Measure(*plan, seed));
      return measurements;
    };
    const RefinedPlan refined = RefinePlan(NetworkProblem(graph_, log_, costs, options_), costs, loop);
    const double before = Measure(plan_, seed).seconds, after = Measure(refined.plan, seed).seconds;
    EXPECT_LE(after, before);
    improved += after < before;
    if (after < before) {
      EXPECT_EQ(refined.rounds[refined.round].name, "configs in context");
    }
  }
  EXPECT_GT(improved, 10);
}

}  // namespace
}  // namespace tilesmith
