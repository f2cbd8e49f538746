// Random models (tests/support/ops/random_model.h): imported, optimized and executed they compute what their
// nodes' references do one by one, in the schedules without tuning of every instruction set.
//
// TILESMITH_RANDOM_MODELS=N takes N of them, from seed TILESMITH_RANDOM_SEED (default 0) on.
// TILESMITH_MODELS_OUT=FOLDER writes them there instead, for tests/tools/ort/random_models.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

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

void CheckModel(uint64_t seed) {
  constexpr double kTolerance = 1e-4;
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
  ExpectOutputs(executor, {graph, inputs, expected, plan.ends}, kTolerance);
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
