// What the random sweep cannot see of the grouped Winograd template: shapes that must be supported, refusals
// and their reasons.
#include <gtest/gtest.h>

#include "templates/grouped_winograd/config.h"
#include "tests/templates/exact_conv.h"

namespace tilesmith {
namespace {

// F(2 x 2, 3 x 3) halves twice and no more, so that it is exact for small integers.
TEST(GroupedWinograd, ShapesThatMustWork) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (!Includes(TestCpu().isa, isa)) continue;
    const Target cpu = CapIsa(TestCpu(), isa);
    for (const char* text : {
             "g32mb1ic64ih6oc64oh6kh3ph1+bias",            // 2 a group
             "g10mb2ic40ih7iw9oc40oh7ow9kh3ph1+clip:2:9",  // half a vector left, odd ends
             "g6mb1ic48ih8oc48oh6kh3+bias+sum+relu",       // 8 a group, no padding
             "g3mb1ic24ih1iw5oc24oh3ow9kh3ph2",            // outputs that see nothing but padding
             "g5mb2ic40ih9iw12oc40oh5ow6kh3sh2ph1+bias",   // strided
         }) {
      const ConvWorkload w = ParseWorkload(text);
      ASSERT_EQ(GroupedWinogradTemplate().Supports(w, cpu).reason, "") << text;
      const ConfigSpace space = GroupedWinogradTemplate().Space(w, cpu);
      TestRandom random(7);
      for (int tried = 0; tried < 20;) {
        Config config = space.At(random.Next() % space.size());
        config.Set("tile", 2);
        if (!space.WhyInvalid(config).empty()) continue;
        ++tried;
        ExpectExact(GroupedWinogradTemplate(), w, config, cpu);
      }
    }
  }
}

TEST(GroupedWinograd, RefusesWithReasons) {
  Target cpu;
  cpu.isa = Isa::kAvx512;
  const auto reason = [&](const char* text) {
    const Support support = GroupedWinogradTemplate().Supports(ParseWorkload(text), cpu);
    EXPECT_FALSE(support.ok) << text;
    return support.reason;
  };
  EXPECT_EQ(reason("mb1ic16ih7oc16kh3"), "not a grouped convolution");
  EXPECT_NE(reason("g4mb1ic16ih7oc16kh5").find("5x5 kernel"), std::string::npos);
  EXPECT_NE(reason("g4mb1ic16ih7oc16kh3sh3").find("stride 3x3"), std::string::npos);
  EXPECT_NE(reason("g4mb1ic16ih9oc16kh3dh1").find("dilated"), std::string::npos);
  EXPECT_NE(reason("g4mb1ic16ih7oc32kh3").find("4 input but 8 output"), std::string::npos);
  EXPECT_NE(reason("g16mb1ic16ih7oc16kh3").find("depthwise"), std::string::npos);
  EXPECT_NE(reason("g2mb1ic64ih7oc64kh3").find("32 channels do not divide"), std::string::npos);
}

}  // namespace
}  // namespace tilesmith
