// Input ops in the direct template: what the random sweep rarely meets.
#include <gmock/gmock.h>

#include "templates/base/image_strides.h"
#include "templates/direct/config.h"
#include "templates/direct/schedule.h"
#include "tests/templates/exact_conv.h"

namespace tilesmith {
namespace {

TEST(DirectInputOps, AreExact) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates code for AVX2 and AVX-512 only";
  for (const char* text : {
           "scale_shift+relu>mb2ic64ih14oc128oh14kh1",               // a bottleneck of DenseNet
           "scale_shift+relu>mb2ic128ih9oc32oh9kh3ph1+bias+relu",    // and what follows it
           "scale_shift+clip:2:9>mb1ic33ih8oc17oh8kh3ph1+sum",       // padding taps stay zero, lanes too
           "scale_shift>mb1ic16ih15oc16oh4kh3sh4",                   // rows that nobody reads
           "scale_shift+relu>mb1ic8ih4oc16oh8kh3ph3",                // tasks that read nothing but padding
           "relu>mb1ic20ih9oc16oh9kh1",                              // no scale
           "scale_shift+relu>g2mb1ic32ih7oc32oh7kh3ph1",             // groups
           "scale_shift+leaky_relu:0.5>mb1ic7ih17oc40oh17kh3ph2dh1"  // dilated, few channels
       }) {
    ExpectExactOnEveryIsa(DirectTemplate(), text, 25);
  }
}

TEST(DirectInputOps, RefusesAnotherConvInFront) {
  Target cpu;
  cpu.isa = Isa::kAvx512;
  const Support support = DirectTemplate().Supports(ParseWorkload("ic16ih8oc16kh1>ic16ih8oc16kh1"), cpu);
  EXPECT_FALSE(support.ok);
  EXPECT_THAT(support.reason, testing::HasSubstr("no other conv in front"));
}

TEST(DirectInputOps, TasksShareRowsAndPreparedInputStaysSmall) {
  Target cpu;
  cpu.isa = Isa::kAvx512;
  const ConvWorkload w = ParseWorkload("scale_shift+relu>ic256ih56oc64kh3ph1");
  const ConfigSpace space = DirectTemplate().Space(w, cpu);
  Config config = DirectTemplate().Default(w, cpu);
  EXPECT_EQ(space.WhyInvalid(config), "");
  EXPECT_EQ(config.Get("oc_inner"), 1);
  config.Set("rows", 28);
  EXPECT_THAT(space.WhyInvalid(config), testing::HasSubstr("KiB of input per task"));
  config.Set("oc_inner", 0);
  EXPECT_NE(space.WhyInvalid(config), "");
  // However large the image, one row is possible.
  const ConvWorkload large = ParseWorkload("scale_shift>ic2048ih200iw600oc64kh3ph1");
  const Config largest = DirectTemplate().Default(large, cpu);
  EXPECT_EQ(DirectTemplate().Space(large, cpu).WhyInvalid(largest), "");
}

TEST(DirectInputOps, RowsOfATask) {
  direct::DirectConfig config;
  config.rows = 4;
  config.ic_block = 16;
  const ConvWorkload w = ParseWorkload("scale_shift>ic24ih20oc8kh3sh2ph1");
  EXPECT_EQ(direct::InputRowsOfTask(w, config), 3 * 2 + 3);
  EXPECT_EQ(direct::PreparedBytes(w, config), 9 * 20 * 32 * kFloatBytes);
  config.rows = 10;
  EXPECT_EQ(direct::InputRowsOfTask(w, config), 20);
  config.flat_width = 40;
  config.rows = 2;
  const ConvWorkload flat = ParseWorkload("scale_shift>ic24ih20oc8kh1");
  EXPECT_EQ(direct::PreparedBytes(flat, config), 2 * 40 * 32 * kFloatBytes);
}

}  // namespace
}  // namespace tilesmith
