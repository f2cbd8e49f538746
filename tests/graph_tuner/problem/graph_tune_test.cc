#include "graph_tuner/problem/graph_tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph_tuner/plan/price_plan.h"
#include "layouts/base/error.h"
#include "tests/graph_tuner/support/plan_enumerator.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

struct Weighed {
  double seconds = 0, bytes = 0;
};

// Convs with a record of every template that supports them here, of made-up seconds.
class WeightLimitTest : public testing::Test {
 protected:
  void Make(uint64_t seed) {
    graph_ = Graph("net");
    log_.clear();
    costs_ = std::make_unique<SyntheticCosts>(seed);
    options_.cpu = DetectCpu();
    options_.threads = 2;
    const Graph::NodeId a = AddConv(graph_, "a", AddInput(graph_, {1, 128, 8, 8}), 128, 3);
    const Graph::NodeId b = AddConv(graph_, "b", a, 256, 1);
    graph_.MarkOutput(AddConv(graph_, "c", b, 64, 3));
    for (Graph::NodeId id = 0; id < graph_.size(); ++id) {
      const auto* conv = graph_.As<ConvOp>(id);
      if (conv) AddRecords(conv->workload(), seed);
    }
  }

  void AddRecords(const ConvWorkload& workload, uint64_t seed) {
    for (Record& record : RecordOfEachTemplate(workload, options_.cpu)) {
      const std::string key = WorkloadToString(workload) + record.template_name;
      record.seconds = 1e-3 * (1 + HashFraction(key, seed));
      record.sample_seconds = {record.seconds};
      log_.push_back(record);
    }
  }

  Weighed Weigh(const Plan& plan) const {
    return {plan.predicted_seconds, PackedWeightBytes(plan, options_.cpu)};
  }

  NetworkProblem Problem() const { return {graph_, log_, *costs_, options_}; }

  Weighed Tune(std::optional<double> limit) {
    std::optional<int64_t> max_bytes;
    if (limit) max_bytes = static_cast<int64_t>(*limit);
    return Weigh(GraphTune(Problem(), {}, max_bytes).plan);
  }

  std::vector<Weighed> AllPlans() {
    std::vector<Weighed> all;
    PlanEnumerator(graph_, FindCandidates(graph_, log_, options_.cpu, options_.threads))
        .ForEach([&](Plan& plan) {
          PricePlan(graph_, *costs_, plan);
          all.push_back(Weigh(plan));
        });
    return all;
  }

  Graph graph_{"net"};
  GraphTuneOptions options_;
  std::unique_ptr<SyntheticCosts> costs_;
  std::vector<Record> log_;
};

TEST_F(WeightLimitTest, NoPlanWithSoSmallWeightsIsFaster) {
  int limited = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed);
    const std::vector<Weighed> plans = AllPlans();
    const auto [smallest, largest] = std::ranges::minmax(plans, {}, &Weighed::bytes);
    const Weighed free = Tune(std::nullopt);
    for (const double share : {0.0, 0.1, 0.3, 0.5, 0.8, 1.0}) {
      const double limit = smallest.bytes + share * (largest.bytes - smallest.bytes);
      const Weighed found = Tune(limit);
      EXPECT_LE(found.bytes, limit);
      for (const Weighed& plan : plans) {
        if (plan.bytes > found.bytes) continue;
        EXPECT_GE(plan.seconds, found.seconds * (1 - 1e-9));
      }
      if (free.bytes <= limit) {
        EXPECT_DOUBLE_EQ(found.seconds, free.seconds);
      }
      limited += found.bytes < free.bytes;
    }
  }
  const bool differ = std::ranges::any_of(log_, [&](const Record& record) {
    return PackedWeightBytes(record, options_.cpu) >
           1.1 * 4 * static_cast<double>(ElementCount(record.workload.weights_shape()));
  });
  EXPECT_EQ(limited > 10, differ);
}

TEST_F(WeightLimitTest, SaysHowSmallWeightsCanBe) {
  Make(1);
  try {
    Tune(4096);
    FAIL() << "4 KiB are enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoCandidate);
    EXPECT_THAT(error.what(),
                testing::ContainsRegex("smallest packed weights .* take 1.2 MiB, allowed are 0.0"));
  }
  EXPECT_EQ(PlanIfWeightsFit(Problem(), 4096), std::nullopt);
}

// As far as nothing is padded.
TEST_F(WeightLimitTest, EstimatesAreWhatKernelsPack) {
  Make(1);
  for (const Record& record : log_) {
    const ConvTemplate& conv_template = FindConvTemplate(record.template_name);
    const std::vector<float> weights(static_cast<size_t>(ElementCount(record.workload.weights_shape())));
    const auto kernel =
        conv_template.Build(record.workload, record.config, options_.cpu, {.weights = weights.data()});
    const double packed = static_cast<double>(kernel->PackedWeights().size_bytes());
    EXPECT_NEAR(PackedWeightBytes(record, options_.cpu) / packed, 1, 0.02)
        << record.template_name << " " << WorkloadToString(record.workload);
  }
}

}  // namespace
}  // namespace tilesmith
