// What the random sweep cannot see of the grouped template: shapes that must be supported, refusals and their
// reasons, and the arithmetic of its loop nest.
#include <gtest/gtest.h>

#include "templates/grouped/config.h"
#include "templates/grouped/lane_swaps.h"
#include "tests/templates/exact_conv.h"

namespace tilesmith::grouped {
namespace {

Target CpuWith(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  return cpu;
}

TEST(Grouped, ShapesThatMustWork) {
  for (const char* text : {
           "g32mb1ic64ih5oc64kh1",                         // 2 a group
           "g29mb1ic58ih7oc58oh7kh3ph1+bias+relu",         // channels that no vector divides
           "g32mb1ic128ih9oc128oh9kh3ph1+bias+sum+relu",   // 4 a group
           "g10mb2ic40ih6iw33oc40oh6ow33kh3ph1+clip:2:9",  // padding lanes would become 2
           "g6mb1ic48ih8oc48oh4kh3sh2ph1+bias",            // 8 a group, strided, half a vector left
           "g3mb1ic48ih11iw14oc48oh11ow14kh3ph2dh1+sum",   // 16 a group, dilated
           "g2mb1ic48ih9oc48oh9kh3ph1",                    // 24 a group: vectors of 8 only
           "g2mb1ic64ih7oc64oh7kh3ph1",                    // 32 a group
           "g4mb1ic16ih3oc16oh5kh5ph3",                    // a kernel larger than its input
           "g8mb1ic32ih1oc32oh7kh1ph3",                    // output rows without any input
           "g4mb1ic32ih30iw6oc32oh2ow3kh1sh29sw2",         // strides beyond the kernel
       }) {
    if (!Includes(TestCpu().isa, Isa::kAvx2)) GTEST_SKIP();
    ExpectExactOnEveryIsa(GroupedTemplate(), text, 12);
  }
}

TEST(Grouped, RefusesWithReasons) {
  const auto reason = [](const char* text, Isa isa = Isa::kAvx512) {
    const Support support = GroupedTemplate().Supports(ParseWorkload(text), CpuWith(isa));
    EXPECT_FALSE(support.ok) << text;
    return support.reason;
  };
  EXPECT_EQ(reason("mb1ic16ih7oc16kh3"), "not a grouped convolution");
  EXPECT_NE(reason("g16mb1ic16ih7oc16kh3").find("depthwise"), std::string::npos);
  EXPECT_NE(reason("g4mb1ic16ih7oc32kh3").find("4 input but 8 output channels"), std::string::npos);
  EXPECT_NE(reason("g4mb1ic12ih7oc12kh3").find("groups of 3"), std::string::npos);
  EXPECT_NE(reason("g4mb1ic256ih7oc256kh3").find("64 channels a group"), std::string::npos);
  EXPECT_NE(reason("g4mb1ic16ih7oc16kh3", Isa::kPortable).find("AVX2"), std::string::npos);
  EXPECT_NE(reason("g2mb1ic32ih70oc32kh65").find("65 kernel rows (at most 64)"), std::string::npos);
  EXPECT_NE(reason("g2mb1ic32ih64iw99oc32kh64kw99").find("even the smallest tile"), std::string::npos);
}

TEST(Grouped, EveryInputColumnOfATileAppearsOnceWithAllItsTaps) {
  const ConvWorkload w = ParseWorkload("g4mb1ic16ih9iw20oc16oh9ow10kh3sh1sw2ph1");
  size_t taps = 0;
  for (const TileRun& tile : CutRow(w, {20, 10, 4, false})) {
    int64_t before = -1;
    for (const InputColumn& column : InputColumnsOf(w, tile)) {
      EXPECT_GT(column.offset, before);
      before = column.offset;
      for (const InputColumn::Tap& tap : column.taps)
        EXPECT_EQ(tap.position * 2 + tap.kernel_column, column.offset);
      taps += column.taps.size() * tile.count;
    }
  }
  EXPECT_EQ(taps, 10U * 3 - 1);  // the left edge loses one
}

// What the kernel does with a vector of inputs, in doubles.
TEST(Grouped, SwapsOfLanesReachEveryChannelOnce) {
  constexpr int64_t kLanes = 16;
  for (const int64_t channels : {2, 4, 8, 16}) {
    for (const int64_t sums : SumCounts(channels)) {
      if (sums == 1) continue;
      const int64_t ways = channels / sums;
      std::vector<double> weights(channels * kLanes, -1);
      for (int64_t output = 0; output < kLanes; ++output) {
        for (int64_t channel = 0; channel < channels; ++channel) {
          const Term term = TermOf(channels, sums, output, channel);
          double& weight = weights.at(term.index * kLanes + term.lane);
          EXPECT_EQ(weight, -1) << "two products in one place";
          weight = static_cast<double>(output * 100 + channel);
        }
      }
      for (int64_t output = 0; output < kLanes; ++output) {
        for (int64_t i = 0; i < channels; ++i) {
          const int64_t s = i / sums, t = i % sums * ways, lane = output ^ t, input = lane ^ s;
          EXPECT_EQ(input / channels, output / channels) << "another group's input";
          EXPECT_EQ(weights[i * kLanes + lane], output * 100 + input % channels);
        }
      }
    }
  }
}

TEST(Grouped, RegistersAreWithinBudget) {
  const ConvWorkload w = ParseWorkload("g29mb1ic58ih20oc58oh20kh3ph1");
  for (const int registers : {16, 32}) {
    for (int rows = 1; rows <= 4; ++rows) {
      for (int positions = 1; positions <= 28; ++positions) {
        for (const Hold hold : {Hold::kNothing, Hold::kWeights, Hold::kInputs}) {
          for (const int64_t sums : {1, 2}) {
            GroupedConfig config;
            config.ic_block = config.oc_block = 0;
            config.lanes = registers / 2;
            config.hold = hold;
            config.sums = sums;
            const Schedule g = MakeSchedule(w, config);
            const RegisterPlan plan = PlanRegisters(g, positions, rows);
            if (!plan.fits) continue;
            EXPECT_LE(plan.first_input + plan.inputs, plan.first_weight);
            EXPECT_LE(plan.first_weight + plan.weights, plan.index);
            EXPECT_LE(plan.first_input + kEpilogueScratch, plan.mask);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilesmith::grouped
