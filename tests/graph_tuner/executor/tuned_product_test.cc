// Products of two inputs as tasks: their records in plans, in files, and in what the executor runs.
#include <gmock/gmock.h>

#include "graph_tuner/check/network_check.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/problem/graph_tune.h"
#include "graph_tuner/refine/rivals.h"
#include "layouts/base/error.h"
#include "ops/dense/tasks.h"
#include "ops/movement/view.h"
#include "templates/matmul/config.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

constexpr const char* kWorkload = "mb3m20n20k8tb1";

// y = relu(tokens * tokens^T) of three heads, the tokens being a conv's output seen otherwise.
Graph SomeProduct() {
  Graph graph("product");
  const ConvWorkload w = ParseWorkload("ic8ih6iw10oc8kh3ph1");
  auto weights = std::make_shared<Tensor>(w.weights_shape());
  FillUniform({weights->floats(), static_cast<size_t>(weights->size())}, 7);
  const auto x = graph.Add("x", std::make_shared<InputOp>(w.input_shape()), {});
  const auto conv = graph.Add("conv", std::make_shared<ConvOp>(w, weights, nullptr), {x});
  const auto tokens = graph.Add("tokens", std::make_shared<ViewOp>("Reshape", Shape{1, 3, 20, 8}), {conv});
  const MatMulParams params{.b = {{}, {0, 1, 3, 2}}, .activation = ParseActivation("relu")};
  graph.MarkOutput(graph.Add("y", std::make_shared<MatMulOp>(params), {tokens, tokens}));
  return graph;
}

Record RecordOf(const std::string& workload, int64_t tile_rows, double seconds) {
  Record record;
  record.target = TestCpu();
  record.workload = ParseWorkload(workload);
  record.template_name = MatMulTemplate().Name();
  record.config = MatMulTemplate().Default(record.workload, record.target);
  record.config.Set("tile_rows", tile_rows);
  record.conditions.threads = 2;
  record.seconds = seconds;
  record.sample_seconds = {seconds};
  return record;
}

struct Tuned {
  Graph graph = SomeProduct();
  std::vector<Record> records = {RecordOf(kWorkload, 2, 2e-6), RecordOf(kWorkload, 1, 1e-6),
                                 RecordOf("mb3m20n20k8", 3, 1e-7)};
  Plan plan;

  explicit Tuned(double seconds_per_crossed_byte = 0) {
    SyntheticCosts costs(1);
    costs.seconds_per_crossed_byte = seconds_per_crossed_byte;
    GraphTuneOptions options;
    options.cpu = TestCpu();
    options.threads = 2;
    options.allow_defaults = true;
    plan = GraphTune(graph, records, costs, options).plan;
  }
  NodePlan& product() { return *std::ranges::find(plan.nodes, "y", &NodePlan::node); }
};

TEST(TunedProduct, HasTheFastestRecordOfItsWorkload) {
  Tuned tuned;
  EXPECT_EQ(WorkloadToString(*TaskOf(tuned.graph, *tuned.graph.Find("y"))), kWorkload);
  ASSERT_TRUE(tuned.product().record.has_value());
  EXPECT_EQ(tuned.product().record->config.Get("tile_rows"), 1);
  EXPECT_NEAR(tuned.product().predicted_seconds, 1e-6, 1e-12);
}

TEST(TunedProduct, MayWaitForWhatOthersWrote) {
  Tuned tuned(1e-9);
  ASSERT_TRUE(tuned.product().record.has_value());
  EXPECT_GT(tuned.product().predicted_seconds, 1e-6);
}

TEST(TunedProduct, RunsAsPlanned) {
  const Tuned tuned;
  const std::vector<Tensor> inputs = RandomInputs(tuned.graph, 3);
  const std::vector<Tensor> expected = RunReference(tuned.graph, Pointers(inputs));
  Executor executor(tuned.graph, tuned.plan, OpenDevice(TestCpu(), 2));
  ExpectOutputs(executor, tuned.graph, inputs, expected, 1e-5);
  EXPECT_EQ(CheckNetwork(executor, tuned.graph, tuned.plan, TestCpu(), inputs).wrong, "");
}

TEST(TunedProduct, IsInPlanFiles) {
  Tuned tuned;
  const TemporaryDirectory dir;
  const std::string path = dir.File("plan.jsonl");
  WritePlan(path, tuned.plan);
  Plan read = ReadPlan(path);
  EXPECT_TRUE(SameSchedules(read, tuned.plan));
  CheckPlan(read, tuned.graph, TestCpu(), 2, false);
  // Plans made before there were such records have none.
  tuned.product().record.reset();
  CheckPlan(tuned.plan, tuned.graph, TestCpu(), 2, false);
}

TEST(TunedProduct, RefusesRecordsThatAreNotIts) {
  const auto refusal = [](const Record& record) -> std::string {
    Tuned tuned;
    tuned.product().record = record;
    try {
      CheckPlan(tuned.plan, tuned.graph, TestCpu(), 2, false);
      Executor(tuned.graph, tuned.plan, OpenDevice(TestCpu(), 2));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(RecordOf("mb3m20n20k8", 1, 1)),
              testing::HasSubstr("in the plan, mb3m20n20k8tb1 in the network"));
  EXPECT_THAT(refusal(RecordOf(kWorkload, 99, 1)), testing::HasSubstr("tile_rows=99"));
  Record other = RecordOf(kWorkload, 1, 1);
  other.template_name = "portable";
  EXPECT_THAT(refusal(other), testing::HasSubstr("template portable computes no products"));
}

}  // namespace
}  // namespace tilesmith
