// Networks whose plans compute and store in bf16: run, checked step by step, and their output errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graph_tuner/check/network_check.h"
#include "graph_tuner/check/output_errors.h"
#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/problem/graph_tune.h"
#include "ops/movement/concat.h"
#include "ops/pool/pool.h"
#include "tests/graph_tuner/support/bf16_networks.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/support/temporary_files.h"

namespace tilesmith::bf16_network {
namespace {

using NodeId = Graph::NodeId;

// Convs in all positions, a residual, pools, a concat.
Graph MakeNetwork() {
  Graph graph("bf16");
  const NodeId image = AddInput(graph, {2, 3, 20, 20});
  const NodeId a = AddRandomConv(graph, "a", "mb2ic3ih20oc32oh10kh3sh2ph1+bias+relu", {image});
  const NodeId pool =
      graph.Add("pool", std::make_shared<PoolOp>(PoolWindow{.kh = 2, .kw = 2, .sh = 2, .sw = 2}), {a});
  const NodeId b = AddRandomConv(graph, "b", "mb2ic32ih5oc32oh5kh3ph1+bias+relu", {pool});
  const NodeId c = AddRandomConv(graph, "c", "mb2ic32ih5oc32oh5kh1+bias+sum+relu", {b, pool});
  const NodeId d = AddRandomConv(graph, "d", "mb2ic32ih5oc17oh5kh1+bias", {c});
  const NodeId both = graph.Add("both", std::make_shared<ConcatOp>(1), {c, d});
  const NodeId e = AddRandomConv(graph, "e", "mb2ic49ih5oc64oh5kh1+bias+hard_swish", {both});
  graph.MarkOutput(graph.Add("mean", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {e}));
  graph.MarkOutput(d);
  return graph;
}

class Bf16Network : public testing::Test {
 protected:
  void SetUp() override {
    if (DetectCpu().isa == Isa::kPortable) GTEST_SKIP() << "needs AVX2";
    options_ = SyntheticOptions();
    options_.cpu = DetectCpu();
    options_.precision = Precision::kMixed;
    graph_ = MakeNetwork();
    log_ = LogOfBothTypes(graph_, options_.cpu);
  }

  Plan Tune(uint64_t seed) {
    SyntheticCosts costs(seed);
    return GraphTune(NetworkProblem(graph_, log_, costs, options_)).plan;
  }

  Graph graph_{"bf16"};
  GraphTuneOptions options_;
  std::vector<Record> log_;
};

TEST_F(Bf16Network, PlansPassTheCheckAndRoundTrip) {
  const TemporaryDirectory folder;
  const std::vector<Tensor> inputs = RandomInputs(graph_, 3);
  std::set<std::string> typed;  // ops other than convs that ran in bf16
  for (uint64_t seed = 0; seed < 40; ++seed) {
    options_.precision = seed % 3 == 0 ? Precision::kBf16 : Precision::kMixed;
    const Plan planned = Tune(seed);
    WritePlan(folder.File("plan.jsonl"), planned);
    const Plan plan = ReadPlan(folder.File("plan.jsonl"), nullptr);
    EXPECT_TRUE(SameSchedules(plan, planned));
    CheckPlan(plan, graph_, options_.cpu, 2);
    for (const NodePlan& node : plan.nodes)
      if (!node.record && node.layouts.out.type() == DataType::kBf16) typed.insert(node.node);
    Executor executor(graph_, plan, OpenDevice(options_.cpu, 2));
    const NetworkCheck check = CheckNetwork(executor, graph_, plan, options_.cpu, inputs);
    EXPECT_EQ(check.wrong, "") << "seed " << seed;
    EXPECT_GT(check.worst_step_difference, 0);
  }
  EXPECT_TRUE(typed.contains("pool"));
  EXPECT_TRUE(typed.contains("both"));
}

TEST_F(Bf16Network, ErrorsAddUpAsPredicted) {
  const DevicePtr device = OpenDevice(options_.cpu, 2);
  const OutputErrors errors(graph_, device, {RandomInputs(graph_, 3)});
  options_.errors.squares = errors.OfConvs(1);
  EXPECT_EQ(options_.errors.squares.size(), 5u);
  for (const auto& [conv, square] : options_.errors.squares) {
    EXPECT_GT(square, 1e-12) << conv;
    EXPECT_LT(square, 1e-3) << conv;
  }
  options_.precision = Precision::kBf16;
  const Plan plan = Tune(1);
  const double predicted = std::sqrt(options_.errors.Of(plan)), seen = errors.Of(plan).error;
  EXPECT_LT(seen, 2.5 * predicted);
  EXPECT_GT(seen, predicted / 2.5);
  options_.precision = Precision::kF32;
  EXPECT_LT(errors.Of(Tune(1)).error, 1e-5);
  EXPECT_EQ(options_.errors.Of(Tune(1)), 0);
  options_.precision = Precision::kMixed;
  options_.errors.most = 0.3 * predicted * predicted;
  const Plan mixed = Tune(1);
  EXPECT_LE(options_.errors.Of(mixed), options_.errors.most);
  EXPECT_LT(errors.Of(mixed).error, seen);
}

}  // namespace
}  // namespace tilesmith::bf16_network
