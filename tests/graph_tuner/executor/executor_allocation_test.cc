// Running allocates nothing.
#include <gtest/gtest.h>

#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/movement/concat.h"
#include "ops/movement/view.h"
#include "ops/pool/pool.h"
#include "tests/graph_tuner/support/region_testing.h"
#include "tests/support/allocations/counting_allocator.h"

namespace tilesmith {
namespace {

TEST(ExecutorAllocation, RunningAllocatesNothing) {
  Graph graph("g");
  const auto x = graph.Add("x", std::make_shared<InputOp>(Shape{2, 3, 12, 12}), {});
  const auto a = AddFilledConv(graph, "a", {x}, 16, 3);
  const auto b = AddFilledConv(graph, "b", {a}, 16);
  const auto c = AddFilledConv(graph, "c", {b, a}, 16, 3);
  const auto cat = graph.Add("cat", std::make_shared<ConcatOp>(1), {c, b});
  const auto relu =
      graph.Add("relu", std::make_shared<ActivationOp>(Activation{ActivationKind::kHardSwish}), {cat});
  const auto pool = graph.Add("pool", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {relu});
  const auto flat = graph.Add("flat", std::make_shared<ViewOp>("Flatten", Shape{0, -1}), {pool});
  graph.MarkOutput(graph.Add("softmax", std::make_shared<SoftmaxOp>(1, 1), {flat}));
  const Target cpu = TestCpu();
  const Plan banded = WithRegion(WithRegion(RowsPlan(graph, cpu, 2), {"a", "b"}, 2), {"cat", "relu"}, 1);
  for (const Plan& plan : {HeuristicPlan(graph, cpu, 2), UniformPlan(graph, cpu, 1), banded}) {
    Executor executor(graph, plan, OpenDevice(cpu, 2));
    const std::vector<Tensor> inputs = RandomInputs(graph, 3);
    std::vector<Tensor> outputs = UnwrittenOutputs(graph);
    const auto input_pointers = Pointers(inputs);
    const auto output_pointers = Pointers(outputs);
    const int64_t before = AllocationsSoFar();
    executor.Run(input_pointers, output_pointers);  // the very first run, too
    executor.Run(input_pointers, output_pointers);
    EXPECT_EQ(AllocationsSoFar() - before, 0);
    EXPECT_LE(LargestDifference(outputs[0], RunReference(graph, Pointers(inputs))[0]), 1e-5);
    EXPECT_GT(AllocationsSoFar() - before, 0) << "allocations are not counted";
  }
}

}  // namespace
}  // namespace tilesmith
