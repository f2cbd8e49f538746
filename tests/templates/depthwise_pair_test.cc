// What the sweep over random workloads cannot see: reasons, shapes at the limits, and a longer look at pairs.
#include <gtest/gtest.h>

#include "templates/depthwise_pair/config.h"
#include "tests/support/random_workload.h"
#include "tests/templates/exact_conv.h"

namespace tilesmith::depthwise_pair {
namespace {

Target CpuWith(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  return cpu;
}

TEST(DepthwisePair, KnowsItsKinds) {
  EXPECT_EQ(KindOf(ParseWorkload("g32ic32ih14oc32kh3ph1+relu>ic32ih14oc64kh1")), PairKind::kDepthwiseFirst);
  EXPECT_EQ(KindOf(ParseWorkload("ic24ih14oc96kh1>g96ic96ih14oc96kh3sh2ph1")), PairKind::kPointwiseFirst);
  EXPECT_EQ(KindOf(ParseWorkload("ic24ih14oc96kh1")), PairKind::kNone);
}

TEST(DepthwisePair, RefusesWithReasons) {
  const auto reason = [&](std::string_view text, Isa isa) {
    const Support support = DepthwisePairTemplate().Supports(ParseWorkload(text), CpuWith(isa));
    EXPECT_FALSE(support.ok) << text;
    return support.reason;
  };
  for (const char* text : {"ic32ih14oc64kh1", "g32ic32ih14oc32kh3ph1>ic32ih14oc64kh3ph1",
                           "g32ic32ih14oc32kh3ph1>ic32ih14oc64kh1sh2", "ic32ih14oc64kh1>ic64ih14oc64kh1"})
    EXPECT_NE(reason(text, Isa::kAvx512).find("not a depthwise conv and a 1x1"), std::string::npos) << text;
  EXPECT_NE(reason("ic24ih14oc96kh1>g96ic96ih14oc96kh3ph1", Isa::kPortable).find("AVX2"), std::string::npos);
}

TEST(DepthwisePair, DefaultsAreValid) {
  TestRandom random(5);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    for (int i = 0; i < 200;) {
      const ConvWorkload w = RandomFusedWorkload(random);
      if (w.before.empty()) continue;
      ++i;
      ASSERT_TRUE(DepthwisePairTemplate().Supports(w, CpuWith(isa)).ok) << WorkloadToString(w);
      const ConfigSpace space = DepthwisePairTemplate().Space(w, CpuWith(isa));
      EXPECT_EQ(space.WhyInvalid(DepthwisePairTemplate().Default(w, CpuWith(isa))), "")
          << WorkloadToString(w);
    }
  }
}

// Tasks meet: each needs middle rows of its own, all that exist are needed, and parts cover the channels.
TEST(DepthwisePairSchedule, TasksCoverTheMiddleTensor) {
  const ConvWorkload w = ParseWorkload("ic24ih30oc144kh1>g144ic144ih30oc144kh5sh2ph2");
  const Target cpu = CpuWith(Isa::kAvx512);
  for (const int64_t rows : {1, 2, 4, 7, 15}) {
    for (const int64_t parts : {1, 2, 3}) {
      Config config = DepthwisePairTemplate().Default(w, cpu);
      DepthwisePairConfig c = ReadConfig(w, cpu, config);
      c.rows = c.depthwise.rows = rows;
      c.parts = parts;
      const Schedule g = MakeSchedule(w, c, cpu);
      int64_t next = 0, chunk = 0;
      for (int64_t block = 0; block < g.row_blocks(); ++block) {
        const RowRange middle = g.MiddleRows(block);
        EXPECT_LE(middle.first, next);
        EXPECT_LE(middle.size(), g.scratch_rows);
        next = middle.last;
      }
      EXPECT_EQ(next, 30);
      for (int64_t part = 0; part < parts; ++part) {
        EXPECT_EQ(g.Chunks(part).first, chunk);
        chunk = g.Chunks(part).last;
      }
      EXPECT_EQ(chunk, static_cast<int64_t>(g.pointwise.chunks.size()));
    }
  }
}

// Kernels as large as the image, padding that the bias must not leak into, odd sizes, residuals, large
// strides.
TEST(DepthwisePair, ShapesAtTheLimits) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates code for AVX2 and AVX-512 only";
  for (const char* text :
       {"g48ic48ih7oc48oh1kh7+bias>ic48ih1oc33kh1+bias", "ic5ih7oc48kh1+bias+clip:1:6>g48ic48ih7oc48oh1kh7",
        "ic17ih13oc33kh1+bias+clip:1:6>g33ic33ih13oc33kh3ph1+bias+sum+relu",
        "g33ic33ih13oc33kh3ph1+bias+clip:1:6>ic33ih13oc17kh1+bias+sum+relu",
        "mb2g20ic20ih11iw5oc20kh5ph2+bias>mb2ic20ih11iw5oc100kh1+clip:1:6",
        "mb2ic100ih11iw5oc20kh1+bias+relu>mb2g20ic20ih11iw5oc20kh5ph4oh15ow9+clip:1:6",
        "ic16ih8oc16kh1>g16ic16ih8oc16kh1sh3", "ic3ih1oc40kh1+bias>g40ic40ih1oc40kh3ph1"})
    ExpectExactOnEveryIsa(DepthwisePairTemplate(), text, 12);
}

}  // namespace
}  // namespace tilesmith::depthwise_pair
