// Convolutions by cuDNN as kernels of the device, on a fake driver and a fake cuDNN: every config that it has
// gives what the reference gives.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/cuda_device/cudnn_library.h"
#include "templates/cudnn/config.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace cudnn_test {
namespace {

// On memory whose images lie further apart than they need to.
Tensor Answer(const Device& device, const ConvWorkload& w, const Config& config, const ConvData& data) {
  const LayoutPair layouts = CudnnTemplate().Layouts(w, config);
  const auto kernel = device.BuildConv(CudnnTemplate(), w, config, WeightsOf(data.tensors()));
  const Tensor input = TransformGeneric(data.input, layouts.in);
  Tensor output(w.output_shape(), layouts.out);
  const auto bytes = [](const Tensor& t) { return static_cast<size_t>(t.bytes()) / t.shape()[0]; };
  const size_t gap = 64;
  const DeviceMemory in = device.Allocate(w.mb * (bytes(input) + gap)),
                     out = device.Allocate(w.mb * (bytes(output) + gap)),
                     scratch = device.Allocate(static_cast<size_t>(kernel->ScratchBytes(1)));
  auto* const in_bytes = static_cast<std::byte*>(in.data.get());
  auto* const out_bytes = static_cast<std::byte*>(out.data.get());
  const auto in_stride = static_cast<int64_t>(bytes(input) + gap),
             out_stride = static_cast<int64_t>(bytes(output) + gap);
  for (int64_t n = 0; n < w.mb; ++n)
    device.Upload(input.input_view().image<std::byte>(n), in_bytes + n * in_stride, bytes(input));
  std::vector<InputView> inputs = {{in_bytes, in_stride}};
  if (w.post.sum) {
    const Tensor residual = TransformGeneric(*data.residual, layouts.out);
    for (int64_t n = 0; n < w.mb; ++n)
      device.Upload(residual.input_view().image<std::byte>(n), out_bytes + n * out_stride, bytes(output));
    inputs.push_back({out_bytes, out_stride});
  }
  const Launch launch = {kernel.get(), inputs, {out_bytes, out_stride}, scratch.data.get()};
  device.NewStream(nullptr)->Run({&launch, 1}, {});
  for (int64_t n = 0; n < w.mb; ++n)
    device.Download(out_bytes + n * out_stride, output.output_view().image<std::byte>(n), bytes(output));
  return TransformGeneric(output, Layout::Nchw());
}

TEST(Cudnn, EveryConfigThatItHasIsRight) {
  const DevicePtr device = OpenFakeGpu();
  for (const char* text :
       {"mb2ic6ih9oc8oh9kh3ph1+bias+relu", "mb2ic6ih9oc8oh9kh3ph1+bias+sum+relu", "mb2ic3ih9oc4oh4kh3sh2+sum",
        "g6ic6ih7oc6oh7kh3ph1+bias+clip:0:0.5", "g2ic4ih8iw5oc6oh8ow5kh3kw1ph1pw0+bias",
        "ic4ih5oc4oh5kh1+bias+clip:0:0.25", "ic4ih9oc4oh9kh3ph2dh1+sum+relu"}) {
    const ConvWorkload w = ParseWorkload(text);
    ASSERT_TRUE(CudnnTemplate().Supports(w, device->target()).ok) << text;
    uint64_t seed = 0;
    const ConvData data = MakeConvData(w, [&](Tensor& tensor) {
      FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, ++seed);
    });
    const Tensor wanted = ReferenceConv(w, data.tensors());
    const ConfigSpace space = CudnnTemplate().Space(w, device->target());
    int ran = 0, refused = 0;
    for (uint64_t i = 0; i < space.size(); ++i) {
      const Config config = space.At(i);
      if (!space.IsValid(i)) continue;
      SCOPED_TRACE(fmt::format("{} {}", text, config.ToString()));
      try {
        const Tensor got = Answer(*device, w, config, data);
        ++ran;
        for (int64_t k = 0; k < wanted.size(); ++k)
          ASSERT_NEAR(got.floats()[k], wanted.floats()[k], config.Get("type") == 0 ? 1e-5 : 0.06)
              << "at " << k;
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(error.code(), ErrorCode::kNoCandidate);
        EXPECT_THAT(error.what(), testing::HasSubstr("NOT_SUPPORTED"));
      }
    }
    EXPECT_GE(ran, 8);  // two algorithms in two layouts and types
    EXPECT_GE(refused, 8);
  }
}

TEST(Cudnn, SaysWhatItHasNot) {
  const Target target = OpenFakeGpu()->target();
  const auto refusal = [&](const char* text) {
    return CudnnTemplate().Supports(ParseWorkload(text), target).reason;
  };
  EXPECT_THAT(refusal("ic4ih9oc4oh9kh3ph1+hard_swish"), testing::HasSubstr("activation"));
  EXPECT_THAT(refusal("ic4ih8oc4oh8kh2ph0"), testing::HasSubstr("sides"));
  const ConfigSpace space = CudnnTemplate().Space(ParseWorkload("ic4ih9oc4oh9kh3ph1+bias"), target);
  Config config;
  config.Set("block", 1), config.Set("type", 0), config.Set("algorithm", 0), config.Set("fused", 1);
  EXPECT_THAT(space.WhyInvalid(config), testing::HasSubstr("IMPLICIT_PRECOMP_GEMM"));
  EXPECT_EQ(cuda::CudnnVersion(), "9.1.2");
  EXPECT_EQ(KnownConvTemplate("cudnn"), &CudnnTemplate());
  for (const ConvTemplate* candidate : AllConvTemplates()) EXPECT_NE(candidate, &CudnnTemplate());
}

}  // namespace
}  // namespace cudnn_test
}  // namespace tilesmith
