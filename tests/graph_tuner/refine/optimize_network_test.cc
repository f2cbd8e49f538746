#include "graph_tuner/refine/optimize_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/refine/rivals.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "ops/conv/conv.h"
#include "tests/graph_tuner/support/fake_machine.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/tuner/support/simulated_measurer.h"

namespace tilesmith {
namespace {

// Every schedule takes a time of its own.
double SecondsOfConfig(const ConvWorkload& workload, const std::string& schedule, uint64_t seed) {
  const double elements = static_cast<double>(ElementCount(workload.output_shape()));
  return 1e-6 * elements * (1 + HashFraction(WorkloadToString(workload) + schedule, seed));
}

// A default schedule, of which a plan says no time, takes what measuring it would say.
Plan WithTimes(Plan plan, uint64_t seed) {
  for (NodePlan& node : plan.nodes)
    if (node.record)
      node.record->seconds = SecondsOfConfig(
          node.record->workload, node.record->template_name + node.record->config.ToString(), seed);
  return plan;
}

class HashedMeasurer : public SimulatedMeasurer {
 public:
  explicit HashedMeasurer(uint64_t seed) : seed_(seed) {}
  TrialResult Measure(const TrialRequest& request) override {
    ++trials;
    TrialResult result;
    result.status = TrialStatus::kOk;
    result.seconds =
        SecondsOfConfig(sessions.back().workload, request.template_name + request.config.ToString(), seed_);
    result.sample_seconds.assign(5, result.seconds);
    return result;
  }
  int trials = 0;

 private:
  uint64_t seed_;
};

class OptimizeNetworkTest : public testing::Test {
 protected:
  OptimizedNetwork Optimize(uint64_t seed, double end, int stop_after = std::numeric_limits<int>::max()) {
    graph_ = RandomNetwork(seed, 6);
    costs_ = std::make_unique<SyntheticCosts>(seed);
    machine_ = std::make_unique<FakeMachine>(graph_, *costs_,
                                             [seed](const std::string& node, const std::string& option) {
                                               return 0.6 + HashFraction(node + option, seed);
                                             });
    HashedMeasurer measurer(seed);
    records_.clear();
    kept_.clear();
    int steps = 0;
    const auto stopped = [&] { return ++steps > stop_after; };
    const NetworkSinks sinks = {.on_record = [&](const Record& record) { records_.push_back(record); },
                                .should_stop = stopped};
    NetworkOptimization work;
    std::vector<NetworkTask> tasks;
    for (Graph::NodeId id = 0; id < graph_.size(); ++id) {
      const auto* conv = graph_.As<ConvOp>(id);
      if (conv == nullptr || std::ranges::find(work.workloads, conv->workload()) != work.workloads.end())
        continue;
      work.workloads.push_back(conv->workload());
      NetworkTask task;
      task.request.workload = conv->workload();
      task.request.cpu = SyntheticCpu();
      task.request.templates = TemplatesToTune(conv->workload(), SyntheticCpu());
      task.request.conditions.threads = 2;
      task.request.options.searcher = "random";
      task.request.options.batch = 4;
      tasks.push_back(task);
    }
    NetworkTuneOptions options;
    options.trials = 0;
    NetworkTuner tuner(tasks, options, measurer, sinks);
    work.graphs = {&graph_};
    work.options = SyntheticOptions();
    work.costs = costs_.get();
    work.tuner = &tuner;
    work.records = &records_;
    work.end = end;
    work.measure = [&](size_t, const std::vector<const Plan*>& plans) {
      std::vector<Plan> timed;
      std::vector<const Plan*> pointers;
      for (const Plan* plan : plans) timed.push_back(WithTimes(*plan, seed));
      for (const Plan& plan : timed) pointers.push_back(&plan);
      return machine_->Measure(pointers);
    };
    seed_ = seed;
    work.keep = [&](size_t, const Plan& plan) { kept_.push_back(plan); };
    work.should_stop = stopped;
    OptimizedNetwork optimized = OptimizeNetwork(work);
    trials_ = measurer.trials;
    return optimized;
  }

  double TrueSeconds(const Plan& plan) const { return machine_->TrueSeconds(WithTimes(plan, seed_)); }

  Graph graph_;
  std::unique_ptr<SyntheticCosts> costs_;
  std::unique_ptr<FakeMachine> machine_;
  std::vector<Record> records_;
  std::vector<Plan> kept_;
  int trials_ = 0;
  uint64_t seed_ = 0;
};

TEST_F(OptimizeNetworkTest, WithoutTimeThePlanIsTheOneWithoutTuning) {
  const OptimizedNetwork optimized = Optimize(1, 0);
  ASSERT_EQ(optimized.plans.size(), 1u);
  EXPECT_FALSE(optimized.stopped);
  EXPECT_EQ(trials_, 0);
  EXPECT_EQ(optimized.plans[0].solutions, 0);
  ASSERT_EQ(kept_.size(), 1u);
  EXPECT_TRUE(SameSchedules(optimized.plans[0].plan, kept_[0]));
  CheckPlan(kept_[0], graph_, SyntheticCpu(), 2);
}

TEST_F(OptimizeNetworkTest, EveryPlanThatIsKeptIsValidAndFasterThanTheOneBefore) {
  int better = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const OptimizedNetwork optimized = Optimize(seed, NowSeconds() + 0.3);
    const OptimizedPlan& best = optimized.plans.at(0);
    ASSERT_GE(kept_.size(), 2u);
    EXPECT_TRUE(SameSchedules(best.plan, kept_.back()));
    for (const Plan& plan : kept_) CheckPlan(plan, graph_, SyntheticCpu(), 2);
    EXPECT_GT(best.solutions, 0);
    EXPECT_GE(best.seconds_saved, 0);
    EXPECT_NEAR(best.plan.predicted_seconds, best.measurement.seconds, 0.02 * best.measurement.seconds);
    // Among all that ran by turns with it none is faster.
    for (const Plan& plan : machine_->sessions.back())
      EXPECT_LE(TrueSeconds(best.plan), TrueSeconds(plan) * (1 + 1e-9));
    better += kept_.size() > 2;
  }
  EXPECT_GT(better, 0);
}

TEST_F(OptimizeNetworkTest, StoppedAtAnyMomentItHasTheBestPlanUntilThen) {
  for (int stop_after = 0; stop_after < 400; stop_after += 1 + stop_after / 3) {
    SCOPED_TRACE(testing::Message() << "stopped after " << stop_after);
    const OptimizedNetwork optimized = Optimize(5, NowSeconds() + 60, stop_after);
    // Later there may be nothing left to do.
    if (stop_after < 100) {
      EXPECT_TRUE(optimized.stopped);
    }
    ASSERT_FALSE(kept_.empty());
    CheckPlan(optimized.plans.at(0).plan, graph_, SyntheticCpu(), 2);
    EXPECT_TRUE(SameSchedules(optimized.plans[0].plan, kept_.back()));
  }
}

// Where records are known from the beginning, the first plan is not the one without tuning.
TEST_F(OptimizeNetworkTest, ThePlanWithoutTuningSavesNothingOverItself) {
  Optimize(2, NowSeconds() + 0.2);
  const Plan untuned = UntunedPlan(graph_, SyntheticOptions(), std::nullopt).value();
  NetworkOptimization work;
  HashedMeasurer measurer(2);
  const NetworkSinks sinks;
  NetworkTuner tuner({}, {}, measurer, sinks);
  work.graphs = {&graph_};
  work.options = SyntheticOptions();
  work.costs = costs_.get();
  work.tuner = &tuner;
  work.records = &records_;
  work.end = NowSeconds() + 60;
  const auto optimize_where = [&](double untuned_takes) {
    work.measure = [&, untuned_takes](size_t, const std::vector<const Plan*>& plans) {
      std::vector<PlanMeasurement> measurements = machine_->Measure(plans);
      for (size_t i = 0; i < plans.size(); ++i) {
        const double seconds = SameSchedules(*plans[i], untuned) ? untuned_takes : 1;
        measurements[i].seconds = seconds;
        std::ranges::fill(measurements[i].turns, seconds);
      }
      return measurements;
    };
    return OptimizeNetwork(work).plans.at(0);
  };
  const OptimizedPlan kept = optimize_where(0.5);
  EXPECT_TRUE(SameSchedules(kept.plan, untuned));
  EXPECT_EQ(kept.untuned.seconds, 0.5);
  EXPECT_EQ(kept.seconds_saved, 0);
  const OptimizedPlan tuned = optimize_where(2);
  EXPECT_FALSE(SameSchedules(tuned.plan, untuned));
  EXPECT_EQ(tuned.untuned.seconds, 2);
  EXPECT_NEAR(tuned.seconds_saved, 1, 1e-9);
}

TEST_F(OptimizeNetworkTest, AnInterruptedSessionKeepsThePlanBefore) {
  Optimize(2, NowSeconds() + 0.2);
  NetworkOptimization work;
  const std::vector<Record> records;
  HashedMeasurer measurer(2);
  NetworkTuneOptions options;
  const NetworkSinks sinks;
  NetworkTuner tuner({}, options, measurer, sinks);
  work.graphs = {&graph_};
  work.options = SyntheticOptions();
  work.costs = costs_.get();
  work.tuner = &tuner;
  work.records = &records_;
  work.known_plans = {kept_.front()};
  work.end = NowSeconds() + 60;
  work.measure = [](size_t, const std::vector<const Plan*>&) -> std::vector<PlanMeasurement> {
    throw Error(ErrorCode::kInterrupted, "out of time");
  };
  const OptimizedNetwork optimized = OptimizeNetwork(work);
  EXPECT_TRUE(SameSchedules(optimized.plans.at(0).plan, kept_.front()));
  EXPECT_EQ(optimized.plans[0].measurement.seconds, 0);
}

}  // namespace
}  // namespace tilesmith
