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
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/temporary_files.h"

namespace tilesmith::bf16_network {
namespace {

using NodeId = Graph::NodeId;

NodeId AddRandomConv(Graph& graph, const std::string& name, const std::string& workload,
                     std::vector<NodeId> inputs) {
  const ConvWorkload w = ParseWorkload(workload);
  const auto random = [&](Shape shape, uint64_t seed, float scale) {
    auto tensor = std::make_shared<Tensor>(std::move(shape));
    FillUniform({tensor->floats(), static_cast<size_t>(tensor->size())}, seed, -scale, scale);
    return tensor;
  };
  const float scale = std::sqrt(6.0f / static_cast<float>(w.ic * w.kh * w.kw));
  return graph.Add(name,
                   std::make_shared<ConvOp>(w, random(w.weights_shape(), graph.size(), scale),
                                            w.post.bias ? random({w.oc}, graph.size() + 99, 0.1f) : nullptr),
                   std::move(inputs));
}

// Every kind of reader and writer of bf16: convs, a residual, pools, a concat, an op without any such kernel.
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

// Records of default configs, in f32 and in bf16 with every pair of types; bf16 is twice as fast.
std::vector<Record> Log(const Graph& graph, const Target& cpu) {
  std::vector<Record> records;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = dynamic_cast<const ConvOp*>(graph.node(id).op.get());
    if (conv == nullptr) continue;
    Record record = DefaultRecord(conv->workload(), cpu, 2);
    record.seconds = 1e-3;
    record.sample_seconds = {record.seconds};
    records.push_back(record);
    const ConvTemplate& narrow = *Bf16ConvTemplates()[0];
    if (!narrow.Supports(conv->workload(), cpu).ok) continue;
    for (const DataType in : {DataType::kBf16, DataType::kF32}) {
      for (const DataType out : {DataType::kBf16, DataType::kF32}) {
        record.template_name = narrow.Name();
        record.config = narrow.Default(conv->workload(), cpu);
        record.config.Set("in_type", static_cast<int64_t>(in));
        record.config.Set("out_type", static_cast<int64_t>(out));
        if (in == DataType::kF32) record.config.Set("oc_inner", 1);
        if (narrow.Space(conv->workload(), cpu).WhyInvalid(record.config) != "") continue;
        record.layouts = narrow.Layouts(conv->workload(), record.config);
        record.seconds = 0.5e-3;
        record.sample_seconds = {record.seconds};
        records.push_back(record);
      }
    }
  }
  return records;
}

class Bf16Network : public testing::Test {
 protected:
  void SetUp() override {
    if (!DetectCpu().bf16) GTEST_SKIP() << "needs AVX-512 BF16";
    options_ = SyntheticOptions();
    options_.cpu = DetectCpu();
    options_.precision = Precision::kMixed;
    graph_ = MakeNetwork();
    log_ = Log(graph_, options_.cpu);
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
  for (uint64_t seed = 0; seed < 12; ++seed) {
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
