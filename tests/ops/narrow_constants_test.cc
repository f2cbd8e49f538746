// Constants of 8 bits and fewer without a type of their own: unpacked when a model is read.
#include <gmock/gmock.h>
#include <onnx/onnx_pb.h>

#include <cmath>

#include "ops/base/elements.h"
#include "tests/ops/test_node.h"
#include "tests/support/ops/written_model.h"
#include "tests/support/refusal.h"

namespace tilesmith {
namespace {

using onnx::TensorProto;
using testing::ElementsAre;
using testing::HasSubstr;

// Packed from the lowest bits on, in raw_data and in the typed field, an odd number of them included.
TEST(NarrowConstants, IntegersAreUnpacked) {
  const auto check = [](int32_t number, DataType type, const std::vector<uint8_t>& packed,
                        const std::vector<int64_t>& want) {
    TensorProto raw, typed;
    for (TensorProto* proto : {&raw, &typed}) proto->add_dims(std::ssize(want)), proto->set_data_type(number);
    raw.set_raw_data(packed.data(), packed.size());
    for (const uint8_t byte : packed) typed.add_int32_data(byte);
    for (const TensorProto& proto : {raw, typed}) {
      const Tensor tensor = ParseOnnxTensor(proto.SerializeAsString(), "t.pb");
      EXPECT_EQ(tensor.type(), type) << number;
      EXPECT_EQ(ElementsAs<int64_t>(tensor), want) << number;
    }
    raw.mutable_raw_data()->push_back('\0');
    EXPECT_THAT(Refusal(ErrorCode::kBadModel, [&] { ParseOnnxTensor(raw.SerializeAsString(), "t.pb"); }),
                HasSubstr("needs " + std::to_string(packed.size())));
  };
  check(22, DataType::kI8, {0x8f, 0x70, 0x02}, {-1, -8, 0, 7, 2});   // INT4
  check(21, DataType::kU8, {0x8f, 0x70, 0x02}, {15, 8, 0, 7, 2});    // UINT4
  check(26, DataType::kI8, {0b11100100, 0b10}, {0, 1, -2, -1, -2});  // INT2
  check(25, DataType::kU8, {0b11100100, 0b10}, {0, 1, 2, 3, 2});     // UINT2
}

TEST(NarrowConstants, NumbersWithExponentsBecomeFloats) {
  const auto values = [](int32_t number, const std::vector<uint8_t>& codes, int64_t count) {
    TensorProto proto;
    proto.add_dims(count), proto.set_data_type(number);
    proto.set_raw_data(codes.data(), codes.size());
    const Tensor tensor = ParseOnnxTensor(proto.SerializeAsString(), "t.pb");
    return F(tensor);
  };
  using testing::IsNan;
  EXPECT_THAT(values(17, {0x01, 0x08, 0x38, 0xb9, 0x7e, 0x7f, 0x80}, 7),  // FLOAT8E4M3FN
              ElementsAre(0x1p-9f, 0x1p-6f, 1, -1.125f, 448, IsNan(), 0));
  EXPECT_THAT(values(18, {0x01, 0x08, 0x40, 0x7f, 0xff, 0x80}, 6),  // FLOAT8E4M3FNUZ
              ElementsAre(0x1p-10f, 0x1p-7f, 1, 240, -240, IsNan()));
  EXPECT_THAT(values(19, {0x01, 0x3c, 0x7b, 0x7c, 0xfc, 0x7d, 0xfe}, 7),  // FLOAT8E5M2
              ElementsAre(0x1p-16f, 1, 57344, INFINITY, -INFINITY, IsNan(), IsNan()));
  EXPECT_THAT(values(20, {0x01, 0x40, 0x7f, 0x80}, 4),  // FLOAT8E5M2FNUZ
              ElementsAre(0x1p-17f, 1, 57344, IsNan()));
  EXPECT_THAT(values(23, {0x10, 0x32, 0x54, 0x76, 0xf9, 0x0a}, 11),  // FLOAT4E2M1
              ElementsAre(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.5f, -6, -1));
  EXPECT_THAT(values(24, {0x00, 0x7f, 0x80, 0xff}, 4),  // FLOAT8E8M0
              ElementsAre(0x1p-127f, 1, 2, IsNan()));
}

// A zero point of four bits says where its node saturates, also behind what does not change it.
TEST(NarrowConstants, ZeroPointsSayWhereNodesSaturate) {
  for (const bool as_node : {false, true}) {
    OnnxModel model(25);
    model.Input("x", {4});
    model.Floats("s", {}, {1});
    if (as_node) {
      onnx::AttributeProto* value = model.Node("Constant", {}, {"zero"}).add_attribute();
      value->set_name("value"), value->set_type(onnx::AttributeProto::TENSOR);
      value->mutable_t()->add_dims(1), value->mutable_t()->set_data_type(22);
      value->mutable_t()->set_raw_data("\x01");
    } else {
      model.Weight("zero", {1}, 22).set_raw_data("\x01");
    }
    model.Ints("none", {0});
    model.graph().mutable_initializer()->rbegin()->clear_dims();
    model.graph().mutable_initializer()->rbegin()->add_dims(0);
    model.graph().mutable_initializer()->rbegin()->clear_int64_data();
    model.Node("Reshape", {"zero", "none"}, {"z"});
    model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"});
    model.Output("y");
    EXPECT_THAT(F(Outputs(model, {Floats({4}, {-20, 3, 6.4f, 20})})[0]), ElementsAre(-9, 3, 6, 6));
  }
}

TEST(NarrowConstants, TypesAreNamed) {
  OnnxModel model;
  model.Input("x", {2, 3}, 22);
  model.Node("Transpose", {"x"}, {"y"}, "node");
  model.Output("y");
  EXPECT_THAT(ImportError(model), HasSubstr("its elements are INT4"));
  OnnxModel cast;
  cast.Input("x", {2});
  SetInt(cast.Node("Cast", {"x"}, {"y"}, "node"), "to", 26);
  cast.Output("y");
  EXPECT_THAT(ImportError(cast), HasSubstr("to is INT2"));
}

// Rows of 5 numbers in blocks of 4, the second of which is cut: y = x * w of what is packed.
TEST(NarrowConstants, ProductsOfPackedWeights) {
  enum class Zeros { kNone, kPacked, kFloats };
  const auto product = [](int64_t bits, const std::vector<uint8_t>& packed, Zeros zeros) {
    TestNode node("com.microsoft.MatMulNBits");
    node.Attr("K", int64_t{5}).Attr("N", int64_t{2}).Attr("bits", bits).Attr("block_size", int64_t{4});
    node.Input(Floats({1, 5}, {1, 10, 100, 1000, 10000}));
    Tensor bytes({2, 2, 4 * bits / 8}, Layout::Nchw(DataType::kU8));
    std::ranges::copy(packed, bytes.data<uint8_t>());
    node.Const(std::move(bytes)).Const(Floats({4}, {1, 2, 3, 4}));
    if (zeros == Zeros::kPacked) {
      Tensor points({2, 1}, Layout::Nchw(DataType::kU8));
      points.data<uint8_t>()[0] = 0x21, points.data<uint8_t>()[1] = 0x43;
      node.Const(std::move(points));
    } else if (zeros == Zeros::kFloats) {
      node.Const(Floats({4}, {1, 2, 3, 4}));
    } else {
      node.Absent();
    }
    node.Absent().Const(Floats({2}, {0.5f, -0.5f}));
    return node;
  };
  // Row 0 is 1 2 3 4 | 5, row 1 is 6 7 8 9 | 10.
  const std::vector<uint8_t> four = {0x21, 0x43, 0x05, 0, 0x76, 0x98, 0x0a, 0};
  const std::vector<float> scaled = {3210 + 10000 * 2 * 3 + 0.5f, 3 * 6543 + 10000 * 4 * 6 - 0.5f};
  EXPECT_EQ(F(product(4, four, Zeros::kPacked).Evaluate()), scaled);
  EXPECT_EQ(F(product(4, four, Zeros::kFloats).Evaluate()), scaled);
  EXPECT_EQ(F(product(4, four, Zeros::kNone).Evaluate()),
            (std::vector<float>{-4567 - 10000 * 2 * 3 + 0.5f, 3 * (1000 - 10 - 2) + 10000 * 4 * 2 - 0.5f}));
  // Row 0 is 0 1 2 3 | 1, row 1 is 3 2 1 0 | 2, all less 2.
  EXPECT_EQ(F(product(2, {0b11100100, 0b01, 0b00011011, 0b10}, Zeros::kNone).Evaluate()),
            (std::vector<float>{-2 - 10 + 1000 - 20000 + 0.5f, 3 * (1 - 100 - 2000) - 0.5f}));
  EXPECT_THAT(product(3, {}, Zeros::kNone).Refusal(), HasSubstr("of 3 bits"));
}

}  // namespace
}  // namespace tilesmith
