// Plans within a budget of output errors, against all plans there are.
#include "graph_tuner/problem/error_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "layouts/base/error.h"
#include "tests/graph_tuner/support/plan_enumerator.h"
#include "tests/graph_tuner/support/synthetic.h"

namespace tilesmith {
namespace {

struct Judged {
  double seconds = 0, square = 0;
};

// Three convs with a record in f32 and some in bf16, of made-up seconds and errors.
class ErrorBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (DetectCpu().isa == Isa::kPortable) GTEST_SKIP() << "needs AVX2";
  }

  void Make(uint64_t seed) {
    graph_ = Graph("net");
    log_.clear();
    costs_ = std::make_unique<SyntheticCosts>(seed);
    options_ = SyntheticOptions();
    options_.cpu = DetectCpu();
    options_.precision = Precision::kMixed;
    const Graph::NodeId a = AddConv(graph_, "a", AddInput(graph_, {1, 64, 4, 4}), 64, 3);
    const Graph::NodeId b = AddConv(graph_, "b", a, 32, 1);
    graph_.MarkOutput(AddConv(graph_, "c", b, 64, 3));
    for (Graph::NodeId id = 0; id < graph_.size(); ++id) {
      const auto* conv = graph_.As<ConvOp>(id);
      if (conv == nullptr) continue;
      AddRecords(conv->workload(), seed);
      options_.errors.squares[graph_.node(id).name] = 1e-6 * (0.1 + HashFraction(graph_.node(id).name, seed));
    }
  }

  void AddRecords(const ConvWorkload& workload, uint64_t seed) {
    const auto add = [&](Record record, double scale) {
      const std::string key = WorkloadToString(workload) + record.template_name + record.config.ToString();
      record.seconds = scale * (1 + HashFraction(key, seed));
      record.sample_seconds = {record.seconds};
      log_.push_back(record);
    };
    add(DefaultRecord(workload, options_.cpu, 2), 4e-3);
    for (const ConvTemplate* conv_template : ConvTemplates(kCpuDevice, DataType::kBf16)) {
      if (!conv_template->Supports(workload, options_.cpu).ok) continue;
      for (const DataType out : {DataType::kBf16, DataType::kF32}) {
        Record record = DefaultRecord(workload, options_.cpu, 2);
        record.template_name = conv_template->Name();
        record.config = conv_template->Default(workload, options_.cpu);
        record.config.Set("out_type", static_cast<int64_t>(out));
        record.layouts = conv_template->Layouts(workload, record.config);
        add(std::move(record), 2e-3);
      }
    }
  }

  Judged Judge(const Plan& plan) const { return {plan.predicted_seconds, options_.errors.Of(plan)}; }

  std::vector<Judged> AllPlans() {
    std::vector<Judged> all;
    PlanEnumerator(graph_, FindCandidates(graph_, log_, options_.cpu, options_.threads))
        .ForEach([&](Plan& plan) {
          PricePlan(graph_, *costs_, plan);
          all.push_back(Judge(plan));
        });
    return all;
  }

  Plan Tune() { return GraphTune(graph_, log_, *costs_, options_).plan; }

  Graph graph_{"net"};
  GraphTuneOptions options_;
  std::unique_ptr<SyntheticCosts> costs_;
  std::vector<Record> log_;
};

TEST_F(ErrorBudgetTest, NoPlanWithSoSmallAnErrorIsFaster) {
  int limited = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Make(seed);
    const std::vector<Judged> plans = AllPlans();
    const double largest = std::ranges::max(plans, {}, &Judged::square).square;
    ASSERT_GT(largest, 0);
    const Judged free = Judge(Tune());
    for (const double share : {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}) {
      options_.errors.most = share * largest;
      const Plan plan = Tune();
      const Judged found = Judge(plan);
      EXPECT_LE(found.square, options_.errors.most * (1 + 1e-9));
      double fastest = std::numeric_limits<double>::infinity();
      for (const Judged& other : plans) {
        if (other.square <= options_.errors.most) fastest = std::min(fastest, other.seconds);
        if (other.square > found.square) continue;
        EXPECT_GE(other.seconds, found.seconds * (1 - 1e-9));
      }
      // The certificate holds.
      double percent = 0;
      const size_t at = plan.certificate.find("at most ");
      if (at != std::string::npos)
        std::sscanf(plan.certificate.c_str() + at, "at most %lf%% slower", &percent);
      EXPECT_LE(found.seconds, fastest * (1 + (percent + 0.06) / 100)) << plan.certificate;
      if (free.square <= options_.errors.most) {
        EXPECT_DOUBLE_EQ(found.seconds, free.seconds);
      }
      limited += found.square < free.square;
    }
    options_.errors.most = std::numeric_limits<double>::infinity();
  }
  EXPECT_GT(limited, 10);
}

TEST_F(ErrorBudgetTest, PrecisionsChooseAmongRecords) {
  Make(1);
  const auto narrow = [&](Precision precision) {
    options_.precision = precision;
    const Plan plan = Tune();
    return std::ranges::count_if(plan.nodes, [](const NodePlan& node) { return IsNarrow(*node.record); });
  };
  EXPECT_EQ(narrow(Precision::kF32), 0);
  EXPECT_EQ(narrow(Precision::kBf16), 3);
  options_.errors.most = 0;
  EXPECT_EQ(narrow(Precision::kMixed), 0);
  options_.precision = Precision::kBf16;
  EXPECT_EQ(PlanIfWeightsFit(NetworkProblem(graph_, log_, *costs_, options_), {}), std::nullopt);
  try {
    Tune();
    FAIL() << "bf16 without errors";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoCandidate);
    EXPECT_THAT(error.what(), testing::HasSubstr("smallest output error"));
  }
}

// Rounded products of transformed windows make more errors than a plain sum's.
TEST(ErrorBudget, CountsTheNoiseOfAnAlgorithm) {
  Target cpu = DetectCpu();
  cpu.isa = Isa::kAvx512;
  cpu.bf16 = true;
  const ConvTemplate& winograd = FindConvTemplate("winograd_bf16");
  Record record;
  record.workload = ParseWorkload("ic64ih14oc64kh3ph1");
  record.template_name = winograd.Name();
  record.config = winograd.Default(record.workload, cpu);
  record.config.Set("tile", 2);
  record.layouts = winograd.Layouts(record.workload, record.config);
  const ErrorBudget budget = {.squares = {{"conv", 1e-6}}};
  record.config.Set("product_type", static_cast<int64_t>(DataType::kF32));
  EXPECT_EQ(budget.Of("conv", record), 1e-6);
  record.config.Set("product_type", static_cast<int64_t>(DataType::kBf16));
  EXPECT_NEAR(budget.Of("conv", record), 2.5e-6, 1e-7);
  EXPECT_EQ(budget.Of("another", record), 0);
  Plan plan;
  NodePlan& node = plan.nodes.emplace_back();
  node.node = "conv";
  node.record = record;
  EXPECT_EQ(budget.Of(plan), budget.Of("conv", record));
}

}  // namespace
}  // namespace tilesmith
