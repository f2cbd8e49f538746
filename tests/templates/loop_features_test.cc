#include "templates/base/loop_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "templates/base/conv_template.h"
#include "tests/support/random_workload.h"
#include "tests/support/template_cpu.h"

namespace tilesmith {
namespace {

TEST(LoopFeaturesTest, EveryTemplateHasThemForEveryConfig) {
  std::set<std::string_view> met;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TestRandom random(seed);
    const ConvWorkload workload = seed % 16 == 0              ? RandomProduct(random)
                                  : seed % 16 == 1            ? RandomOrderedByTiles(random)
                                  : random.Integer(1, 4) == 1 ? RandomFusedWorkload(random)
                                                              : RandomWorkload(random);
    for (const ConvTemplate* conv_template : ConvTemplates()) {
      const Target cpu = CpuFor(*conv_template);
      if (!conv_template->Supports(workload, cpu).ok) continue;
      SCOPED_TRACE(std::string(conv_template->Name()) + " " + WorkloadToString(workload));
      met.insert(conv_template->Name());
      const Config config = conv_template->Default(workload, cpu);
      const LoopFeatures features = conv_template->Features(workload, config, cpu);
      EXPECT_GT(features.flops, 0);
      EXPECT_GE(features.tasks, 1);
      EXPECT_GT(features.fma_per_load, 0);
      EXPECT_GT(features.task_input_bytes, 0);
      EXPECT_GT(features.task_output_bytes, 0);
      const std::vector<float> vector = FeatureVector(features, workload, cpu, 2);
      ASSERT_EQ(vector.size(), FeatureNames().size());
      for (float value : vector) EXPECT_TRUE(std::isfinite(value));
    }
  }
  if (TestCpu().isa != Isa::kPortable) {
    EXPECT_EQ(met.size(), ConvTemplates().size());
  }
}

TEST(LoopFeaturesTest, TellPaddingFromWork) {
  const auto useful = [](const char* text) {
    const ConvWorkload workload = ParseWorkload(text);
    const ConvTemplate& portable = *ConvTemplates().back();
    const auto vector =
        FeatureVector(portable.Features(workload, portable.Default(workload, TestCpu()), TestCpu()), workload,
                      TestCpu(), 2);
    EXPECT_EQ(FeatureNames()[1], "useful_share");
    return vector[1];
  };
  EXPECT_FLOAT_EQ(useful("ic64ih56oc64kh3ph1"), 1);
  EXPECT_LT(useful("ic64ih56oc65kh3ph1"), 65.5 / 68) << "vectors of 4 or more";
}

}  // namespace
}  // namespace tilesmith
