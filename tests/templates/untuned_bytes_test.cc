// Convolutions of bytes that nobody tuned, by templates' defaults in every layout, against the reference bit
// for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "templates/amx_int8/config.h"
#include "templates/cpu_device/cpu_device.h"
#include "templates/direct_int8/config.h"
#include "templates/int8/byte_conv.h"
#include "templates/winograd_int8/config.h"
#include "tests/ops/test_node.h"
#include "tests/ops/typed_kernel_check.h"

namespace tilesmith {
namespace {

void CheckUntuned(const QuantizedConvOp& op, const std::vector<Tensor>& inputs) {
  CheckTypedKernel(op, inputs, BuildHostOp);
}

int32_t ZeroPoint(TestRandom& random, DataType type) {
  return type == DataType::kU8 ? random.Pick(std::vector<int32_t>{0, 1, 127, 128, 255})
                               : random.Pick(std::vector<int32_t>{-128, -1, 0, 5, 127});
}

QuantizedTensor RandomWeights(TestRandom& random, const ConvWorkload& w, DataType type) {
  QuantizedTensor weights{std::make_shared<const Tensor>(AnyStored(w.weights_shape(), type, random.Next())),
                          {type, 0, {}, {}}};
  const bool per_channel = random.Integer(0, 2) != 0;
  const float scale = random.Pick(std::vector<float>{1e-8f, 0.004f, 1, 1e8f});
  for (int64_t o = 0; o < (per_channel ? w.oc : 1); ++o) {
    const float sign = random.Integer(0, 15) == 0 ? -1.0F : 1.0F;  // no format forbids it
    weights.quantization.scales.push_back(sign * scale * random.Uniform(0.5f, 2));
    weights.quantization.zero_points.push_back(random.Integer(0, 2) == 0 ? 0 : ZeroPoint(random, type));
  }
  return weights;
}

// Results fill the range, now and then they all saturate or are all zero.
QuantizedConvParams RandomParams(TestRandom& random, const ConvWorkload& w) {
  const auto type = [&] { return random.Integer(0, 1) == 0 ? DataType::kU8 : DataType::kI8; };
  QuantizedConvParams params{.input = {type(), 0, {random.Pick(std::vector<float>{1e-8f, 0.02f, 1e8f})}, {}},
                             .weights = RandomWeights(random, w, type()),
                             .bias = nullptr,
                             .output = {type(), 0, {}, {}},
                             .limits = {}};
  params.input.zero_points = {ZeroPoint(random, params.input.type)};
  const double terms = static_cast<double>(ElementCount(w.weights_shape()) / w.oc);
  const double spread = 80 * std::sqrt(terms) * random.Pick(std::vector<double>{1, 1, 1, 1, 1e-8, 1e8});
  params.output.scales = {static_cast<float>(std::clamp(
      spread * params.input.scales[0] * std::abs(params.weights.quantization.scales[0]), 1e-8, 1e8))};
  params.output.zero_points = {ZeroPoint(random, params.output.type)};
  const StoredRange range = RangeOf(params.output.type);
  const auto zero = params.output.zero_points[0];
  switch (random.Integer(0, 3)) {
    case 0:  // ReLU
      params.limits = {zero, range.high};
      break;
    case 1:  // ReLU6, or any clip
      params.limits = {zero, std::min(zero + 6, range.high)};
      break;
    default:
      params.limits = range;
  }
  if (w.post.bias) {
    Tensor bias({w.oc}, Layout::Nchw(DataType::kI32));
    for (int64_t o = 0; o < w.oc; ++o) bias.data<int32_t>()[o] = random.Integer(-30000, 30000);
    params.bias = std::make_shared<const Tensor>(std::move(bias));
  }
  return params;
}

// A residual of any scale, the sum of a scale that lets it be rounded once and within any limits.
QuantizedResidual RandomResidual(TestRandom& random, const Quantization& own) {
  const auto any = [&](float scale) {
    return Quantization{own.type, 0, {scale}, {ZeroPoint(random, own.type)}};
  };
  const float scale = own.scales[0];
  QuantizedResidual sum{any(scale * random.Pick(std::vector<float>{1e-4f, 0.7f, 1, 3})),
                        any(scale * random.Pick(std::vector<float>{0.501f, 0.6f, 1.3f, 2, 1e4f})),
                        RangeOf(own.type)};
  if (random.Integer(0, 1) == 1) sum.limits.low = sum.output.zero_points[0];
  return sum;
}

// One in four adds a residual, one in eight stores reals.
void CheckConv(ConvWorkload w, uint64_t seed) {
  TestRandom random(seed);
  QuantizedConvParams params = RandomParams(random, w);
  switch (random.Integer(0, 7)) {
    case 0:
    case 1:
      params.sum = RandomResidual(random, params.output);
      w.post.sum = true;
      break;
    case 2:
      params.output = {DataType::kF32, 0, {}, {}};
      break;
    default:
      break;
  }
  const QuantizedConvOp op(w, std::move(params));
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", zero points " << op.params().input.zero_points[0]
                                  << ", output " << DataTypeName(op.params().output.type));
  std::vector<Tensor> inputs = {AnyStored(w.input_shape(), op.params().input.type, random.Next())};
  if (op.params().sum) inputs.push_back(AnyStored(w.output_shape(), op.params().output.type, random.Next()));
  CheckUntuned(op, inputs);
}

// Input sizes small enough for the padding to matter, the output whatever fits.
ConvWorkload RandomConv(TestRandom& random) {
  ConvWorkload w;
  const auto any = [&](std::vector<int64_t> values) { return random.Pick(values); };
  w.mb = any({1, 1, 1, 3});
  switch (any({0, 0, 1, 2})) {
    case 0:
      w.ic = any({1, 2, 3, 5, 8, 17, 33}), w.oc = any({1, 3, 8, 16, 17, 33, 40});
      break;
    case 1:
      w.g = w.ic = w.oc = any({2, 3, 8, 15, 16, 17, 33, 48});
      break;
    default:
      w.g = any({2, 3, 4}), w.ic = w.g * any({1, 3, 4, 9}), w.oc = w.g * any({1, 2, 5, 16, 18});
  }
  const std::vector<std::pair<int64_t, int64_t>> kernels = {{1, 1}, {1, 1}, {3, 3}, {3, 3}, {7, 7},
                                                            {1, 7}, {5, 1}, {2, 2}, {4, 3}};
  std::tie(w.kh, w.kw) = random.Pick(kernels);
  const auto axis = [&](int64_t kernel, int64_t& in, int64_t& out, int64_t& stride, int64_t& pad,
                        int64_t& dilation) {
    stride = any({1, 1, 1, 2, 3}), dilation = kernel > 1 ? any({0, 0, 0, 1, 2}) : 0;
    const int64_t window = (kernel - 1) * (dilation + 1) + 1;
    in = random.Integer(1, 14), pad = any({0, 0, kernel / 2, window - 1, window + 2});
    const int64_t after = std::min(any({0, pad, pad + 1, window + 1}), pad + window - 1);
    out = std::max<int64_t>(in + pad + after - window, 0) / stride + 1;
    pad += std::max<int64_t>(window - in - pad - after, 0);
  };
  axis(w.kh, w.ih, w.oh, w.sh, w.ph, w.dh);
  axis(w.kw, w.iw, w.ow, w.sw, w.pw, w.dw);
  w.post.bias = random.Integer(0, 1) == 0;
  return w;
}

TEST(UntunedBytes, KernelsDoWhatTheReferenceDoes) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TestRandom random(seed);
    CheckConv(RandomConv(random), seed);
    if (HasFailure()) return;
  }
}

// Blocks of 64 channels, narrow ones and parts of both; pairs of rows and single ones; several tiles.
TEST(UntunedBytes, DepthwiseBlocks) {
  uint64_t seed = 2000;
  const auto check = [&](int64_t channels, const char* rest) {
    CheckConv(ParseWorkload(fmt::format("g{0}ic{0}oc{0}{1}", channels, rest)), ++seed);
  };
  for (const int64_t channels : {2, 31, 32, 33, 64, 65, 96, 100, 144}) {
    for (const char* rest : {"ih7iw5kh3ph1", "ih8iw9kh3sh2ph1", "ih6iw70kh5ph2", "ih5iw3kh3ph1pw3dh1dw0",
                             "mb2ih4iw4kh2+bias", "ih1iw1kh3ph1", "ih2iw1kh3ph1"}) {
      check(channels, rest);
      if (HasFailure()) return;
    }
  }
  check(65, "ih300iw66kh3ph1");
  check(33, "ih9iw200kh3kw1ph0pw0+bias");
}

TEST(UntunedBytes, TilesThatCutTheImage) {
  uint64_t seed = 1000;
  for (const char* text : {"ic700ih9iw31oc3kh1",                // pixels
                           "ic512ih4iw61oc5kh3ph1",             // columns
                           "mb2ic70ih40iw31oc3kh3ph1",          // rows
                           "ic90ih41iw43oc2kh3sh2ph1dh1",       // rows of every other column
                           "g40ic40ih61iw59oc40kh5ph2",         // depthwise rows
                           "g17ic17ih1iw3000oc17kh1kw9ph0pw4",  // a single row, depthwise
                           "ic4ih1iw5000oc18kh1kw3ph0pw1",      // a single row
                           "ic300ih40iw40oc2kh1sh2",            // pixels with gaps
                           "g2ic2048ih5iw30oc4kh3ph1+bias"}) {  // more than the scratch should have
    CheckConv(ParseWorkload(text), ++seed);
    if (HasFailure()) return;
  }
}

// What is left out of sums of bytes, whose bias has to know it.
TEST(UntunedBytes, WindowsThatArePaddingForTheMostPart) {
  uint64_t seed = 6000;
  for (const char* text :
       {"ic16ih28oc33kh3ph12dh11", "ic33ih7oc40kh3ph1+bias", "mb2ic20ih14iw9oc5kh3kw5ph18pw12dh17dw5",
        "ic64ih14oc17kh3ph1", "g2ic8ih20oc6kh3ph9dh8", "ic40ih9iw70oc20kh5kw3ph2pw20dh0dw19+bias",
        "ic12ih30iw31oc70kh3sh2ph14dh13", "ic5ih3iw3oc3kh1ph2"}) {
    for (int i = 0; i < 4; ++i) {
      CheckConv(ParseWorkload(text), ++seed);
      if (HasFailure()) return;
    }
  }
}

// Several groups in a vector, no divisor that fits, and channels of a last vector.
TEST(UntunedBytes, SmallGroupsTogether) {
  uint64_t seed = 3000;
  for (const char* text :
       {"g32ic128ih9iw7oc128kh3ph1", "g8ic32ih6oc32kh3sh2ph1+bias", "g6ic24ih5oc12kh1", "g5ic20ih7oc20kh3ph1",
        "g34ic34ih4oc68kh3ph1", "g12ic36ih3oc60kh1+bias", "mb2g16ic64ih5iw30oc64kh3ph1dh1",
        "g4ic64ih8oc32kh3ph1", "g4ic32ih9iw7oc32kh3ph1+bias", "g2ic16ih6iw40oc16kh3sh2ph1",
        "g32ic256ih5oc256kh1+bias", "g60ic240ih4iw7oc240kh1", "g4ic16ih1iw1oc16kh1",
        "mb2g4ic68ih6iw5oc272kh1"}) {
    for (int i = 0; i < 8; ++i) {
      CheckConv(ParseWorkload(text), ++seed);
      if (HasFailure()) return;
    }
  }
}

// Whose lanes are numbers of the window, with AVX-512 VNNI.
TEST(UntunedBytes, FewOutputs) {
  uint64_t seed = 4000;
  for (const char* rest :
       {"ic64ih9iw13kh1", "ic23ih7iw41kh3ph1", "mb2ic130ih3iw5kh3ph1", "ic16ih6kh5ph2+bias",
        "ic70ih9kh3sh2ph1dh1", "ic256ih1iw1kh1", "g2ic96ih5kh3ph1"}) {
    for (int64_t outputs = 1; outputs <= 5; ++outputs) {
      for (int i = 0; i < 4; ++i) {
        const int64_t groups = rest[0] == 'g' ? 2 : 1;
        CheckConv(ParseWorkload(fmt::format("oc{}{}", groups * outputs, rest)), ++seed);
        if (HasFailure()) return;
      }
    }
  }
}

// 115 * -125 * 0.03f * 0.004f / 0.05f is -34.50000035; times the float nearest to the multiplier it would be
// -34.5.
TEST(UntunedBytes, SumsNearTheMiddleOfTwoSteps) {
  const QuantizedConvOp op(
      ParseWorkload("ic1ih1iw2oc2oh1ow2kh1kw1"),
      {.input = {DataType::kU8, 0, {0.03f}, {0}},
       .weights = {std::make_shared<const Tensor>(Stored<int8_t>({2, 1, 1, 1}, {-125, 125})),
                   {DataType::kI8, 0, {0.004f}, {0}}},
       .bias = nullptr,
       .output = {DataType::kI8, 0, {0.05f}, {0}},
       .limits = {-128, 127}});
  CheckUntuned(op, {Stored<uint8_t>({1, 1, 1, 2}, {115, 10})});
}

// 255 * 255 * 33025 is the largest multiple below 2^31.
TEST(UntunedBytes, TheLargestSums) {
  const ConvWorkload w = ParseWorkload("ic33025ih1oc1kh1");
  const QuantizedConvOp op(w, {.input = {DataType::kU8, 0, {0.5f}, {0}},
                               .weights = {std::make_shared<const Tensor>(Stored<int8_t>(
                                               w.weights_shape(), std::vector<int8_t>(33025, 127))),
                                           {DataType::kI8, 0, {2}, {-128}}},
                               .bias = nullptr,
                               .output = {DataType::kI8, 0, {4}, {-3}},
                               .limits = {-128, 127}});
  CheckUntuned(op, {Stored<uint8_t>(w.input_shape(), std::vector<uint8_t>(33025, 255))});
}

TEST(UntunedBytes, TemplatesByCpuAndWorkload) {
  Target cpu = TestCpu();
  cpu.amx = cpu.vnni = false;
  const auto chosen = [&](const char* text, const Layout& layout) {
    const auto untuned = UntunedByteConv(ParseWorkload(text), layout, cpu);
    return untuned ? untuned->conv_template : nullptr;
  };
  constexpr const char* k3x3 = "ic64ih14oc64kh3ph1:u8:i8:u8";
  EXPECT_EQ(chosen(k3x3, Layout::Nhwc()), &WinogradInt8Template());
  EXPECT_EQ(chosen("ic64ih14oc8kh3ph1:u8:i8:u8", Layout::Nhwc()), &DirectInt8Template());
  EXPECT_EQ(chosen("ic64ih14oc64kh1:u8:i8:u8", Layout::Blocked(16)), &DirectInt8Template());
  EXPECT_EQ(chosen("ic64ih14oc64kh1:u8:i8:u8", Layout::Blocked(5)), &DirectInt8Template());
  EXPECT_EQ(chosen("ic1ih3oc1oh3kh3ph10000000dh9999999:u8:i8:u8", Layout::Nchw()), nullptr);
  cpu.vnni = true;
  EXPECT_EQ(chosen(k3x3, Layout::Nhwc()), &DirectInt8Template());
  EXPECT_EQ(chosen("ic64ih14oc64kh3ph1:u8:u8:u8", Layout::Nhwc()), &WinogradInt8Template());
  if (cpu.isa != Isa::kAvx512) return;
  cpu.amx = true;
  EXPECT_EQ(chosen(k3x3, Layout::Nhwc()), &AmxInt8Template());
  EXPECT_EQ(chosen(k3x3, Layout::Nchw()), &DirectInt8Template());
  EXPECT_EQ(chosen("g32ic128ih9oc128kh3ph1:u8:i8:u8", Layout::Nhwc()), &DirectInt8Template());
}

}  // namespace
}  // namespace tilesmith
