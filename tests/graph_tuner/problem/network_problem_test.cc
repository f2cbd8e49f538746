#include "graph_tuner/problem/network_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_tuner/plan/plan.h"
#include "graph_tuner/plan/price_plan.h"
#include "graph_tuner/problem/build_problem.h"
#include "layouts/base/error.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/plan_enumerator.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/graph_tuner/support/synthetic_fusion.h"

namespace tilesmith {
namespace {

using Id = Graph::NodeId;
using testing::HasSubstr;

NodePlan Tolerant(const char* node, const char* type, const char* layout) {
  return {node, type, {Layout::Parse(layout), Layout::Parse(layout)}, std::nullopt, 0};
}

NodePlan Chosen(const char* node, const Graph& graph, int64_t in, int64_t out, double seconds) {
  const auto& conv = *graph.As<ConvOp>(*graph.Find(node));
  const Record record = SyntheticRecord(conv.workload(), in, out, seconds);
  return {node, "Conv", record.layouts, record, 0};
}

// Prices that say what was asked for: transforms 1000, copies 100, ops 10 for any tensor.
class TelltaleCosts final : public CostSource {
 public:
  double TransformSeconds(const Shape&, const Layout&, const Layout&) override { return 1000; }
  double CopySeconds(const Shape&, const Layout&) override { return 100; }
  double OpSeconds(const OpUse&) override { return 10; }
  CrossingPrices PricesOfCrossing() override { return {}; }
};

TEST(PricePlan, ChargesEachDistinctTransformOnce) {
  Graph graph("g");
  const Id input = AddInput(graph, {1, 8, 4, 4});
  const Id a = AddConv(graph, "a", input, 16);
  const Id b = AddRelu(graph, "b", a), c = AddRelu(graph, "c", a), d = AddRelu(graph, "d", a);
  const Id e = AddSum(graph, "e", b, c);
  const Id f = AddConv(graph, "f", d, 16, 1, &e);
  graph.MarkOutput(f);
  graph.MarkOutput(a);
  Plan plan;
  plan.nodes = {Chosen("a", graph, 1, 8, 1),     Tolerant("b", "Relu", "NCHW16c"),
                Tolerant("c", "Relu", "NHWC"),   Tolerant("d", "Relu", "NCHW"),
                Tolerant("e", "Add", "NCHW16c"), Chosen("f", graph, 1, 8, 2)};
  TelltaleCosts costs;
  PricePlan(graph, costs, plan);
  // a: 8c -> 16c for b and, being the same memory for 16 channels, NHWC for c; -> NCHW for d and the output.
  // e: 16c -> 8c as f's residual. f: 8c -> NCHW as output.
  ASSERT_EQ(plan.transforms.size(), 4u);
  EXPECT_EQ(plan.transforms[0].tensor, "a");
  EXPECT_EQ(plan.transforms[0].to.ToString(), "NCHW16c");
  EXPECT_EQ(plan.transforms[1].to.ToString(), "NCHW");
  EXPECT_EQ(plan.transforms[2].tensor, "e");
  EXPECT_EQ(plan.transforms[3].tensor, "f");
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, 1 + 10 + 10 + 10 + 10 + 2 + 4 * 1000);
}

TEST(PricePlan, ConcatsAreFreeWhereInputsOwnTheirSlices) {
  Graph graph("g");
  const Id input = AddInput(graph, {1, 8, 4, 4});
  const Id a = AddConv(graph, "a", input, 8), b = AddConv(graph, "b", input, 8);
  const Id first = AddConcat(graph, "first", {a, b});
  const Id second = AddConcat(graph, "second", {a, input, first});
  graph.MarkOutput(second);
  auto price = [&](const char* first_layout, const char* second_layout, int64_t a_block) {
    Plan plan;
    plan.nodes = {Chosen("a", graph, 1, a_block, 1), Chosen("b", graph, 1, 8, 1),
                  Tolerant("first", "Concat", first_layout), Tolerant("second", "Concat", second_layout)};
    TelltaleCosts costs;
    PricePlan(graph, costs, plan);
    return plan.predicted_seconds - 2;
  };
  // Copies of a (owned by `first`) and a transform of the input into `second`; the result to NCHW.
  EXPECT_DOUBLE_EQ(price("NCHW8c", "NCHW8c", 8), 100 + 1000 + 1000);
  // a comes in NCHW: a transform writes it into `first`, another into `second`.
  EXPECT_DOUBLE_EQ(price("NCHW8c", "NCHW8c", 1), 1000 + 1000 + 1000 + 1000);
  // 16c cuts no slices here: a copying kernel, whose inputs are ordinary reads.
  EXPECT_DOUBLE_EQ(price("NCHW8c", "NCHW16c", 8), 10 + 3 * 1000 + 1000);
  // All plain: a and b to NCHW in their slices; a (8c) and the input (a copy) into `second`.
  EXPECT_DOUBLE_EQ(price("NCHW", "NCHW", 8), 2 * 1000 + 1000 + 100);
}

double BruteForce(const Graph& graph, const Candidates& candidates, CostSource& costs,
                  const EndLayouts& ends = {}) {
  double best = kForbidden;
  PlanEnumerator(graph, candidates, ends).ForEach([&](Plan& plan) {
    PricePlan(graph, costs, plan);
    best = std::min(best, plan.predicted_seconds);
  });
  return best;
}

TEST(PricePlan, ChargesTheEndsInTheCallersLayouts) {
  Graph graph("g");
  const Id a = AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 16);
  graph.MarkOutput(a);
  Plan plan;
  plan.nodes = {Chosen("a", graph, 0, 0, 1)};  // NHWC
  TelltaleCosts costs;
  PricePlan(graph, costs, plan);
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, 1 + 1000 + 1000);
  plan.ends = {Layout::Nhwc(), Layout::Nchw()};
  PricePlan(graph, costs, plan);
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, 1 + 1000);
  plan.ends = {Layout::Nhwc(), Layout::Nhwc()};
  PricePlan(graph, costs, plan);
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, 1);
  EXPECT_TRUE(plan.transforms.empty());
}

double PlansOf(const BuiltProblem& built) {
  double count = 1;
  for (const NodeVariables& vars : built.nodes)
    count *= static_cast<double>(std::max<size_t>(1, vars.in_layouts.size())) *
             (vars.in == vars.out ? 1 : static_cast<double>(vars.out_layouts.size()));
  return count;
}

TEST(GraphTune, DpEqualsExhaustiveSearchAndBruteForceOnRandomNetworks) {
  int concats = 0, two_outputs = 0, residuals = 0, transforms = 0, brute_forced = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 3 + static_cast<int>(seed % 6));
    const std::vector<Record> log =
        SyntheticLog(graph, seed % 3 ? std::vector<int64_t>{1, 8} : std::vector<int64_t>{16, 8, 0}, seed);
    SyntheticCosts costs(seed);
    GraphTuneOptions options = SyntheticOptions();
    const std::vector<Layout> ends = {Layout::Nchw(), Layout::Nhwc(), Layout::Nchw(), Layout::Blocked(8)};
    options.ends = {ends[seed % 4], ends[seed / 4 % 4]};
    const GraphTuneResult dp = GraphTune(graph, log, costs, options);
    options.solver = "exhaustive";
    const GraphTuneResult exhaustive = GraphTune(graph, log, costs, options);
    EXPECT_NEAR(dp.plan.predicted_seconds, exhaustive.plan.predicted_seconds,
                1e-9 * exhaustive.plan.predicted_seconds);
    EXPECT_EQ(dp.plan.certificate, "optimal");

    const Candidates candidates = FindCandidates(graph, log, options.cpu, options.threads);
    Crossings crossings(graph, costs);
    const BuiltProblem built =
        BuildProblem(DealAll(candidates, crossings), LayoutsOf(graph, candidates), crossings);
    if (PlansOf(built) <= 2000) {
      ++brute_forced;
      EXPECT_NEAR(dp.plan.predicted_seconds, BruteForce(graph, candidates, costs, options.ends),
                  1e-9 * exhaustive.plan.predicted_seconds);
    }
    for (Id id = 0; id < graph.size(); ++id) {
      concats += graph.node(id).op->Type() == "Concat";
      residuals += graph.node(id).op->Type() == "Conv" && graph.Inputs(id).size() == 2;
    }
    two_outputs += graph.outputs().size() == 2;
    transforms += !dp.plan.transforms.empty();
  }
  // The generator makes what it promises.
  EXPECT_GT(brute_forced, 80);
  EXPECT_GT(concats, 200);
  EXPECT_GT(two_outputs, 80);
  EXPECT_GT(residuals, 80);
  EXPECT_GT(transforms, 200);
}

TEST(GraphTune, ChoosesFusedPairsAsExhaustiveSearchAndBruteForceDo) {
  int with_fused = 0, fused_input_ops = 0, fused_convs = 0, brute_forced = 0, not_fused = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 3 + static_cast<int>(seed % 6));
    const std::vector<int64_t> blocks = seed % 3 ? std::vector<int64_t>{1, 8} : std::vector<int64_t>{8, 16};
    SyntheticCosts costs(seed);
    Candidates candidates = FindCandidates(graph, SyntheticLog(graph, blocks, seed), SyntheticCpu(), 2);
    AddFusedCandidates(graph, blocks, seed, candidates);
    Crossings crossings(graph, costs);
    const BuiltProblem built =
        BuildProblem(DealAll(candidates, crossings), LayoutsOf(graph, candidates), crossings);
    const Solution dp = FindSolver("dp").solve(built.problem, {});
    const Solution exhaustive = FindSolver("exhaustive").solve(built.problem, {});
    ASSERT_TRUE(dp.solved() && exhaustive.solved());
    EXPECT_NEAR(dp.cost, exhaustive.cost, 1e-9 * exhaustive.cost);
    Plan plan;
    plan.nodes = ChosenNodes(graph, built, dp.assignment);
    PricePlan(graph, costs, plan);
    EXPECT_NEAR(plan.predicted_seconds, dp.cost, 1e-9 * dp.cost);
    const FusedNodes fused = FindFusedNodes(graph, plan);
    for (const auto& [conv, pair] : fused) ++(pair.workload.before.empty() ? fused_input_ops : fused_convs);
    with_fused += !fused.empty();
    not_fused += candidates.size() > FindCandidates(graph, {}, SyntheticCpu(), 2).size() && fused.empty();
    for (const TransformPlan& transform : plan.transforms) {
      for (const auto& [conv, pair] : fused) EXPECT_NE(transform.tensor, graph.node(pair.first).name);
    }
    if (PlansOf(built) > 20000) continue;
    ++brute_forced;
    EXPECT_NEAR(dp.cost, BruteForce(graph, candidates, costs), 1e-9 * dp.cost);
  }
  EXPECT_GT(with_fused, 100);
  EXPECT_GT(fused_input_ops, 20);
  EXPECT_GT(fused_convs, 50);
  EXPECT_GT(brute_forced, 80);
  EXPECT_GT(not_fused, 20);
}

TEST(PricePlan, OfAFusedPair) {
  Graph graph("g");
  const Id a = AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 8);
  graph.MarkOutput(AddConv(graph, "b", AddRelu(graph, "r", a), 8));
  const FusablePair pair = FusablePairs(graph)[0];
  Record record = SyntheticRecord(pair.workload.main_conv(), 8, 1, 5);
  record.workload = pair.workload;
  Plan plan;
  plan.nodes = {Chosen("a", graph, 1, 1, 1),
                {"r", "Relu", {}, std::nullopt, 7, "b"},
                {"b", "Conv", record.layouts, record, 0}};
  TelltaleCosts costs;
  PricePlan(graph, costs, plan);
  ASSERT_EQ(plan.transforms.size(), 1u);  // a to what the fused kernel reads; r has no tensor
  EXPECT_EQ(plan.transforms[0].tensor, "a");
  EXPECT_EQ(plan.transforms[0].to, Layout::Blocked(8));
  EXPECT_DOUBLE_EQ(plan.predicted_seconds, 1 + 5 + 1000);
  EXPECT_EQ(plan.nodes[1].predicted_seconds, 0);
}

TEST(GraphTune, IsDeterministic) {
  const Graph graph = RandomNetwork(77, 12);
  const auto log = SyntheticLog(graph, {1, 8, 16}, 5);
  SyntheticCosts costs(3);
  const Plan a = GraphTune(graph, log, costs, SyntheticOptions()).plan;
  const Plan b = GraphTune(graph, log, costs, SyntheticOptions()).plan;
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(a.nodes[i].layouts, b.nodes[i].layouts);
}

TEST(GraphTune, NamesEveryWorkloadTheLogLacksAndTheCommand) {
  Graph graph("net");
  const Id a = AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 16);
  const Id b = AddConv(graph, "b", a, 16, 3), c = AddConv(graph, "c", b, 24);
  graph.MarkOutput(c);
  std::vector<Record> log = SyntheticLog(graph, {1, 8}, 1);
  const std::string b_workload = graph.As<ConvOp>(b)->Signature().substr(5);
  const std::string c_workload = graph.As<ConvOp>(c)->Signature().substr(5);
  for (Record& record : log) {
    if (WorkloadToString(record.workload) == b_workload) record.conditions.threads = 1;
    if (WorkloadToString(record.workload) == c_workload) record.target.model = "another";
  }
  SyntheticCosts costs(1);
  GraphTuneOptions options = SyntheticOptions();
  options.model = "net.onnx";
  try {
    GraphTune(graph, log, costs, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoCandidate);
    EXPECT_THAT(error.what(), HasSubstr("2 of 3 workloads"));
    EXPECT_THAT(error.what(), HasSubstr(b_workload));
    EXPECT_THAT(error.what(), HasSubstr(c_workload));
    EXPECT_THAT(error.what(), HasSubstr("`tilesmith tune net.onnx -o LOG`"));
  }
  EXPECT_EQ(costs.asked, 0);
  options.allow_defaults = true;
  const Plan plan = GraphTune(graph, log, costs, options).plan;
  EXPECT_EQ(plan.certificate, "optimal, but 2 workloads run their unmeasured default schedule");
  EXPECT_EQ(plan.nodes[1].record->tuner, "default");
  EXPECT_EQ(plan.nodes[1].predicted_seconds, 0);
}

TEST(GraphTune, RefusesWhatTheSolverRefusesAndUnknownSolvers) {
  const Graph graph = RandomNetwork(3, 8);
  const auto log = SyntheticLog(graph, {1, 8}, 1);
  SyntheticCosts costs(1);
  GraphTuneOptions options = SyntheticOptions();
  options.limits.table_entries = 0;
  options.solver = "dp";
  EXPECT_THROW(GraphTune(graph, log, costs, options), Error);
  options.solver = "guess";
  EXPECT_THROW(GraphTune(graph, log, costs, options), Error);
}

TEST(GraphTune, UniformSchedulesKeepToOneLayoutAndCostNoLess) {
  const Graph graph = RandomNetwork(21, 12);
  const auto log = SyntheticLog(graph, {1, 8, 16}, 2);
  SyntheticCosts costs(9);
  const NetworkProblem problem(graph, log, costs, SyntheticOptions());
  const Plan best = GraphTune(problem).plan;
  const Plan uniform = GraphTune(problem.Restricted({.uniform = Layout::Blocked(8)})).plan;
  for (const NodePlan& node : uniform.nodes) {
    if (node.record) {
      EXPECT_EQ(node.layouts, (LayoutPair{Layout::Blocked(8), Layout::Blocked(8)})) << node.node;
    } else {
      EXPECT_TRUE(node.layouts.in == Layout::Blocked(8) || node.layouts.in.is_nchw()) << node.node;
    }
  }
  EXPECT_GE(uniform.predicted_seconds, best.predicted_seconds);
  EXPECT_EQ(uniform.certificate, "optimal among schedules uniformly in NCHW8c");
}

// What its convs cost in context: more or less than the log says.
Corrections RandomCorrections(const Plan& plan, uint64_t seed) {
  Corrections corrections;
  for (const NodePlan& node : plan.nodes)
    if (node.record)
      corrections.LearnConv(node.node, *node.record,
                            node.record->seconds * (0.25 + 4 * HashFraction(node.node, seed)));
  return corrections;
}

TEST(NetworkProblem, SolvesAgainAsAFreshOneDoes) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = RandomNetwork(seed, 4 + static_cast<int>(seed % 8));
    const std::vector<Record> log = SyntheticLog(graph, {1, 8, 16}, seed);
    SyntheticCosts costs(seed);
    const NetworkProblem problem(graph, log, costs, SyntheticOptions());
    const auto expect_same = [&](const Plan& again, const Plan& fresh) {
      EXPECT_TRUE(SameSchedules(again, fresh));
      EXPECT_EQ(again.predicted_seconds, fresh.predicted_seconds);
      EXPECT_EQ(again.certificate, fresh.certificate);
    };
    const Plan first = GraphTune(problem).plan;
    const Corrections corrections = RandomCorrections(first, seed);
    const Plan corrected = GraphTune(problem, corrections).plan;
    changed += !SameSchedules(first, corrected);
    expect_same(corrected, GraphTune({graph, log, costs, SyntheticOptions()}, corrections).plan);
    const Restriction uniform{.uniform = Layout::Blocked(8)}, fastest{.fastest_records = true};
    const NetworkProblem restricted = problem.Restricted(uniform);
    expect_same(GraphTune(restricted.Restricted(fastest)).plan, GraphTune(problem.Restricted(fastest)).plan);
    expect_same(GraphTune(restricted.Restricted({})).plan, first);
    expect_same(GraphTune(problem).plan, first);
  }
  EXPECT_GT(changed, 10);
}

TEST(GraphTune, ReportsProgressOverDistinctCosts) {
  const Graph graph = RandomNetwork(5, 8);
  SyntheticCosts costs(1);
  GraphTuneOptions options = SyntheticOptions();
  std::vector<size_t> seen;
  size_t total = 0;
  options.progress = [&](size_t done, size_t of) {
    seen.push_back(done);
    total = of;
  };
  GraphTune(graph, SyntheticLog(graph, {1, 8}, 1), costs, options);
  ASSERT_EQ(seen.size(), total + 1);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i);
}

// Bounds the work, not the time: a million table entries take some ten milliseconds.
TEST(GraphTune, SolvesTheBuiltInNetworksExactlyAndQuickly) {
  for (const char* name : {"resnet50", "densenet121", "inception_v3", "mobilenet_v2"}) {
    SCOPED_TRACE(name);
    const Graph graph = OptimizeGraph(BuildNetwork(name));
    const auto log = SyntheticLog(graph, {1, 8, 16, 32, 0}, 1);
    SyntheticCosts costs(2);
    const GraphTuneResult result = GraphTune(graph, log, costs, SyntheticOptions());
    EXPECT_EQ(result.plan.certificate, "optimal");
    EXPECT_LT(result.stats.total_entries, 20000000u);
    RecordProperty(std::string(name) + "_entries", std::to_string(result.stats.total_entries));
  }
}

TEST(FindCandidates, PrefersColdRecordsFullMeasurementsAndTheLastOfAConfig) {
  Graph graph("net");
  graph.MarkOutput(AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 16));
  const auto& conv = *graph.As<ConvOp>(1);
  auto find = [&](const std::vector<Record>& log) {
    return FindCandidates(graph, log, SyntheticCpu(), 2).at(WorkloadToString(conv.workload()));
  };
  auto record = [&](int64_t in, int64_t out, double seconds) {
    return SyntheticRecord(conv.workload(), in, out, seconds);
  };
  EXPECT_TRUE(find({}).empty());
  // NHWC of 8 channels is NCHW8c: one pair.
  EXPECT_EQ(find({record(8, 8, 2), record(0, 8, 1), record(8, 16, 3)}).size(), 2u);
  EXPECT_EQ(find({record(8, 8, 2), record(0, 8, 1)})[0].seconds, 1);
  // The last of one config counts, but an early-stopped one replaces nothing.
  EXPECT_EQ(find({record(8, 8, 1), record(8, 8, 2)})[0].seconds, 2);
  Record stopped = record(8, 8, 0.5);
  stopped.early_stopped = true;
  EXPECT_EQ(find({record(8, 8, 2), stopped})[0].seconds, 2);
  EXPECT_EQ(find({stopped})[0].seconds, 0.5);
  Record cold = record(8, 16, 5);
  cold.conditions.cold_weights = true;
  EXPECT_EQ(find({record(8, 8, 1), cold}).size(), 1u);
  // What no template accepts any more.
  Record failed = record(8, 8, 1), foreign = failed, odd = failed, moved = failed;
  failed.status = TrialStatus::kWrongAnswer;
  foreign.template_name = "of_the_future";
  odd.config.Set("ic_block", 7);
  moved.layouts.out = Layout::Nchw();
  EXPECT_TRUE(find({failed, foreign, odd, moved}).empty());
}

TEST(BuildProblem, ViewsAndFlatTensorsArePlain) {
  Graph graph("net");
  const Id a = AddConv(graph, "a", AddInput(graph, {1, 8, 4, 4}), 16);
  const Id flat = graph.Add("flat", std::make_shared<ViewOp>("Flatten", Shape{1, 256}), {a});
  const Id relu = AddRelu(graph, "relu", flat);
  graph.MarkOutput(relu);
  const auto log = SyntheticLog(graph, {8}, 1);
  const Candidates candidates = FindCandidates(graph, log, SyntheticCpu(), 2);
  SyntheticCosts costs(1);
  Crossings crossings(graph, costs);
  const BuiltProblem built =
      BuildProblem(DealAll(candidates, crossings), LayoutsOf(graph, candidates), crossings);
  const std::vector<std::optional<Layout>> plain = {Layout::Nchw()};
  EXPECT_EQ(built.nodes[flat].in_layouts, plain);
  EXPECT_EQ(built.nodes[relu].in_layouts, plain);
  const Plan plan = GraphTune(graph, log, costs, SyntheticOptions()).plan;
  ASSERT_EQ(plan.transforms.size(), 2u);
  EXPECT_EQ(plan.transforms[0].tensor, "input");
  EXPECT_EQ(plan.transforms[1].tensor, "a");
  EXPECT_EQ(plan.nodes[1].predicted_seconds, 0);
}

}  // namespace
}  // namespace tilesmith
