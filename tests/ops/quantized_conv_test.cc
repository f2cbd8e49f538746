// Quantised convolution: what it means, and refusals.
#include "ops/quantize/quantized_conv.h"

#include <gmock/gmock.h>

#include "layouts/base/error.h"
#include "tests/ops/test_node.h"
#include "tests/ops/typed_kernel_check.h"

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

QuantizedConvParams SimpleParams(std::vector<int8_t> weights, const Shape& shape) {
  return {.input = {DataType::kU8, 0, {0.5f}, {10}},
          .weights = {std::make_shared<const Tensor>(Stored(shape, weights)), {DataType::kI8, 0, {2}, {1}}},
          .bias = nullptr,
          .output = {DataType::kI8, 0, {4}, {-3}},
          .limits = {-128, 127}};
}

TEST(QuantizedConv, MeansWhatTheFormulaSays) {
  QuantizedConvParams params = SimpleParams({3, 0, -1, 1}, {2, 1, 1, 2});
  const Tensor x = Stored<uint8_t>({1, 1, 1, 3}, {12, 10, 7});
  const ConvWorkload plain = ParseWorkload("ic1ih1iw3oc2oh1ow3kh1kw2ph0pw1");
  // Centred: x is 2 0 -3, with a 0 on its left; the weights are (2, -1) and (-2, 0). The sums are -2 4 3 and
  // 0 -4 0, the multiplier is 1 / 4, -0.5 becomes 0, and -1 is the nearest even of none.
  EXPECT_THAT(I(QuantizedConvOp(plain, params).Reference({{&x}})), ElementsAre(-3, -2, -2, -3, -4, -3));

  // A scale of each channel, and a bias.
  params.weights.quantization = {DataType::kI8, 0, {2, 8}, {1, 0}};
  params.bias = std::make_shared<const Tensor>(Stored<int32_t>({2}, {8, -100}));
  ConvWorkload biased = plain;
  biased.post.bias = true;
  // The second channel's weights are (-1, 1), its multiplier is 1. Sums: 6 12 11 and -98 -102 -103.
  EXPECT_THAT(I(QuantizedConvOp(biased, params).Reference({{&x}})), ElementsAre(-1, 0, 0, -101, -105, -106));

  params.limits = {-3, -1};
  EXPECT_THAT(I(QuantizedConvOp(biased, params).Reference({{&x}})), ElementsAre(-1, -1, -1, -3, -3, -3));
  params.output.scales = {1e-8f};
  params.limits = {-128, 127};
  EXPECT_THAT(I(QuantizedConvOp(biased, params).Reference({{&x}})),
              ElementsAre(127, 127, 127, -128, -128, -128));
}

// 115 * -125 * 0.03f * 0.004f / 0.05f is -34.50000035; times the float nearest to the multiplier it would be
// -34.5.
TEST(QuantizedConv, SumsNearTheMiddleOfTwoStepsAreRoundedAsTheRealMultiplierSays) {
  QuantizedConvParams params = SimpleParams({-125, 125}, {2, 1, 1, 1});
  params.input = {DataType::kU8, 0, {0.03f}, {0}};
  params.weights.quantization = {DataType::kI8, 0, {0.004f}, {0}};
  params.output = {DataType::kI8, 0, {0.05f}, {0}};
  const QuantizedConvOp op(ParseWorkload("ic1ih1iw2oc2oh1ow2kh1kw1"), params);
  const Tensor x = Stored<uint8_t>({1, 1, 1, 2}, {115, 10});
  EXPECT_THAT(I(op.Reference({{&x}})), ElementsAre(-35, -3, 35, 3));
  const double exact = double{0.03f} * 0.004f / 0.05f;
  EXPECT_NEAR(op.multipliers()[0], exact, exact * 0x1p-22);
}

TEST(QuantizedConv, SaysWhatItIs) {
  const QuantizedConvOp op(ParseWorkload("ic1ih1iw3oc2oh1ow3kh1kw2ph0pw1"),
                           SimpleParams({3, 0, -1, 1}, {2, 1, 1, 2}));
  EXPECT_EQ(op.Signature(), "QuantizedConv mb1ic1ih1iw3oc2oh1ow3kh1kw2ph0pw1:u8:i8:i8");
  const std::vector<DataType> right = {DataType::kU8}, wrong = {DataType::kI8};
  EXPECT_EQ(op.OutputType(right), DataType::kI8);
  EXPECT_FALSE(op.KernelTakes(wrong));
  EXPECT_THROW(op.OutputType(wrong), Error);
  EXPECT_EQ(op.InferShape(std::vector<Shape>{{1, 1, 1, 3}}), (Shape{1, 2, 1, 3}));
  EXPECT_THROW(op.InferShape(std::vector<Shape>{{1, 1, 1, 4}}), Error);
}

std::string RefusalOf(const ConvWorkload& w, QuantizedConvParams params) {
  try {
    QuantizedConvOp(w, std::move(params));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadModel);
    return error.what();
  }
  return "no error";
}

TEST(QuantizedConv, SumsThatMayOverflowAreRefused) {
  // 255 * 255 * 33025 is the largest multiple below 2^31.
  ConvWorkload w = ParseWorkload("ic33026ih1oc1kh1");
  const auto params = [&](int64_t channels) {
    w.ic = channels;
    QuantizedConvParams params = SimpleParams(std::vector<int8_t>(channels, 127), w.weights_shape());
    params.input.zero_points = {0};
    params.weights.quantization.zero_points = {-128};
    return params;
  };
  QuantizedConvParams most = params(33025);
  EXPECT_EQ(RefusalOf(w, most), "no error");
  // What is left until 2^31.
  constexpr int32_t kRest = 2147483647 - 255 * 255 * 33025;
  w.post.bias = true;
  most.bias = std::make_shared<const Tensor>(Stored<int32_t>({1}, {-kRest}));
  EXPECT_EQ(RefusalOf(w, most), "no error");
  most.bias = std::make_shared<const Tensor>(Stored<int32_t>({1}, {kRest + 1}));
  EXPECT_THAT(RefusalOf(w, most), HasSubstr("2147483648, which does not fit 32 bits"));
  w.post.bias = false;
  QuantizedConvParams more = params(33026);
  EXPECT_THAT(RefusalOf(w, more), HasSubstr("does not fit 32 bits"));
}

TEST(QuantizedConv, ScalesWithoutAProductAreRefused) {
  const ConvWorkload w = ParseWorkload("ic1ih1iw3oc2oh1ow3kh1kw2ph0pw1");
  QuantizedConvParams params = SimpleParams({3, 0, -1, 1}, {2, 1, 1, 2});
  params.output.scales = {0};
  EXPECT_THAT(RefusalOf(w, params), HasSubstr("no finite number"));
  params.output.scales = {1e-30f};
  params.input.scales = {1e30f};
  EXPECT_THAT(RefusalOf(w, params), HasSubstr("no finite number"));
}

TEST(QuantizedConv, WindowsOfAnySizeAreLeftToTheReference) {
  const ConvWorkload w = ParseWorkload("ic1ih3oc1oh3kh3ph10000000dh9999999");
  EXPECT_FALSE(CopiesFit(w));
  const std::vector<int8_t> weights = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const QuantizedConvOp op(w, SimpleParams(weights, {1, 1, 3, 3}));
  EXPECT_FALSE(op.RunsIn(Layout::Nhwc(), std::vector<Shape>{w.input_shape()}));
  CheckTypedKernel(op, {AnyStored(w.input_shape(), DataType::kU8, 3)});
}

}  // namespace
}  // namespace tilesmith
