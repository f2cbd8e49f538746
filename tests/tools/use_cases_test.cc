// Bench and explain as functions, without the command line around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layouts/base/error.h"
#include "tools/bench/bench_model.h"
#include "tools/network/explain_report.h"
#include "tools/tune/graph_tune_model.h"

namespace tilesmith {
namespace {

constexpr const char* kBenchedConv = "mb1ic16ih14oc16oh14kh3ph1+bias+relu";

BenchModelRequest RequestFor(const std::string& model) {
  BenchModelRequest request;
  request.targets.model.model = model;
  request.machine = OpenMachine({.threads = 1, .max_isa = ""});
  request.seconds = 1e-3;
  return request;
}

TEST(BenchModelTest, AConvolutionBesideOneDnn) {
  std::vector<std::string> stages;
  const BenchedModel bench = BenchModel(
      RequestFor(kBenchedConv), {.on_stage = [&](const std::string& stage) { stages.push_back(stage); }});
  ASSERT_EQ(bench.rows.size(), 1u);
  EXPECT_GT(bench.rows[0].bench.seconds, 0);
  EXPECT_GT(bench.geomean, 0);
  EXPECT_FALSE(bench.stopped);
  EXPECT_FALSE(bench.network);
  EXPECT_THAT(stages, testing::ElementsAre(std::string("1/1 ") + kBenchedConv));
  Report report;
  AddBench(report, bench, RequestFor(kBenchedConv).machine);
  EXPECT_THAT(report.ToJson(), testing::HasSubstr("\"disturbed_share\""));
}

// Both sides' answers agree as far as bf16 allows, or this throws. oneDNN is in f32 without AVX-512 BF16.
TEST(BenchModelTest, AConvolutionInBf16BesideOneDnns) {
  BenchModelRequest request = RequestFor(kBenchedConv);
  request.precision = Precision::kBf16;
  if (request.machine->target().isa == Isa::kPortable) {
    EXPECT_THROW(BenchModel(request, {}), Error);
    return;
  }
  const BenchedModel bench = BenchModel(request, {});
  ASSERT_EQ(bench.rows.size(), 1u);
  const ConvBench& row = bench.rows[0].bench;
  EXPECT_EQ(FindConvTemplate(row.schedule.template_name).FactorType(), DataType::kBf16);
  EXPECT_GT(row.seconds, 0);
  EXPECT_GT(bench.geomean, 0);
  ASSERT_FALSE(row.sides.empty());
  const bool narrow = row.sides.front().implementation.find("bf16") != std::string::npos;
  EXPECT_EQ(narrow, request.machine->target().bf16) << row.sides.front().implementation;
  EXPECT_THAT(BenchTitle(bench), testing::HasSubstr("in bf16"));
  request.targets.model.model = "squeezenet1_1";
  EXPECT_THROW(BenchModel(request, {}), Error);
}

TEST(BenchModelTest, StoppedItReturnsWhatItHas) {
  const StopFlag stop = true;
  const BenchedModel bench = BenchModel(RequestFor("squeezenet1_1"), {.stop = &stop});
  EXPECT_TRUE(bench.stopped);
  EXPECT_TRUE(bench.rows.empty());
}

class ExplainPlanTest : public testing::Test {
 protected:
  ExplainPlanTest() : machine_(OpenMachine(arguments_.machine)), network_(arguments_.model, machine_) {
    request_.network = &network_;
    request_.machine = machine_;
    request_.log = &log_;
    request_.open_costs = [&] { return OpenCosts(arguments_, machine_, {}); };
    request_.tuning = TuningOptions(arguments_, machine_, {});
  }

  static GraphTuningArguments Squeezenet() {
    GraphTuningArguments arguments;
    arguments.model = {.model = "squeezenet1_1", .batch = 0, .input_shapes = {"input=1x3x48x48"}};
    arguments.machine.threads = 1;
    arguments.tuning.allow_defaults = true;
    return arguments;
  }

  const GraphTuningArguments arguments_ = Squeezenet();
  const DevicePtr machine_;
  ModelNetwork network_;
  const std::vector<Record> log_;
  PlanRequest request_;
};

TEST_F(ExplainPlanTest, ExplainsEveryNodeThatHasAChoice) {
  const ExplainedPlan explained = ExplainPlan(request_, {}, {});
  EXPECT_FALSE(explained.nodes.empty());
  ASSERT_FALSE(explained.plans.empty());
  EXPECT_DOUBLE_EQ(explained.plans[0].plan.predicted_seconds, explained.solved->best.predicted_seconds);
  for (const ExplainedNode& node : explained.nodes)
    EXPECT_GE(node.other->total_seconds, explained.solved->best.predicted_seconds - 1e-12) << node.best.node;
  Report report;
  AddExplanation(report, explained, arguments_, std::nullopt);
  EXPECT_THAT(report.ToJson(), testing::HasSubstr("\"nodes\""));
}

TEST_F(ExplainPlanTest, ExplainsOneNodeOrStops) {
  const PlanQuestion question = {.node = "features.3.squeeze"};
  const ExplainedPlan explained = ExplainPlan(request_, question, {});
  ASSERT_FALSE(explained.options.empty());
  EXPECT_EQ(explained.options[0].schedule.node, question.node);
  EXPECT_TRUE(explained.nodes.empty());
  const StopFlag stop = true;
  EXPECT_THROW(ExplainPlan(request_, {}, {.stop = &stop}), Error);
  EXPECT_THROW(ExplainPlan(request_, {.node = "no_such_node_at_all"}, {}), Error);
}

}  // namespace
}  // namespace tilesmith
