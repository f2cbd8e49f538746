// oneDNN's twins of convolutions of bytes compute what the reference does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layouts/data_type.h"
#include "ops/onednn/onednn.h"
#include "ops/quantize/quantized_data.h"

namespace tilesmith {
namespace {

// Weights of 7 bits: without VNNI oneDNN's sums of two products saturate beyond.
QuantizedData SmallWeights(const ConvWorkload& workload, uint64_t seed) {
  QuantizedData data = MakeQuantizedData(workload, seed);
  QuantizedConvParams params = data.op->params();
  Tensor weights = *params.weights.stored;
  for (int64_t i = 0; i < weights.size(); ++i)
    weights.data<int8_t>()[i] = static_cast<int8_t>(std::clamp<int>(weights.data<int8_t>()[i], -63, 63));
  params.weights.stored = std::make_shared<const Tensor>(std::move(weights));
  data.op = std::make_shared<const QuantizedConvOp>(workload, std::move(params));
  return data;
}

double Stored(const Tensor& tensor, int64_t i) {
  return VisitType(tensor.type(), [&](auto tag) {
    return static_cast<double>(tensor.data<typename decltype(tag)::Type>()[i]);
  });
}

class OneDnnBytesTest : public testing::TestWithParam<const char*> {};

TEST_P(OneDnnBytesTest, IsWithinAStep) {
  const ConvWorkload workload = ParseWorkload(GetParam());
  if (workload.bytes->in == DataType::kI8 && !DetectCpu().vnni)
    GTEST_SKIP() << "without VNNI oneDNN halves the weights of signed inputs";
  const QuantizedData data = SmallWeights(workload, 1);
  std::string refusal;
  const std::unique_ptr<OneDnnConv> twin = OneDnnConv::Create(*data.op, &refusal);
  ASSERT_NE(twin, nullptr) << refusal;
  twin->SetInput(data.input);
  if (data.residual) twin->SetResidual(*data.residual);
  twin->Run();
  const Tensor theirs = twin->GetOutput(), expected = data.op->Reference(data.inputs());
  const bool real = workload.bytes->out == DataType::kF32;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double want = Stored(expected, i), allowed = real            ? 1e-4 * std::max(std::abs(want), 1.0)
                                                       : data.residual ? 2
                                                                       : 1;
    ASSERT_NEAR(theirs.floats()[i], want, allowed) << twin->ImplName() << " at " << i;
  }
  EXPECT_FALSE(twin->PackedWeights().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, OneDnnBytesTest,
    testing::Values("ic16ih9oc24oh9kh3ph1+bias:u8:i8:u8", "ic16ih9oc24oh7kh3:u8:i8:u8",
                    "ic32ih8oc16oh8kh1+bias+sum:u8:i8:u8", "ic3ih12oc8oh6kh3sh2ph1+bias:u8:i8:i8",
                    "ic16ih6oc16oh6kh1+bias:u8:i8:f32", "ic16ih6oc16oh6kh1+bias:i8:i8:i8",
                    "g32ic32ih9oc32oh9kh3ph1+bias:u8:i8:u8", "mb2g2ic32ih5oc32oh5kh3ph1:u8:i8:u8"));

TEST(OneDnnBytes, RefusesZeroPointsOfWeights) {
  const QuantizedData data = MakeQuantizedData(ParseWorkload("ic16ih9oc24oh9kh3ph1:u8:u8:u8"), 1);
  std::string refusal;
  EXPECT_EQ(OneDnnConv::Create(*data.op, &refusal), nullptr);
  EXPECT_EQ(refusal, "oneDNN's weights are i8 without a zero point");
}

}  // namespace
}  // namespace tilesmith
