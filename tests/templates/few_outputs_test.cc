// What the random sweep cannot see of the few_outputs template: shapes that must be supported, refusals and
// their reasons, and the arithmetic of its edges.
#include <gtest/gtest.h>

#include "templates/few_outputs/config.h"
#include "tests/templates/exact_conv.h"

namespace tilesmith::few_outputs {
namespace {

Target CpuWith(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  return cpu;
}

TEST(FewOutputs, ShapesThatMustWork) {
  if (!Includes(TestCpu().isa, Isa::kAvx2)) GTEST_SKIP();
  for (const char* text : {
           "mb1ic1ih1oc1kh1",                                       // the smallest
           "mb2ic64ih9iw40oc3oh9ow40kh3ph1+bias+relu",              // rows of two and a half vectors
           "mb1ic16ih8iw64oc1oh8ow64kh9ph4+bias",                   // as many masks as columns
           "mb1ic5ih12iw37oc4oh12ow37kh3ph2pw1+bias+sum+clip:2:9",  // all padding above
           "mb1ic7ih20iw25oc2oh10ow25kh5kw3sh2sw1ph2pw1",           // a vertical stride
           "mb1ic6ih16iw50oc8oh16ow50kh3ph2dh1+sum",                // dilated, eight outputs
           "mb2ic19ih7iw7oc5kh1+bias+relu",                         // 1x1, rows merged
           "mb1ic3ih3iw3oc1oh7ow7kh3ph3",                           // outputs that see nothing but padding
       }) {
    ExpectExactOnEveryIsa(FewOutputsTemplate(), text, 12);
  }
}

TEST(FewOutputs, RefusesWithReasons) {
  const auto reason = [](const char* text, Isa isa = Isa::kAvx512) {
    const Support support = FewOutputsTemplate().Supports(ParseWorkload(text), CpuWith(isa));
    EXPECT_FALSE(support.ok) << text;
    return support.reason;
  };
  EXPECT_NE(reason("mb1ic16ih7oc16kh3").find("16 output channels"), std::string::npos);
  EXPECT_NE(reason("mb1ic16ih7oc2kh3sh2").find("horizontal stride"), std::string::npos);
  EXPECT_EQ(reason("g2mb1ic16ih7oc2kh3"), "a grouped convolution");
  EXPECT_NE(reason("mb1ic16ih7oc2kh3", Isa::kPortable).find("AVX2"), std::string::npos);
  EXPECT_NE(reason("mb1ic2ih99oc1kh99").find("99 kernel rows (at most 64)"), std::string::npos);
  EXPECT_NE(reason("mb1ic2ih64iw99oc1kh64kw99").find("even the smallest tile"), std::string::npos);
}

TEST(FewOutputs, OnlyEdgeTilesHaveLanesOutside) {
  for (int64_t width = 1; width <= 70; ++width) {
    for (int64_t kernel : {1, 3, 9}) {
      for (int64_t padding : {int64_t{0}, kernel / 2, kernel}) {
        ConvWorkload w = ParseWorkload("mb1ic1ih1oc1kh1");
        w.iw = width;
        w.kw = kernel;
        w.pw = padding;
        w.ow = width + 2 * padding - kernel + 1;
        if (w.ow < 1) continue;
        FewOutputsConfig config;
        config.vectors = 1;
        int64_t next = 0;
        const Schedule g = MakeSchedule(w, config);
        for (const TileRun& tile : g.tiles) {
          EXPECT_EQ(tile.first, next);
          next += static_cast<int64_t>(tile.width) * tile.count;
          for (int64_t vector = tile.first; vector < next && !tile.edge; ++vector) {
            for (int64_t column = 0; column < kernel; ++column)
              ASSERT_EQ(g.InputLanes(vector, column), 0xffffU) << width << " " << kernel << " " << padding;
          }
        }
        EXPECT_EQ(next, (w.ow + 15) / 16);
      }
    }
  }
}

TEST(FewOutputs, RegistersAreWithinBudget) {
  const ConvWorkload w = ParseWorkload("mb1ic64ih60oc4oh60kh3ph1");
  for (const int64_t lanes : {8, 16}) {
    for (int64_t i = 0; i < 4 * 6 * 16; ++i) {
      FewOutputsConfig config;
      config.lanes = lanes;
      const Schedule g = MakeSchedule(w, config);
      const RegisterPlan plan = PlanRegisters(g, {i % 4 + 1, i / 4 % 6 + 1, i / 24 + 1});
      if (!plan.fits) continue;
      EXPECT_LE(plan.first_input + plan.inputs, plan.first_weight);
      EXPECT_EQ(plan.first_weight + plan.weights, plan.mask);
      EXPECT_LE(plan.first_input + kEpilogueScratch, plan.mask);
    }
  }
}

}  // namespace
}  // namespace tilesmith::few_outputs
