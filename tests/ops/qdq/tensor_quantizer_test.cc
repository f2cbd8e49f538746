// Scales and zero points against what they promise.
#include "ops/qdq/tensor_quantizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/random.h"

namespace tilesmith {
namespace {

constexpr IntegerForm kForms[] = {{DataType::kU8, false}, {DataType::kI8, false}, {DataType::kI8, true}};

double Dequantized(int32_t stored, const TensorQuantizer& quantizer) {
  return static_cast<double>(quantizer.scale) * (stored - quantizer.zero_point);
}

Tensor FloatTensor(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(shape);
  std::ranges::copy(values, tensor.floats());
  return tensor;
}

TEST(TensorQuantizerTest, ZeroIsExactAndNothingIsFurtherOffThanHalfAStep) {
  TestRandom random(11);
  for (int i = 0; i < 2000; ++i) {
    const double size = std::pow(10.0, static_cast<double>(random.Uniform(-30, 30)));
    ValueRange range{static_cast<double>(random.Uniform(-1, 1)) * size,
                     static_cast<double>(random.Uniform(-1, 1)) * size};
    if (range.low > range.high) std::swap(range.low, range.high);
    for (const IntegerForm& form : kForms) {
      SCOPED_TRACE(testing::Message() << i << ": " << range.low << " to " << range.high);
      const TensorQuantizer quantizer = QuantizerFor(range, form);
      ASSERT_GT(quantizer.scale, 0);
      ASSERT_EQ(StoredValue(0, quantizer), quantizer.zero_point);
      const int32_t first = form.type == DataType::kU8 ? 0 : -128;
      ASSERT_TRUE(quantizer.zero_point >= first && quantizer.zero_point <= first + 255);
      for (const double share : {0.0, 0.1, 0.37, 0.5, 0.93, 1.0}) {
        const double value = range.low + share * (range.high - range.low);
        const double error = std::abs(Dequantized(StoredValue(value, quantizer), quantizer) - value);
        // The ends may lie half a step outside, since the zero point is rounded, and float's scale is too.
        const double steps = share == 0 || share == 1 ? 1.001 : 0.501;
        ASSERT_LE(error, steps * static_cast<double>(quantizer.scale)) << value;
      }
    }
  }
}

TEST(TensorQuantizerTest, RangesOfEveryKind) {
  const IntegerForm u8{DataType::kU8, false}, i8{DataType::kI8, false}, symmetric{DataType::kI8, true};
  EXPECT_EQ(QuantizerFor({0, 0}, u8), (TensorQuantizer{1, 0, DataType::kU8}));
  EXPECT_EQ(QuantizerFor({0, 0}, symmetric), (TensorQuantizer{1, 0, DataType::kI8}));
  EXPECT_EQ(QuantizerFor({0, 255}, u8), (TensorQuantizer{1, 0, DataType::kU8}));
  EXPECT_EQ(QuantizerFor({0, 255}, i8), (TensorQuantizer{1, -128, DataType::kI8}));
  EXPECT_EQ(QuantizerFor({-255, 0}, u8), (TensorQuantizer{1, 255, DataType::kU8}));
  EXPECT_EQ(QuantizerFor({-128, 127}, u8), (TensorQuantizer{1, 128, DataType::kU8}));
  EXPECT_EQ(QuantizerFor({-127, 3}, symmetric), (TensorQuantizer{1, 0, DataType::kI8}));
  EXPECT_EQ(QuantizerFor({-127, 3}, {DataType::kU8, true}), (TensorQuantizer{1, 128, DataType::kU8}));
  // One-sided and constant: 0 is in the range all the same.
  EXPECT_EQ(QuantizerFor({51, 51}, u8), (TensorQuantizer{0.2F, 0, DataType::kU8}));
  EXPECT_EQ(QuantizerFor({2, 51}, u8), (TensorQuantizer{0.2F, 0, DataType::kU8}));
  EXPECT_EQ(QuantizerFor({-51, -2}, u8), (TensorQuantizer{0.2F, 255, DataType::kU8}));
  for (const ValueRange range : {ValueRange{0, 1e-44}, ValueRange{-3e38, 3e38}}) {
    const float scale = QuantizerFor(range, u8).scale;
    EXPECT_TRUE(std::isnormal(scale)) << scale;
  }
}

TEST(TensorQuantizerTest, RoundsToNearestEvenAndSaturates) {
  const TensorQuantizer u8{2, 3, DataType::kU8}, i8{0.5F, -7, DataType::kI8};
  EXPECT_EQ(StoredValue(1, u8), 3);  // 0.5 to 0
  EXPECT_EQ(StoredValue(3, u8), 5);  // 1.5 to 2
  EXPECT_EQ(StoredValue(-1e9, u8), 0);
  EXPECT_EQ(StoredValue(INFINITY, u8), 255);
  EXPECT_EQ(StoredValue(-1e9, i8), -128);
  EXPECT_EQ(StoredValue(1e9, i8), 127);
  const Tensor stored = StoredTensor(FloatTensor({2, 2}, {0, 4, -1000, 1000}), u8);
  EXPECT_EQ(std::vector<int>(stored.data<uint8_t>(), stored.data<uint8_t>() + 4),
            (std::vector{3, 5, 0, 255}));
}

// Whatever weights, bias and input scale are: stored values fit, and so do biases, each within half a step.
TEST(QuantizeWeightsTest, BiasesFitAndStayExact) {
  TestRandom random(5);
  const auto size = [&](double low, double high) {
    return std::pow(10.0,
                    static_cast<double>(random.Uniform(static_cast<float>(low), static_cast<float>(high))));
  };
  for (int trial = 0; trial < 300; ++trial) {
    SCOPED_TRACE(testing::Message() << "seed 5, trial " << trial);
    const int axis = trial % 3 - 1, largest = trial % 2 ? kLargestWeight : kLargestReducedWeight;
    const Shape shape = {4, 6, 3};
    const int64_t channels = axis < 0 ? 1 : shape[axis];
    Tensor weights(shape), bias({channels * 2});
    std::vector<double> of_channel(channels);
    for (double& s : of_channel) s = size(-12, 6);
    const int64_t inner = axis < 0 ? weights.size() : axis == 0 ? 18 : 3;
    for (int64_t i = 0; i < weights.size(); ++i) {
      const int64_t c = i / inner % channels;
      weights.floats()[i] = static_cast<float>(static_cast<double>(random.Uniform(-1, 1)) * of_channel[c]);
    }
    if (axis == 0) std::fill_n(weights.floats(), inner, 0.0F);  // a channel of zeros
    for (int64_t i = 0; i < bias.size(); ++i)
      bias.floats()[i] = static_cast<float>(static_cast<double>(random.Uniform(-1, 1)) * size(-8, 8));
    const auto input_scale = static_cast<float>(size(-8, 8));
    const QuantizedWeights quantized = QuantizeWeights(
        weights, {.axis = axis, .largest = largest, .input_scale = input_scale, .bias = &bias});
    ASSERT_EQ(std::ssize(quantized.scales), channels);
    for (int64_t i = 0; i < weights.size(); ++i) {
      const int stored = quantized.values.data<int8_t>()[i];
      const double scale = quantized.scales[i / inner % channels];
      ASSERT_LE(std::abs(stored), largest);
      ASSERT_LE(std::abs(stored * scale - static_cast<double>(weights.floats()[i])), 0.5001 * scale);
    }
    for (int64_t i = 0; i < bias.size(); ++i) {
      const int64_t stored = quantized.bias.data<int32_t>()[i];
      const double scale = quantized.bias_scales[i];
      ASSERT_EQ(quantized.bias_scales[i], input_scale * quantized.scales[i % channels]);
      ASSERT_LE(std::abs(stored), kMaxQuantizedBias);
      ASSERT_LE(std::abs(static_cast<double>(stored) * scale - static_cast<double>(bias.floats()[i])),
                0.5001 * scale);
    }
  }
}

TEST(QuantizeWeightsTest, ScalesAreOfTheChannelsUnlessTheBiasNeedsMore) {
  const Tensor weights = FloatTensor({3, 2}, {127, -3, 0, 0, 1e-9F, 0});
  EXPECT_THAT(QuantizeWeights(weights, {.axis = 0}).scales,
              testing::ElementsAre(1.0F, 1.0F, testing::FloatNear(1e-9F / 127, 1e-15F)));
  EXPECT_THAT(QuantizeWeights(weights, {}).scales, testing::ElementsAre(1.0F));
  const Tensor bias = FloatTensor({3}, {5, 0, 100});
  const QuantizedWeights quantized =
      QuantizeWeights(weights, {.axis = 0, .input_scale = 1e-3F, .bias = &bias});
  EXPECT_EQ(quantized.raised, 1);
  EXPECT_EQ(quantized.bias.data<int32_t>()[0], 5000);
  EXPECT_NEAR(quantized.bias.data<int32_t>()[2], kMaxQuantizedBias, 1000);
  EXPECT_EQ(quantized.values.data<int8_t>()[4], 0);  // next to its bias it is nothing
}

}  // namespace
}  // namespace tilesmith
