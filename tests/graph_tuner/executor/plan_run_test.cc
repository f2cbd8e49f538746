// From a log through the graph tuner to the executor: whatever plan made-up prices lead to, the network
// computes the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph_tuner/check/network_check.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/problem/graph_tune.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/executor_testing.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/random_config.h"

namespace tilesmith {
namespace {

// Some random configs of every template that can run here, at random prices.
void AddRandomRecords(const ConvWorkload& workload, const Target& cpu, TestRandom& random,
                      std::vector<Record>& records) {
  constexpr int kConfigsPerTemplate = 6;
  for (const ConvTemplate* conv_template : ConvTemplates()) {
    if (!conv_template->Supports(workload, cpu).ok) continue;
    const ConfigSpace space = conv_template->Space(workload, cpu);
    for (int i = 0; i < kConfigsPerTemplate; ++i) {
      const std::optional<Config> config = RandomValidConfig(space, random, 5000);
      if (!config) continue;
      Record record;
      record.target = cpu;
      record.workload = workload;
      record.template_name = conv_template->Name();
      record.config = *config;
      record.layouts = conv_template->Layouts(workload, *config);
      record.conditions.threads = 2;
      record.seconds =
          1e-6 * static_cast<double>(ElementCount(workload.output_shape())) * random.Uniform(1, 2);
      record.sample_seconds = {record.seconds};
      records.push_back(std::move(record));
    }
  }
}

// For every conv, and for every pair that a template can fuse, which costs no more than one conv.
std::vector<Record> RandomLog(const Graph& graph, const Target& cpu, uint64_t seed) {
  TestRandom random(seed);
  std::vector<Record> records;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const auto* conv = graph.As<ConvOp>(id);
    if (conv != nullptr) AddRandomRecords(conv->workload(), cpu, random, records);
  }
  for (const FusablePair& pair : FusablePairs(graph)) AddRandomRecords(pair.workload, cpu, random, records);
  return records;
}

// Every step is an entry of the plan, and together they are charged what the plan is.
void ExpectPlannedSteps(Executor& executor, const Graph& graph, const Plan& plan,
                        const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs = UnwrittenOutputs(graph, plan.ends.outputs);
  const auto output_pointers = Pointers(outputs);
  double charged = 0;
  for (const StepProfile& step : executor.Profile(Pointers(inputs), output_pointers, 1)) {
    EXPECT_TRUE(step.planned) << step.name;
    charged += step.predicted_seconds;
  }
  EXPECT_NEAR(charged, plan.predicted_seconds, 1e-9 * plan.predicted_seconds);
}

class PlanRun : public testing::TestWithParam<std::pair<const char*, int64_t>> {};

TEST_P(PlanRun, EveryPlanComputesTheReference) {
  const auto [name, size] = GetParam();
  const Target cpu = TestCpu();
  const Graph graph = OptimizeGraph(BuildNetwork(name, {.batch = 2, .height = size, .width = size}));
  const std::vector<Tensor> inputs = RandomInputs(graph, 3);
  const std::vector<Tensor> expected = RunReference(graph, Pointers(inputs));
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(testing::Message() << name << " seed " << seed);
    SyntheticCosts costs(seed);
    GraphTuneOptions options;
    options.cpu = cpu;
    options.threads = 2;
    const Plan plan = GraphTune(graph, RandomLog(graph, cpu, seed), costs, options).plan;
    EXPECT_EQ(plan.certificate, "optimal");
    const std::vector<FusablePair> pairs = FusablePairs(graph);
    const bool can_fuse = std::ranges::any_of(pairs, [&](const FusablePair& pair) {
      const auto templates = ConvTemplates();
      return std::ranges::any_of(templates, [&](auto* t) { return t->Supports(pair.workload, cpu).ok; });
    });
    EXPECT_EQ(!FindFusedNodes(graph, plan).empty(), can_fuse);
    Executor executor(graph, plan, OpenDevice(cpu, 2));
    ExpectOutputs(executor, graph, inputs, expected, 1e-4);
    ExpectPlannedSteps(executor, graph, plan, inputs);
    if (seed == 1) {
      const NetworkCheck check = CheckNetwork(executor, graph, plan, cpu, inputs);
      EXPECT_EQ(check.wrong, "");
      EXPECT_EQ(check.allowed, kAllowedDifference);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PlanRun,
                         testing::Values(std::pair("resnet18", 64), std::pair("squeezenet1_1", 64),
                                         std::pair("mobilenet_v2", 64), std::pair("densenet121", 32),
                                         std::pair("inception_v3", 75), std::pair("unet", 32)),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace tilesmith
