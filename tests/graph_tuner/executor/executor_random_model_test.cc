// Random models (tests/support/ops/random_model.h): imported, optimized and executed they compute what their
// nodes' references do one by one, in the schedules without tuning of every instruction set and in mixtures
// of layouts. Some are of sizes that may be 0, others of sizes that are all equal.
//
// TILESMITH_RANDOM_MODELS=N takes N of each, from seed TILESMITH_RANDOM_SEED (default 0) on.
// TILESMITH_MODELS_OUT=FOLDER writes them there instead, for tests/tools/ort/random_models.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "graph_tuner/check/network_check.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/base/text_file.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/support/ops/random_model.h"

namespace tilesmith {
namespace {

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Networks that amplify roundings may be off by more than kAllowedDifference: by what theirs become, once in
// what is executed and once in what the passes made of the model.
double Tolerance(Executor& executor, const Graph& graph, const Plan& plan, const Target& cpu,
                 const std::vector<Tensor>& inputs) {
  const NetworkCheck check = CheckNetwork(executor, graph, plan, cpu, inputs);
  EXPECT_EQ(check.wrong, "");
  return 2 * check.allowed;
}

// Ends, and ops without a schedule of their own, in any layouts that they run in.
void MixLayouts(const Graph& graph, TestRandom& random, Plan& plan) {
  const std::vector<Layout> layouts = {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8),
                                       Layout::Blocked(3)};
  plan.ends = {random.Pick(layouts), random.Pick(layouts)};
  for (NodePlan& planned : plan.nodes) {
    const Graph::NodeId id = graph.Find(planned.node).value();
    const Op& op = *graph.node(id).op;
    const Layout layout = random.Pick(layouts);
    if (planned.record || op.IsView() || graph.Inputs(id).empty() || !NodeRunsIn(graph, id, layout)) continue;
    planned.layouts = NodeLayouts(graph, id, layout, layout);
  }
}

void CheckModel(uint64_t seed, RandomSizes sizes) {
  TestRandom random(seed);
  const Graph imported = RandomModel(random, sizes).Import();
  const Target cpu = CapIsa(TestCpu(), random.Pick(std::span(kTestIsas)));
  const std::vector<Tensor> inputs = RandomInputs(imported, seed);
  const std::vector<Tensor> expected = RunReference(imported, Pointers(inputs));
  const Graph graph = OptimizeGraph(imported);
  const int threads = random.Integer(1, 4) == 1 ? 2 : 1;
  Plan plan = HeuristicPlan(graph, cpu, threads);
  if (random.Integer(1, 3) == 1) MixLayouts(graph, random, plan);
  Executor executor(graph, plan, OpenDevice(cpu, threads));
  const ExpectedRun run{graph, inputs, expected, plan.ends};
  double tolerance = kAllowedDifference;
  if (std::ranges::max(OutputDifferences(executor, run, InputsInTheirLayouts(run))) > tolerance) {
    tolerance = Tolerance(executor, graph, plan, cpu, inputs);
    std::cout << "seed " << seed << ": held to " << tolerance << " of the largest\n";
  }
  ExpectOutputs(executor, run, tolerance);
}

class RandomModels : public testing::TestWithParam<RandomSizes> {};

TEST_P(RandomModels, ComputeTheReference) {
  const uint64_t first = NumberFrom("TILESMITH_RANDOM_SEED", 0);
  const uint64_t count = NumberFrom("TILESMITH_RANDOM_MODELS", 120);
  const char* folder = std::getenv("TILESMITH_MODELS_OUT");
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("TILESMITH_RANDOM_SEED=" + std::to_string(seed));
    if (folder != nullptr) {
      TestRandom random(seed);
      WriteTextFile(std::string(folder) + "/" + std::to_string(seed) + ".onnx",
                    RandomModel(random, GetParam()).Bytes());
      continue;
    }
    ASSERT_NO_THROW(CheckModel(seed, GetParam()));
    if (HasFailure()) return;
  }
}

// On a reproducible target: any instruction set, number of threads and mixture of layouts.
void CheckBits(uint64_t seed, RandomSizes sizes) {
  TestRandom random(seed);
  const Graph graph = OptimizeGraph(RandomModel(random, sizes).Import());
  const std::vector<Tensor> inputs = RandomInputs(graph, seed);
  std::vector<Tensor> expected;
  for (const Isa isa : kTestIsas) {
    if (isa > TestCpu().isa) continue;
    const Target cpu = Reproducible(CapIsa(TestCpu(), isa));
    for (const bool mixes : {false, true}) {
      const int threads = random.Pick(std::vector<int>{1, 2, 3, 4, 7});
      Plan plan = HeuristicPlan(graph, cpu, threads);
      if (mixes) MixLayouts(graph, random, plan);
      plan.ends = {};
      Executor executor(graph, plan, OpenDevice(cpu, threads));
      std::vector<Tensor> outputs = UnwrittenOutputs(graph);
      executor.Run(Pointers(inputs), Pointers(outputs));
      if (expected.empty()) expected = outputs;
      for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(SameBits({outputs[i]}, {expected[i]}))
            << graph.node(graph.outputs()[i]).name << " in " << IsaName(cpu.isa) << ", " << threads
            << " threads, " << (mixes ? "mixed layouts" : "by default");
    }
  }
}

TEST_P(RandomModels, AreTheSameBitsOnReproducibleTargets) {
  const uint64_t first = NumberFrom("TILESMITH_RANDOM_SEED", 0);
  const uint64_t count = NumberFrom("TILESMITH_RANDOM_MODELS", 60);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("TILESMITH_RANDOM_SEED=" + std::to_string(seed));
    CheckBits(seed, GetParam());
  }
}

std::string NameOf(const testing::TestParamInfo<RandomSizes>& info) {
  constexpr const char* kNames[] = {"mixed", "zero", "equal"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Sizes, RandomModels,
                         testing::Values(RandomSizes::kMixed, RandomSizes::kSomeZero, RandomSizes::kAllEqual),
                         NameOf);

}  // namespace
}  // namespace tilesmith
