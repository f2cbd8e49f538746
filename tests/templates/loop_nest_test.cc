#include "templates/base/loop_nest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "templates/base/conv_template.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"
#include "tests/support/template_cpu.h"

namespace tilesmith {
namespace {

// Loops over one dimension: each covers a step of the one around it, the innermost goes one by one.
void ExpectNested(const LoopNest& nest, const LoopPart& part) {
  std::map<std::string, int64_t> open;  // what is left to cover of a step
  std::vector<Loop> loops = nest.tasks;
  loops.insert(loops.end(), part.loops.begin(), part.loops.end());
  for (const Loop& loop : loops) {
    EXPECT_GE(loop.trips, 1) << loop.dim;
    EXPECT_GE(loop.step, 1) << loop.dim;
    const auto [at, first] = open.try_emplace(loop.dim, loop.trips * loop.step);
    EXPECT_GE(loop.trips * loop.step, at->second) << loop.dim << " by " << loop.step;
    at->second = loop.step;
  }
  for (const Loop& loop : part.loops) EXPECT_EQ(open[loop.dim], 1) << loop.dim << " is not taken one by one";
}

// For the workload; a conv fused in front counts only the rows that the main conv reads.
double MultiplicationsOf(const ConvWorkload& w) {
  double total = w.main_conv().flops() / 2;
  for (const ConvWorkload& first : w.before) {
    const int64_t top = std::max<int64_t>(0, -w.ph);
    const int64_t bottom = std::min(w.ih, (w.oh - 1) * w.sh - w.ph + (w.kh - 1) * (w.dh + 1) + 1);
    total += first.flops() / 2 * static_cast<double>(std::max<int64_t>(bottom - top, 0)) /
             static_cast<double>(w.ih);
  }
  return total;
}

void ExpectCovers(const ConvTemplate& conv_template, const ConvWorkload& workload, const Config& config) {
  SCOPED_TRACE(std::string(conv_template.Name()) + " " + WorkloadToString(workload) + " " +
               config.ToString());
  const LoopNest nest = conv_template.Nest(workload, config, CpuFor(conv_template));
  ASSERT_FALSE(nest.parts.empty());
  EXPECT_GE(nest.multiplications() * (1 + 1e-12), MultiplicationsOf(workload));
  for (const LoopPart& part : nest.parts) {
    if (part.covers > 0) ExpectNested(nest, part);
    EXPECT_FALSE(part.body.empty());
  }
  EXPECT_GT(nest.tile_input_bytes, 0);
  EXPECT_GT(nest.tile_weight_bytes, 0);
  EXPECT_GT(nest.tile_output_bytes, 0);
  const std::string text = LoopNestText(nest);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_THAT(text, testing::HasSubstr(nest.parts.back().body));
}

TEST(LoopNest, OfEveryTemplateCoversTheWorkload) {
  TestRandom random(7);
  std::map<std::string_view, int> seen;
  for (int i = 0; i < 6000; ++i) {
    const ConvWorkload workload = i % 4 == 0    ? RandomFusedWorkload(random)
                                  : i % 16 == 1 ? RandomProduct(random)
                                  : i % 16 == 2 ? RandomOrderedByTiles(random)
                                                : RandomWorkload(random);
    for (const ConvTemplate* conv_template : ConvTemplates()) {
      const Target cpu = CpuFor(*conv_template);
      if (!conv_template->Supports(workload, cpu).ok) continue;
      const std::optional<Config> config =
          RandomValidConfig(conv_template->Space(workload, cpu), random, 200);
      if (!config) continue;
      ++seen[conv_template->Name()];
      ExpectCovers(*conv_template, workload, *config);
    }
  }
  for (const auto& [name, count] : seen) EXPECT_GT(count, 2) << name;
  if (TestCpu().isa != Isa::kPortable) {
    EXPECT_EQ(seen.size(), ConvTemplates().size());
  }
}

TEST(LoopNest, IsWrittenOneLoopALine) {
  LoopNest nest;
  nest.tasks = {LoopOver("mb", 1, 1, LoopKind::kTasks),
                LoopOver("oh", 56, 4, LoopKind::kTasks, "rows of a task")};
  nest.parts = {{"",
                 {LoopOver("oh", 4, 1, LoopKind::kLoop), LoopOver("ow", 56, 9, LoopKind::kLoop),
                  LoopOver("ow", 9, 1, LoopKind::kUnrolled), LoopOver("oc", 16, 1, LoopKind::kVector)},
                 "sum += weights * input",
                 1}};
  EXPECT_EQ(LoopNestText(nest),
            "parallel for oh by 4, 14 times  # rows of a task\n"
            "  for oh, 4 times\n"
            "    for ow by 9, 7 times\n"
            "      unrolled for ow, 9 times\n"
            "        vector of 16 oc\n"
            "          sum += weights * input\n");
  EXPECT_EQ(nest.multiplications(), 56.0 * 63 * 16);
}

}  // namespace
}  // namespace tilesmith
