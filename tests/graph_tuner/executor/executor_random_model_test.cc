// Random models (tests/support/ops/random_model.h): imported, optimized and executed they compute what their
// nodes' references do one by one, in the schedules without tuning of every instruction set.
//
// TILESMITH_RANDOM_MODELS=N takes N of them, from seed TILESMITH_RANDOM_SEED (default 0) on.
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

void CheckModel(uint64_t seed) {
  TestRandom random(seed);
  const Graph imported = RandomModel(random).Import();
  const Target cpu =
      CapIsa(TestCpu(), random.Pick(std::vector<Isa>{Isa::kPortable, Isa::kAvx2, Isa::kAvx512}));
  const std::vector<Tensor> inputs = RandomInputs(imported, seed);
  const std::vector<Tensor> expected = RunReference(imported, Pointers(inputs));
  const Graph graph = OptimizeGraph(imported);
  const int threads = random.Integer(1, 4) == 1 ? 2 : 1;
  const Plan plan = HeuristicPlan(graph, cpu, threads);
  Executor executor(graph, plan, OpenDevice(cpu, threads));
  const ExpectedRun run{graph, inputs, expected, plan.ends};
  double tolerance = kAllowedDifference;
  if (std::ranges::max(OutputDifferences(executor, run, InputsInTheirLayouts(run))) > tolerance) {
    tolerance = Tolerance(executor, graph, plan, cpu, inputs);
    std::cout << "seed " << seed << ": held to " << tolerance << " of the largest\n";
  }
  ExpectOutputs(executor, run, tolerance);
}

TEST(RandomModels, ComputeTheReference) {
  const uint64_t first = NumberFrom("TILESMITH_RANDOM_SEED", 0);
  const uint64_t count = NumberFrom("TILESMITH_RANDOM_MODELS", 120);
  const char* folder = std::getenv("TILESMITH_MODELS_OUT");
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("TILESMITH_RANDOM_SEED=" + std::to_string(seed));
    if (folder != nullptr) {
      TestRandom random(seed);
      WriteTextFile(std::string(folder) + "/" + std::to_string(seed) + ".onnx", RandomModel(random).Bytes());
      continue;
    }
    CheckModel(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilesmith
