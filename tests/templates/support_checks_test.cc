// What templates promise of the workloads that they support, for every workload there can be.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "templates/base/conv_template.h"
#include "tests/support/random_workload.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

Target CpuOfIsa(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  cpu.cores = 4;
  cpu.l1d_bytes = 32 << 10;
  cpu.l2_bytes = 1 << 20;
  cpu.l3_bytes = 32 << 20;
  return cpu;
}

void ExpectValidDefault(const ConvTemplate& conv_template, const ConvWorkload& workload, const Target& cpu) {
  SCOPED_TRACE(
      fmt::format("{} of {} with {}", conv_template.Name(), WorkloadToString(workload), IsaName(cpu.isa)));
  const Config preset = conv_template.Default(workload, cpu);
  EXPECT_EQ(conv_template.Space(workload, cpu).WhyInvalid(preset), "") << preset.ToString();
  EXPECT_EQ(conv_template.DefaultIfSupported(workload, cpu), preset);
  const LoopFeatures features = conv_template.Features(workload, preset, cpu);
  EXPECT_EQ(features.weight_bytes > 0, !workload.product);
  for (const double value :
       {features.flops, features.tasks, features.task_input_bytes, features.task_output_bytes}) {
    EXPECT_TRUE(std::isfinite(value) && value > 0) << value;
  }
  const double cycles = conv_template.Cycles(workload, preset, cpu).value_or(1);
  EXPECT_TRUE(std::isfinite(cycles) && cycles > 0) << cycles;
}

TEST(Templates, HaveAValidDefaultWhereverTheySupportAWorkload) {
  TestRandom random(20);
  std::map<std::string_view, int> supported;
  for (int i = 0; i < 2000; ++i) {
    const ConvWorkload workload = i % 16 == 0   ? RandomProduct(random)
                                  : i % 16 == 1 ? RandomOrderedByTiles(random)
                                                : RandomExtremeWorkload(random);
    std::vector<Target> cpus;
    for (const Isa isa : kIsas) {
      cpus.push_back(CpuOfIsa(isa));
      if (i / 16 % 4 == 0) cpus.push_back(Reproducible(cpus.back()));
    }
    for (const Target& cpu : cpus) {
      for (const ConvTemplate* conv_template : ConvTemplates()) {
        if (!conv_template->Supports(workload, cpu).ok) continue;
        ++supported[conv_template->Name()];
        ExpectValidDefault(*conv_template, workload, cpu);
      }
    }
  }
  for (const ConvTemplate* conv_template : ConvTemplates())
    EXPECT_GT(supported[conv_template->Name()], 5) << conv_template->Name();
}

TEST(Templates, HaveNoDefaultOfWhatTheyDoNotSupport) {
  TestRandom random(21);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    const ConvWorkload workload = i % 16 == 0 ? RandomProduct(random) : RandomExtremeWorkload(random);
    const Target cpu = CpuOfIsa(random.Pick(std::span(kIsas)));
    for (const ConvTemplate* conv_template : ConvTemplates()) {
      if (conv_template->Supports(workload, cpu).ok) continue;
      ++refused;
      EXPECT_EQ(conv_template->DefaultIfSupported(workload, cpu), std::nullopt) << conv_template->Name();
      EXPECT_EQ(conv_template->RowsDefault(workload, cpu), std::nullopt) << conv_template->Name();
    }
  }
  EXPECT_GT(refused, 500);
}

// Kernels of more code than a template allows itself, and more scratch.
TEST(Templates, RefuseWhatTheyHaveNoValidConfigFor) {
  for (const char* text :
       {"mb1ic256ih28oc256oh28kh200+bias+relu", "mb1ic256ih28oc256oh28kh1003ph2+bias+relu",
        "mb1ic265ih28oc2864oh28kh402", "mb2ic5620ih39oc41002oh37kh3", "mb2ic5620ih39oc1oh835kh9ph402",
        "mb1ic258ih28oc256oh27kh113ph2dh5+bias+relu", "g8ic8ih64oc8kh1kw30001ph0pw15000",
        "mb1ic1ih1iw4000000oc1kh1kw2000001ph0pw1000000", "mb1ic16ih4000000iw1oc16kh100001kw1ph50000pw0"}) {
    const ConvWorkload workload = ParseWorkload(text);
    for (const Isa isa : kIsas) {
      const Target cpu = CpuOfIsa(isa);
      int supporting = 0;
      for (const ConvTemplate* conv_template : ConvTemplates()) {
        const Support support = conv_template->Supports(workload, cpu);
        EXPECT_NE(support.ok, !support.reason.empty());
        if (!support.ok) continue;
        ++supporting;
        ExpectValidDefault(*conv_template, workload, cpu);
      }
      EXPECT_GT(supporting, 0) << text;
    }
  }
}

TEST(FitsDisplacements, LooksAtImagesAndAtWhatKernelsReachOver) {
  const auto why_not = [](const char* text, int64_t padding = 64) {
    return FitsDisplacements(ParseWorkload(text), padding).reason;
  };
  EXPECT_EQ(why_not("ic64ih56oc64kh3ph1"), "");
  EXPECT_THAT(why_not("ic3ih4096oc3kh3ph1"), HasSubstr("larger than 1024 MiB"));
  EXPECT_EQ(why_not("ic3ih4096oc3kh3ph1", 0), "") << "planes need no blocks of channels";
  EXPECT_THAT(why_not("ic64ih8oc64kh3ph16000000dh15999999"), HasSubstr("reach"));
  EXPECT_THAT(why_not("ic64ih8oc64kh1sh16777216"), HasSubstr("reach"));
  EXPECT_THAT(why_not("g64ic64ih4096oc64kh3ph1>ic64ih4096oc8kh1"), HasSubstr("MiB"));
}

}  // namespace
}  // namespace tilesmith
