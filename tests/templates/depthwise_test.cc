// What the sweep over random workloads cannot see: reasons, shapes at the limits, the algebra of row pairs.
#include <gtest/gtest.h>

#include <random>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/depthwise/config.h"
#include "templates/depthwise/row_pairs.h"
#include "templates/depthwise/schedule.h"
#include "tests/templates/exact_conv.h"

namespace tilesmith::depthwise {
namespace {

Target CpuWith(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  return cpu;
}

ConvWorkload Depthwise(std::string_view text) { return ParseWorkload(text); }

TEST(RowPairs, ProductsAddUpToTwoRows) {
  std::mt19937 random(3);
  const auto number = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8); };
  for (int64_t taps = 2; taps <= 9; ++taps) {
    std::vector<float> kernel(taps + 3, 0.0F), input(taps + 1);
    for (int64_t i = 0; i < taps; ++i) kernel[i] = number();
    for (float& value : input) value = number();
    float sums[4] = {};
    for (const PairPass& pass : PairPasses(taps)) {
      EXPECT_LE(pass.size(), 2U);
      for (const PairProduct& product : pass) {
        float pixel = input[product.first];
        if (product.second >= 0) pixel += (product.subtract ? -1.0F : 1.0F) * input[product.second];
        float weight = 0;
        for (int64_t i = 0; i < 3; ++i) weight += product.coefficients[i] * kernel[product.tap + i];
        sums[static_cast<int>(product.sum)] += pixel * weight;
      }
    }
    const auto sum = [&](PairSum which) { return sums[static_cast<int>(which)]; };
    float upper = 0, lower = 0;
    for (int64_t i = 0; i < taps; ++i) {
      upper += kernel[i] * input[i];
      lower += kernel[i] * input[i + 1];
    }
    EXPECT_EQ(sum(PairSum::kUpper) + sum(PairSum::kBoth) + sum(PairSum::kOpposed), upper) << taps << " taps";
    EXPECT_EQ(sum(PairSum::kLower) + sum(PairSum::kBoth) - sum(PairSum::kOpposed), lower) << taps << " taps";
    size_t products = 0;
    for (const PairPass& pass : PairPasses(taps)) products += pass.size();
    EXPECT_EQ(PairProducts(taps), static_cast<int64_t>(products));
    EXPECT_LT(PairProducts(taps), 2 * taps);
  }
}

TEST(RowGeometry, GroupsCoverTheRowsOnce) {
  const ConvWorkload w = Depthwise("g16ic16ih20oc16kh5ph2");
  const Target cpu = CpuWith(Isa::kAvx512);
  for (int64_t rows : {1, 5, 7, 20}) {
    for (int64_t tile : {1, 2, 3, 5}) {
      for (bool unroll : {false, true}) {
        for (bool pairs : {false, true}) {
          DepthwiseConfig config;
          config.rows = rows;
          config.row_tile = tile;
          config.unroll = unroll;
          config.pairs = pairs;
          const Schedule g = MakeSchedule(w, config, cpu);
          int64_t next = 0;
          for (int64_t block = 0; block < g.row_blocks(); ++block) {
            for (const RowGroup& group : g.Groups(block)) {
              EXPECT_EQ(group.row, next);
              next += group.code.rows;
            }
          }
          EXPECT_EQ(next, w.oh);
        }
      }
    }
  }
}

TEST(DepthwiseSpace, DefaultsAreValidAndSupported) {
  std::mt19937 random(11);
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    for (int i = 0; i < 300; ++i) {
      ConvWorkload w;
      w.g = w.ic = w.oc = 1 + random() % 1200;
      w.kh = w.kw = std::vector<int64_t>{1, 3, 5, 7, 11}[random() % 5];
      w.ph = w.pw = w.kh / 2;
      w.sh = w.sw = 1 + random() % 2;
      w.ih = w.iw = 1 + random() % 112;
      w.oh = w.ow = (w.ih - 1) / w.sh + 1;
      const Target cpu = CpuWith(isa);
      EXPECT_TRUE(DepthwiseTemplate().Supports(w, cpu).ok) << WorkloadToString(w);
      EXPECT_EQ(DepthwiseTemplate().Space(w, cpu).WhyInvalid(DepthwiseTemplate().Default(w, cpu)), "")
          << WorkloadToString(w);
    }
  }
}

TEST(DepthwiseSpace, RefusesWithReasons) {
  const Target cpu = CpuWith(Isa::kAvx512);
  const auto reason = [&](std::string_view text, const Target& on) {
    const Support support = DepthwiseTemplate().Supports(Depthwise(text), on);
    EXPECT_FALSE(support.ok) << text;
    return support.reason;
  };
  EXPECT_NE(reason("ic64ih14oc64kh3ph1", cpu).find("groups of 64 input channels"), std::string::npos);
  EXPECT_NE(reason("g32ic32ih14oc64kh3ph1", cpu).find("2 output channels per input channel"),
            std::string::npos);
  EXPECT_NE(reason("g32ic32ih14oc32kh3ph1", CpuWith(Isa::kPortable)).find("AVX2"), std::string::npos);
  EXPECT_NE(reason("g16ic16ih300oc16kh299ph149", cpu).find("bytes of code (at most"), std::string::npos);
}

// Every valid-looking corner with the default and with pairs where there are any.
TEST(DepthwiseKernel, ShapesAtTheLimits) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates code for AVX2 and AVX-512 only";
  for (const char* text :
       {"g48ic48ih7oc48oh1kh7",                      // global: one output pixel
        "g20ic20ih28oc20oh1kh28",                    // and a wide one
        "g33ic33ih5oc33kh5ph4oh9",                   // padding as large as the kernel allows
        "g16ic16ih1iw40oc16kh1kw9ph0pw4",            // a row
        "g16ic16ih40iw1oc16kh9kw1ph4pw0",            // a column
        "g17ic17ih9oc17kh3sh3ph1",                   // strides that skip input
        "g40ic40ih14oc40kh3ph2dh1+bias+relu",        // dilated
        "mb3g24ic24ih3oc24kh2oh4ph1+sum+clip:1:6"})  // an even kernel; padding channels would become 1
  {
    const ConvWorkload w = Depthwise(text);
    Tensor input(w.input_shape()), weights(w.weights_shape()), bias({w.oc}), residual(w.output_shape());
    FillIntegers({input.floats(), static_cast<size_t>(input.size())}, 1);
    FillIntegers({weights.floats(), static_cast<size_t>(weights.size())}, 2);
    FillIntegers({bias.floats(), static_cast<size_t>(bias.size())}, 3);
    FillIntegers({residual.floats(), static_cast<size_t>(residual.size())}, 4);
    const Tensor expected =
        ReferenceConv(w, input, weights, w.post.bias ? &bias : nullptr, w.post.sum ? &residual : nullptr);
    for (Isa isa : kCodeIsas) {
      const Target cpu = CapIsa(TestCpu(), isa);
      ASSERT_TRUE(DepthwiseTemplate().Supports(w, cpu).ok) << text;
      const ConfigSpace space = DepthwiseTemplate().Space(w, cpu);
      Config config = DepthwiseTemplate().Default(w, cpu);
      for (int64_t pairs : {0, 1}) {
        config.Set("pairs", pairs);
        if (!space.WhyInvalid(config).empty()) continue;
        const auto kernel = DepthwiseTemplate().Build(
            w, config, cpu, {weights.floats(), w.post.bias ? bias.floats() : nullptr});
        const LayoutPair layouts = DepthwiseTemplate().Layouts(w, config);
        const Tensor source = TransformGeneric(input, layouts.in),
                     sum = TransformGeneric(residual, layouts.out);
        Tensor output(w.output_shape(), layouts.out);
        const InputView views[] = {source.input_view(), sum.input_view()};
        RunKernel(*kernel, {{views, w.post.sum ? 2U : 1U}, output.output_view(), nullptr}, 2);
        const Tensor wanted = TransformGeneric(expected, layouts.out);
        for (int64_t i = 0; i < output.padded_size(); ++i)
          ASSERT_EQ(output.floats()[i], wanted.floats()[i])
              << text << " at " << i << ", " << config.ToString();
      }
    }
  }
}

// The sweep allows pairs of rows a rounding error; of small integers they make none.
TEST(DepthwiseKernel, PairsAreExactForIntegers) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "generates code for AVX2 and AVX-512 only";
  for (const char* text : {"g33ic33ih13oc33kh3ph1+bias+relu", "mb2g64ic64ih9iw17oc64kh5ph2+bias+sum",
                           "g20ic20ih12oc20kh7ph3+clip:1:6", "g16ic16ih8oc16kh2oh8ph1+bias"})
    ExpectExactOnEveryIsa(DepthwiseTemplate(), text, 25);
}

}  // namespace
}  // namespace tilesmith::depthwise
