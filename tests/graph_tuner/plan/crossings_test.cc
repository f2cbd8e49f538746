#include "graph_tuner/plan/crossings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/plan/price_plan.h"
#include "tests/graph_tuner/support/region_plans.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

constexpr int kThreads = 2;

// A second for each byte that is read across, nothing for anything else.
class ReadBytes final : public CostSource {
 public:
  double TransformSeconds(const Shape&, const Layout&, const Layout&) override { return 0; }
  double CopySeconds(const Shape&, const Layout&) override { return 0; }
  double OpSeconds(const OpUse&) override { return 0; }
  CrossingPrices PricesOfCrossing() override {
    return CrossingPrices({{64e-9, {{1, 1}}, {{1, 0}}, {{1, 0}}}});
  }
};

// Threads that own and read as much as each other.
Graph Chain() {
  Graph graph("chain");
  const Graph::NodeId a = AddConv(graph, "a", AddInput(graph, {2, 16, 12, 10}), 32);
  const Graph::NodeId b = AddConv(graph, "b", a, 32, 3), c = AddConv(graph, "c", b, 16, 1);
  graph.MarkOutput(AddConv(graph, "d", c, 32, 5, &b));
  return graph;
}

// What plans are charged for is what their programs read across, of both threads alike.
TEST(Crossings, AreThoseOfTheProgram) {
  const Graph graph = Chain();
  Target cpu = SyntheticCpu();
  ReadBytes costs;
  const std::vector<Split> splits = {Split::kRows, Split::kChannels, Split::kImages};
  int crossing = 0;
  for (int i = 0; i < 81; ++i) {
    SCOPED_TRACE(i);
    Plan plan;
    plan.target = cpu;
    plan.threads = kThreads;
    int digits = i;
    for (const char* name : {"a", "b", "c", "d"}) {
      const auto& conv = *graph.As<ConvOp>(*graph.Find(name));
      const Record record = SyntheticRecord(conv.workload(), 8, 8, 1);
      NodePlan node{name, "Conv", record.layouts, record, 0};
      node.split = splits[static_cast<size_t>(digits % 3)];
      digits /= 3;
      plan.nodes.push_back(std::move(node));
    }
    PricePlan(graph, costs, plan);
    const auto network = CompileNetwork(graph, plan, OpenDevice(cpu, kThreads));
    for (const NodePlan& node : plan.nodes) {
      const auto step = std::ranges::find_if(
          network->steps, [&](const StepProfile& s) { return s.node == node.node && !s.conversion; });
      // The input comes as the caller gives it and is converted by shares that differ from those of the
      // charge.
      if (node.node == "a") continue;
      EXPECT_NEAR(node.crossing_seconds, step->crossed_bytes / kThreads, 1e-6) << node.node;
      crossing += node.crossing_seconds > 0;
    }
  }
  EXPECT_GT(crossing, 100);
}

TEST(Crossings, NothingCrossesInsideARegion) {
  const Graph graph = Chain();
  ReadBytes costs;
  Plan plan = FewRowsPlan(graph, TestCpu(), kThreads);
  for (NodePlan& node : plan.nodes) node.split = Split::kRows;
  AddRegion(plan, {"b", "c"}, 2);
  PricePlan(graph, costs, plan);
  const auto network = CompileNetwork(graph, plan, OpenDevice(TestCpu(), kThreads));
  for (const NodePlan& node : plan.nodes) {
    const auto step = std::ranges::find_if(
        network->steps, [&](const StepProfile& s) { return s.node == node.node && !s.conversion; });
    if (node.node == "c") {
      EXPECT_EQ(node.crossing_seconds, 0);
      EXPECT_EQ(step->crossed_bytes, 0);
    } else if (node.node == "d") {
      EXPECT_GT(node.crossing_seconds, 0);
      EXPECT_GT(step->crossed_bytes, 0);
    }
  }
}

TEST(Crossings, WholeResultsCrossWhereSplitsDiffer) {
  Graph graph("g");
  const Graph::NodeId a = AddConv(graph, "a", AddInput(graph, {1, 16, 8, 8}), 16);
  const Graph::NodeId b = AddRelu(graph, "b", a);
  graph.MarkOutput(b);
  ReadBytes costs;
  Crossings crossings(graph, costs, SyntheticCpu(), kThreads);
  ASSERT_TRUE(crossings.priced());
  const Layout nhwc = Layout::Nhwc();
  const double bytes = 16 * 8 * 8 * 4;
  const auto read = [&](Owner writer, Owner reader) {
    return crossings.ReadSeconds({.tensor = a,
                                  .reader = b,
                                  .written = {writer, Split::kRows},
                                  .from = nhwc,
                                  .to = nhwc,
                                  .owner = reader});
  };
  EXPECT_EQ(read(Owner::kRows, Owner::kRows), 0);
  EXPECT_EQ(read(Owner::kCaller, Owner::kRows), 0);
  EXPECT_DOUBLE_EQ(read(Owner::kChannels, Owner::kRows), bytes / 4);
  EXPECT_DOUBLE_EQ(read(Owner::kMixed, Owner::kRows), bytes / 4);
  EXPECT_DOUBLE_EQ(read(Owner::kRows, Owner::kOne), bytes / 2);
  EXPECT_DOUBLE_EQ(read(Owner::kOne, Owner::kRows), bytes / 2);
}

TEST(Crossings, OfferSplitsThatAreWorthTheirImbalance) {
  Graph graph("g");
  const Graph::NodeId a = AddRelu(graph, "a", AddInput(graph, {1, 48, 8, 8}));
  graph.MarkOutput(a);
  ReadBytes costs;
  Crossings crossings(graph, costs, SyntheticCpu(), kThreads);
  const auto splits = [&](const Layout& layout) {
    std::vector<Split> found;
    for (const Deal& deal : crossings.DealsOf(a, layout)) found.push_back(deal.ownership.split);
    return found;
  };
  // By rows is what even shares of NHWC are. Three blocks of channels are two and one to two threads.
  EXPECT_EQ(splits(Layout::Nhwc()), (std::vector{Split::kRows}));
  EXPECT_EQ(splits(Layout::Blocked(16)), (std::vector{Split::kEven, Split::kRows, Split::kChannels}));
  EXPECT_EQ(splits(Layout::Blocked(24)), (std::vector{Split::kRows, Split::kChannels}));
  Crossings even(graph, costs, SyntheticCpu(), kThreads, true), one(graph, costs, SyntheticCpu(), 1);
  EXPECT_EQ(even.DealsOf(a, Layout::Nhwc())[0].ownership, (Ownership{Owner::kRows, Split::kEven}));
  EXPECT_FALSE(one.priced());
}

TEST(Crossings, AnOpOfItsOwnTensorsCostsWhatWasMeasured) {
  Graph graph("g");
  const Graph::NodeId a = AddConv(graph, "a", AddInput(graph, {1, 16, 9, 8}), 16);
  const Graph::NodeId b = AddRelu(graph, "b", a);
  graph.MarkOutput(b);
  SyntheticCosts costs(1);
  costs.seconds_per_crossed_byte = 1e-9;
  Crossings crossings(graph, costs, SyntheticCpu(), kThreads);
  const Layout blocked = Layout::Blocked(8);
  const double measured =
      costs.OpSeconds({graph.node(b).op, graph.InputShapes(b), graph.node(b).shape, blocked});
  const auto own = [&](Split split) {
    return crossings.OwnSeconds(b, blocked, crossings.DealOf(b, blocked, split));
  };
  EXPECT_DOUBLE_EQ(own(Split::kEven), measured);
  EXPECT_DOUBLE_EQ(own(Split::kRows), measured * 10 / 9) << "two times five rows, of nine, to one thread";
}

TEST(Crossings, WeightsFromMemoryAreReadByEveryThreadThatComputesRows) {
  Graph graph("g");
  const Graph::NodeId a = AddConv(graph, "a", AddInput(graph, {1, 16, 8, 8}), 32, 3);
  graph.MarkOutput(a);
  SyntheticCosts costs(1);
  costs.seconds_per_crossed_byte = 1e-9;
  costs.distance_factors = {{64e-9, 1}, {256e-9, 4}};
  Record record = SyntheticRecord(graph.As<ConvOp>(a)->workload(), 8, 8, 1);
  const double half = PackedWeightBytes(record, SyntheticCpu()) / kThreads;
  const auto seconds = [&](Split split, const CorePlacement& at) {
    Crossings crossings(graph, costs, SyntheticCpu(), kThreads, false, at);
    return crossings.WeightSeconds(record, split);
  };
  const CorePlacement near = {64e-9, 1e-6}, far = {256e-9, 1e-6};
  EXPECT_EQ(seconds(Split::kRows, far), 0) << "they were in caches when it was measured";
  record.conditions.cold_weights = true;
  EXPECT_GT(half, 0);
  // Even shares of blocked layouts are channels.
  EXPECT_EQ(seconds(Split::kEven, far), 0);
  EXPECT_EQ(seconds(Split::kChannels, far), 0);
  EXPECT_NEAR(seconds(Split::kRows, near), 0.1e-9 * half, 1e-15);
  EXPECT_NEAR(seconds(Split::kRows, far), 0.4e-9 * half, 1e-15);
  EXPECT_NEAR(seconds(Split::kRows, {}), 0.25e-9 * half, 1e-15);
}

TEST(Crossings, ConversionsTakeLongerFarApartWhereOwnersChange) {
  Graph graph("g");
  const Graph::NodeId a = AddConv(graph, "a", AddInput(graph, {1, 16, 8, 8}), 32);
  graph.MarkOutput(a);
  SyntheticCosts costs(1);
  costs.seconds_per_crossed_byte = 1e-9;
  costs.distance_factors = {{64e-9, 1}, {256e-9, 4}};
  const auto seconds = [&](const Layout& to, const Ownership& written, const CorePlacement& at) {
    Crossings crossings(graph, costs, SyntheticCpu(), kThreads, false, at);
    return crossings.ConversionSeconds(a, Layout::Nhwc(), to, written);
  };
  const CorePlacement near = {64e-9, 1e-6}, far = {256e-9, 1e-6};
  const Ownership rows = {Owner::kRows, Split::kRows}, even = {Owner::kRows, Split::kEven};
  const double quarter = 32 * 8 * 8 * 4 / 4;
  EXPECT_EQ(seconds(Layout::Blocked(8), rows, far), 0) << "rows stay with their threads";
  // Even shares of NHWC are rows, of a blocked layout channels.
  EXPECT_EQ(seconds(Layout::Blocked(8), even, near), 0) << "in what was measured";
  EXPECT_NEAR(seconds(Layout::Blocked(8), even, far), (4 - 1) * 1e-9 * quarter, 1e-15);
  EXPECT_EQ(seconds(Layout::Blocked(8), {Owner::kCaller, Split::kEven}, far), 0);
}

TEST(Crossings, HaveThePricesOfWhereTheCoresAre) {
  Graph graph("g");
  const Graph::NodeId a = AddConv(graph, "a", AddInput(graph, {1, 16, 8, 8}), 16);
  graph.MarkOutput(a);
  SyntheticCosts costs(1);
  costs.seconds_per_crossed_byte = 1e-9;
  costs.distance_factors = {{64e-9, 1}, {256e-9, 4}};
  const auto write = [&](const CorePlacement& at) {
    Crossings crossings(graph, costs, SyntheticCpu(), kThreads, false, at);
    return crossings.WriteSeconds(a, Layout::Blocked(8), {Owner::kRows, Split::kRows});
  };
  const double near = write({70e-9, 1e-6});
  EXPECT_GT(near, 0);
  EXPECT_DOUBLE_EQ(write({300e-9, 1e-6}), 4 * near);
  EXPECT_DOUBLE_EQ(write({}), 2.5 * near) << "in the mean";
}

}  // namespace
}  // namespace tilesmith
