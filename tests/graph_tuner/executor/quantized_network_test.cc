// Networks on bytes: planned, in every layout, and computed bit for bit as the reference does.
#include <gmock/gmock.h>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "ops/passes/passes.h"
#include "templates/direct_int8/config.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/ops/quantized_net.h"

namespace tilesmith {
namespace {

const NodePlan& PlanOf(const Plan& plan, const std::string& type) {
  return *std::ranges::find(plan.nodes, type, &NodePlan::op_type);
}

void ExpectRuns(const Graph& graph, const Plan& plan, const Target& cpu) {
  for (const uint64_t seed : {1, 2, 3}) {
    const std::vector<Tensor> inputs = RandomInputs(graph, seed);
    const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
    for (const int threads : {1, 2}) {
      Plan threaded = plan;
      threaded.threads = threads;
      Executor executor(graph, threaded, OpenDevice(cpu, threads));
      std::vector<Tensor> outputs = UnwrittenOutputs(graph);
      executor.Run(Pointers(inputs), Pointers(outputs));
      EXPECT_EQ(LargestDifference(outputs[0], expected[0]), 0) << "seed " << seed;
    }
  }
}

size_t PackedInSteps(const CompiledNetwork& network) {
  size_t bytes = 0;
  for (const StepProfile& step : network.steps) bytes += static_cast<size_t>(step.packed_weight_bytes);
  return bytes;
}

TEST(QuantizedNetwork, RunsInChannelsLastWhereNothingHasBeenMeasured) {
  for (const int64_t channels : {8, 12, 33}) {
    const Graph graph = OptimizeGraph(QuantizedBlock(channels));
    const Plan plan = HeuristicPlan(graph, TestCpu(), 1);
    for (const char* type : {"QuantizedConv", "QuantizedMaxPool"})
      EXPECT_EQ(PlanOf(plan, type).layouts.out, Layout::Nhwc(DataType::kU8)) << type;
    ExpectRuns(graph, plan, TestCpu());
    // Its weights count, which a template packs by its default.
    const auto network = CompileNetwork(graph, plan, OpenDevice(TestCpu(), 1));
    EXPECT_GE(PackedWeightBytes(*network), static_cast<size_t>(channels));
    EXPECT_EQ(PackedWeightBytes(*network), PackedInSteps(*network));
  }
}

TEST(QuantizedNetwork, TheGraphTunerChoosesItsLayouts) {
  const Graph graph = OptimizeGraph(QuantizedBlock(12));
  SyntheticCosts costs(1);
  const Plan plan = GraphTune(graph, {}, costs, SyntheticOptions()).plan;
  EXPECT_EQ(PlanOf(plan, "QuantizedConv").layouts.out.type(), DataType::kU8);
  ExpectRuns(graph, plan, SyntheticCpu());
}

// A record of each pair of layouts for each convolution, some faster than others.
std::vector<Record> ByteRecords(const Graph& graph, const Target& cpu, int threads) {
  std::vector<Record> records;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = graph.As<ConvolutionOp>(id);
    if (conv == nullptr || !conv->workload().bytes) continue;
    const ConvWorkload& w = conv->workload();
    const ConvTemplate& conv_template = DirectInt8Template();
    const ConfigSpace space = conv_template.Space(w, cpu);
    for (const LayoutPair& pair : conv_template.LayoutPairs(w, space)) {
      Record record;
      record.target = cpu;
      record.workload = w;
      record.template_name = conv_template.Name();
      record.config = *conv_template.WithLayouts(w, space, conv_template.Default(w, cpu), pair);
      record.layouts = pair;
      record.conditions.threads = threads;
      record.seconds = 1e-6 * static_cast<double>(records.size() % 7 + 1);
      records.push_back(std::move(record));
    }
  }
  return records;
}

TEST(QuantizedNetwork, ConvolutionsUseTheirRecords) {
  for (const int64_t channels : {8, 12, 33}) {
    const Graph graph = OptimizeGraph(QuantizedBlock(channels));
    SyntheticCosts costs(1);
    const GraphTuneOptions options = SyntheticOptions();
    const std::vector<Record> records = ByteRecords(graph, options.cpu, options.threads);
    const Plan plan = GraphTune(graph, records, costs, options).plan;
    const NodePlan& conv = PlanOf(plan, "QuantizedConv");
    ASSERT_TRUE(conv.record.has_value());
    EXPECT_EQ(conv.record->template_name, "direct_int8");
    EXPECT_EQ(conv.layouts.out.type(), DataType::kU8);
    ExpectRuns(graph, plan, options.cpu);
  }
}

}  // namespace
}  // namespace tilesmith
