// What CUDA templates say before anything is compiled: what they are for, and which configs fit a device.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/conv/conv.h"
#include "templates/cuda/program.h"
#include "tests/support/cuda/cuda_targets.h"
#include "tests/support/random.h"
#include "tests/support/random_workload.h"

namespace tilesmith {
namespace cuda_spaces {
namespace {

const ConvTemplate& Named(std::string_view name) {
  for (const ConvTemplate* candidate : ConvTemplates(kCudaDevice))
    if (candidate->Name() == name) return *candidate;
  ADD_FAILURE() << "no template " << name;
  return *ConvTemplates(kCudaDevice).back();
}

std::string Refusal(std::string_view name, const std::string& workload, int compute = 90) {
  const Support support = Named(name).Supports(ParseWorkload(workload), CudaTargetForTests(compute));
  return support.ok ? "" : support.reason;
}

TEST(CudaSpaces, AreForCudaDevicesOnly) {
  const ConvWorkload workload = ParseWorkload("ic16ih8oc16oh8kh3ph1");
  const Target gpu = CudaTargetForTests(90);
  Target cpu;
  for (const ConvTemplate* one : ConvTemplates(kCudaDevice)) {
    EXPECT_EQ(one->DeviceKind(), kCudaDevice);
    EXPECT_THAT(one->Supports(workload, cpu).reason, testing::HasSubstr("cuda")) << one->Name();
    EXPECT_EQ(&FindConvTemplate(one->Name()), one);
  }
  for (const ConvTemplate* one : ConvTemplates(cpu.device)) {
    EXPECT_EQ(one->DeviceKind(), kCpuDevice) << one->Name();
    EXPECT_FALSE(one->Supports(workload, gpu).ok) << one->Name();
  }
}

TEST(CudaSpaces, RefusalsSayWhy) {
  using testing::HasSubstr;
  EXPECT_THAT(Refusal("cuda_direct", "g32ic128ih28oc128kh3ph1"), HasSubstr("4 filters a group"));
  EXPECT_THAT(Refusal("cuda_tensor", "ic64ih28oc3kh3ph1"), HasSubstr("3 filters"));
  EXPECT_THAT(Refusal("cuda_direct", "ic64ih28oc64kh3ph1", 75), HasSubstr("7.5"));
  EXPECT_THAT(Refusal("cuda_winograd", "ic64ih28oc64kh5ph2"), HasSubstr("5x5"));
  EXPECT_THAT(Refusal("cuda_winograd", "ic64ih28oc64kh3ph1dh1"), HasSubstr("dilation"));
  EXPECT_THAT(Refusal("cuda_winograd", "ic64ih28oc64kh3sh3ph1"), HasSubstr("3"));
  EXPECT_THAT(Refusal("cuda_depthwise", "ic64ih28oc64kh3ph1"), HasSubstr("one input channel"));
  EXPECT_THAT(Refusal("cuda_grouped", "g64ic64ih28oc64kh3ph1"), HasSubstr("cuda_depthwise"));
  EXPECT_THAT(Refusal("cuda_grouped", "g2ic128ih28oc128kh3ph1"), HasSubstr("64 channels"));
  for (const ConvTemplate* one : ConvTemplates(kCudaDevice))
    EXPECT_THAT(Refusal(one->Name(), "scale_shift+relu>ic64ih28oc64kh3ph1"), HasSubstr("in front"))
        << one->Name();
  EXPECT_EQ(Refusal("cuda_portable", "g3ic9ih7oc6kh2kw5sh3dh2ph4+hard_swish"), "");
}

// Sizes of every magnitude: an answer, and where it is yes, a default that is valid.
TEST(CudaSpaces, AnswerForExtremeWorkloads) {
  int supported = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    TestRandom random(seed);
    const ConvWorkload w = RandomExtremeWorkload(random);
    const Target target = CudaTargetForTests(seed % 2 == 0 ? 80 : 90, seed % 3 == 0);
    for (const ConvTemplate* one : ConvTemplates(kCudaDevice)) {
      SCOPED_TRACE(fmt::format("{} {} seed {}", one->Name(), WorkloadToString(w), seed));
      if (!one->Supports(w, target).ok) continue;
      ++supported;
      const Config config = one->Default(w, target);
      const ConfigSpace space = one->Space(w, target);
      EXPECT_EQ(space.WhyInvalid(config), "");
      EXPECT_NO_THROW(space.IsValid(random.Next() % space.size()));
      for (const float feature : FeatureVector(one->Features(w, config, target), w, target, 1))
        EXPECT_TRUE(std::isfinite(feature));
    }
  }
  EXPECT_GT(supported, 500);
}

// Loops in words stand for all of the multiplications, and for more only by what tiles stand over.
TEST(CudaSpaces, NestsCoverTheWorkload) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TestRandom random(seed);
    const ConvWorkload w = RandomWorkload(random);
    const Target target = CudaTargetForTests(80, true);
    for (const ConvTemplate* one : ConvTemplates(kCudaDevice)) {
      if (!one->Supports(w, target).ok) continue;
      SCOPED_TRACE(fmt::format("{} {} seed {}", one->Name(), WorkloadToString(w), seed));
      const Config config = one->Default(w, target);
      EXPECT_GE(one->Nest(w, config, target).multiplications(), w.flops() / 2 * 0.999);
      EXPECT_GE(one->Features(w, config, target).flops * (one->Name() == "cuda_winograd" ? 9 : 1), w.flops());
    }
  }
}

TEST(CudaSpaces, OneTf32ProductOnlyWhereAsked) {
  const ConvWorkload w = ParseWorkload("ic64ih28oc64kh3ph1");
  const ConvTemplate& tensor = Named("cuda_tensor");
  const Target plain = CudaTargetForTests(80), rounding = CudaTargetForTests(80, true);
  const Config one = tensor.Default(w, rounding), three = tensor.Default(w, plain);
  EXPECT_EQ(one.Get("products"), 1);
  EXPECT_EQ(three.Get("products"), 3);
  EXPECT_THAT(tensor.Space(w, plain).WhyInvalid(one), testing::HasSubstr("TF32"));
  EXPECT_EQ(tensor.Space(w, rounding).WhyInvalid(three), "");
  EXPECT_GT(tensor.ErrorFactor(w, one), 2 * tensor.ErrorFactor(w, three));
}

TEST(CudaSpaces, ConfigsFitTheDevice) {
  const ConvWorkload w = ParseWorkload("ic64ih28oc64kh3ph1");
  const Target target = CudaTargetForTests(80);
  const ConvTemplate& direct = Named("cuda_direct");
  const ConfigSpace space = direct.Space(w, target);
  Config config = direct.Default(w, target);
  for (const auto& [knob, value] : {std::pair("tile_f", 128),
                                    {"tile_x", 128},
                                    {"part_f", 4},
                                    {"part_x", 4},
                                    {"split_k", 1},
                                    {"tile_rc", 32},
                                    {"stages", 4}})
    config.Set(knob, value);
  EXPECT_THAT(space.WhyInvalid(config), testing::HasSubstr("tile_f"));  // 128 for 64 filters
  config.Set("tile_f", 64);
  EXPECT_EQ(space.WhyInvalid(config), "");
  Target small = target;
  small.l1d_bytes = 48 << 10;
  EXPECT_THAT(direct.Space(w, small).WhyInvalid(config), testing::HasSubstr("shared memory"));
  config.Set("part_f", 8);
  config.Set("part_x", 8);
  config.Set("tile_f", 16);
  config.Set("tile_x", 32);
  EXPECT_THAT(space.WhyInvalid(config), testing::HasSubstr("warps"));
  config.Set("split_k", 16);
  config.Set("part_x", 4);
  config.Set("part_f", 4);
  config.Set("tile_rc", 32);
  EXPECT_EQ(space.WhyInvalid(config), "");
  EXPECT_THAT(direct.Space(ParseWorkload("ic8ih28oc64kh1"), target).WhyInvalid(config),
              testing::HasSubstr("split_k"));
}

TEST(CudaSpaces, ProgramsRunOnNoOtherDevice) {
  const ConvWorkload w = ParseWorkload("ic8ih5oc16kh3ph1+bias");
  const ConvData data = MakeConvData(w, [](Tensor& tensor) {
    FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, 1);
  });
  const Target target = CudaTargetForTests(90);
  const auto kernel =
      Named("cuda_direct")
          .Build(w, Named("cuda_direct").Default(w, target), target, WeightsOf(data.tensors()));
  EXPECT_ANY_THROW(kernel->Run({}, 0, {0, 1}));
  ASSERT_EQ(kernel->Code().size(), 1u);
  const std::string text(reinterpret_cast<const char*>(kernel->Code()[0].bytes.data()),
                         kernel->Code()[0].bytes.size());
  EXPECT_THAT(text, testing::HasSubstr("constexpr int OC = 16;"));
  EXPECT_GE(kernel->PackedWeights().size(), (16 * 8 * 9 + 16) * sizeof(float));
}

}  // namespace
}  // namespace cuda_spaces
}  // namespace tilesmith
