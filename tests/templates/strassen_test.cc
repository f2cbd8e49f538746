// What the correctness sweep sees too seldom of the Strassen template: its refusals, odd images, errors.
#include <gtest/gtest.h>

#include <cmath>

#include "templates/base/conv_error.h"
#include "templates/strassen/config.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

TEST(StrassenTemplate, RefusesWithAReason) {
  Target cpu = TestCpu();
  cpu.isa = Isa::kAvx2;
  const struct {
    const char* workload;
    const char* reason;
  } kCases[] = {{"mb1ic128ih14oc128oh14kh3ph1", "3x3"},   {"mb1ic128ih14oc128oh16kh1ph1", "padding"},
                {"g2mb1ic256ih14oc256oh14kh1", "groups"}, {"mb1ic32ih14oc256oh14kh1", "fewer than"},
                {"mb1ic104ih14oc256oh14kh1", "halves"},   {"mb8ic128ih1oc128oh1kh1", "pair"}};
  for (const auto& c : kCases) {
    const Support support = StrassenTemplate().Supports(ParseWorkload(c.workload), cpu);
    EXPECT_FALSE(support.ok) << c.workload;
    if (cpu.isa == Isa::kPortable) continue;
    EXPECT_NE(support.reason.find(c.reason), std::string::npos) << c.workload << ": " << support.reason;
  }
  EXPECT_FALSE(
      StrassenTemplate().Supports(ParseWorkload("mb1ic128ih14oc128oh14kh1"), CapIsa(cpu, Isa::kPortable)).ok);
}

// Every pixel of an image belongs to a block, one to both halves where the last block has an odd number.
TEST(StrassenSchedule, BlocksCoverEveryPixel) {
  for (int64_t width = 2; width <= 40; ++width) {
    ConvWorkload w = ParseWorkload("mb2ic128ih1iw2oc128oh1ow2kh1");
    w.iw = w.ow = width;
    strassen::StrassenConfig config;
    for (config.row = 1; config.row <= strassen::CountPairs(w); ++config.row) {
      for (config.rows = 1; (config.rows - 1) * config.row < strassen::CountPairs(w); ++config.rows) {
        const strassen::Schedule g = strassen::MakeSchedule(w, config, 16);
        std::vector<int> covered(2 * width);
        for (int64_t i = 0; i < g.blocks(); ++i) {
          const strassen::Block block = g.BlockAt(i);
          ASSERT_GT(block.pairs, 0);
          ASSERT_LE(block.pairs, config.block());
          for (int64_t pair = 0; pair < block.pairs; ++pair) {
            ++covered.at(block.image * width + block.first + pair);
            if (pair > 0 || !block.shared) ++covered.at(block.image * width + block.second + pair);
          }
        }
        EXPECT_EQ(covered, std::vector<int>(2 * width, 1))
            << width << ": " << config.row << " x " << config.rows;
      }
    }
  }
}

TEST(StrassenTemplate, ComputesOddImagesInEveryPartition) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates x86 code";
  for (const char* text : {"mb1ic96ih1iw2oc96oh1ow2kh1", "mb2ic128ih1iw3oc96oh1ow3kh1+bias+sum+relu",
                           "mb3ic96ih5iw7oc160oh5ow7kh1+bias", "mb1ic256ih7oc128oh7kh1+sum",
                           "mb1ic192ih13iw11oc96oh13ow11kh1+bias+hard_swish",
                           "mb2ic96ih14oc128oh7kh1sh2+bias+relu", "mb1ic128ih9iw16oc96oh5ow6kh1sh2sw3"}) {
    const ConvWorkload w = ParseWorkload(text);
    for (const Isa isa : kCodeIsas) {
      const Target cpu = CapIsa(TestCpu(), isa);
      ASSERT_TRUE(StrassenTemplate().Supports(w, cpu).ok) << text;
      Config config = StrassenTemplate().Default(w, cpu);
      EXPECT_EQ(StrassenTemplate().Space(w, cpu).WhyInvalid(config), "") << text;
      for (const int64_t partition : {0, 1, 2}) {
        config.Set("partition", partition);
        EXPECT_LT(MeasureConvError(StrassenTemplate(), w, config, cpu).max, 2e-5) << text << " " << partition;
      }
    }
  }
}

TEST(StrassenTemplate, ErrorsStayWithinTheirFactor) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates x86 code";
  for (const char* text : {"mb1ic96ih12oc96oh12kh1", "mb1ic1024ih8oc96oh8kh1"}) {
    const ConvWorkload w = ParseWorkload(text);
    const Config config = StrassenTemplate().Default(w, TestCpu());
    const ConvError error = MeasureConvError(StrassenTemplate(), w, config, TestCpu());
    // Uniform data: a term is 1/4 on average, 1/3 in the root mean square.
    const auto terms = static_cast<double>(w.ic);
    const double bound = RoundingBound(w, terms / 4) / (std::sqrt(terms) / 3);
    EXPECT_LT(error.max, bound * StrassenTemplate().ErrorFactor(w, config)) << text;
  }
}

}  // namespace
}  // namespace tilesmith
