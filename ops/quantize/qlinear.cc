// Operators on quantised tensors in terms of the same ones on reals: their inputs are dequantised, their
// results quantised, for the passes to bring together again.
#include <fmt/format.h>

#include <numeric>

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/onnx_type.h"
#include "ops/quantize/quantize.h"

namespace tilesmith {
namespace {

// The inputs of a node that say one quantised tensor, or how a result is to be quantised.
struct QuantizedSlots {
  size_t data, scale, zero_point;
};

class QLinearWriter : public NodeWriter {
 public:
  explicit QLinearWriter(const NodeSpec& spec) : NodeWriter(spec), spec_(spec) {}

  std::string Real(const QuantizedSlots& slots, int64_t axis = 1) {
    return Dequantize(In(slots.data), In(slots.scale), slots.zero_point, axis);
  }
  std::string Dequantize(const std::string& x, const std::string& scale, size_t zero_point, int64_t axis) {
    std::vector<std::string> inputs = {x, scale};
    if (spec_.HasInput(zero_point)) inputs.push_back(In(zero_point));
    return Add("DequantizeLinear", std::move(inputs), {{"axis", axis}});
  }
  // Quantises to the node's output. Without a zero point that is 0, of the type of input `data`.
  BuiltOp Store(const std::string& real, const QuantizedSlots& slots) {
    const std::string zero = spec_.HasInput(slots.zero_point)
                                 ? In(slots.zero_point)
                                 : Constant(Tensor(Shape{}, Layout::Nchw(spec_.inputs[slots.data].type)));
    Add("QuantizeLinear", {real, In(slots.scale), zero}, {}, Out(0));
    return Take();
  }
  // sums, of type i32, that stand for reals of scale a * b.
  std::string RealBias(size_t slot, const std::string& scale) {
    return Add("DequantizeLinear", {In(slot), scale}, {{"axis", int64_t{0}}});
  }
  std::string AsFloats(const std::string& x) {
    return Add("Cast", {x}, {{"to", int64_t{OnnxTypeNumber(DataType::kF32)}}});
  }

 private:
  const NodeSpec& spec_;
};

Attributes Without(Attributes attributes, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const auto found = attributes.find(name); found != attributes.end()) attributes.erase(found);
  }
  return attributes;
}

// A scale for each row or column of a matrix: where it has as many as axis `axis` has indices, along that
// one.
int64_t AxisOfScales(const NodeSpec& spec, size_t scale, int64_t axis) {
  return ElementCount(spec.inputs[scale].shape) == 1 ? 0 : axis;
}

// Inputs: x, its scale and zero point, the same of w and of y, bias.
BuiltOp BuildQLinearConv(const NodeSpec& spec) {
  NeedInputs(spec, 8, 9);
  if (spec.Int("channels_last", 0) != 0) Refuse(spec, "channels_last is not supported");
  QLinearWriter writer(spec);
  std::vector<std::string> inputs = {writer.Real({0, 1, 2}), writer.Real({3, 4, 5}, 0)};
  if (spec.HasInput(8)) {
    const std::string scale = writer.Add("Mul", {writer.In(4), writer.In(1)});
    inputs.push_back(writer.RealBias(8, scale));
  }
  return writer.Store(writer.Add("Conv", std::move(inputs), Without(spec.attributes, {"channels_last"})),
                      {0, 6, 7});
}

// Inputs: a, its scale and zero point, the same of b and of y. Rows of a and columns of b may have their own.
BuiltOp BuildQLinearMatMul(const NodeSpec& spec) {
  NeedInputs(spec, 8, 8);
  QLinearWriter writer(spec);
  const std::string a = writer.Real({0, 1, 2}, AxisOfScales(spec, 1, -2));
  const std::string b = writer.Real({3, 4, 5}, AxisOfScales(spec, 4, -1));
  return writer.Store(writer.Add("MatMul", {a, b}), {0, 6, 7});
}

// Inputs: a, its scale and zero point, the same of b, scale and zero point of the result.
BuiltOp BuildQLinearBinary(const NodeSpec& spec, const char* op_type) {
  NeedInputs(spec, 7, 8);
  QLinearWriter writer(spec);
  const std::string a = writer.Real({0, 1, 2}), b = writer.Real({3, 4, 5});
  return writer.Store(writer.Add(op_type, {a, b}), {0, 6, 7});
}

// Inputs: x, its scale and zero point, those of the result.
BuiltOp BuildQLinearUnary(const NodeSpec& spec, const char* op_type) {
  NeedInputs(spec, 4, 5);
  QLinearWriter writer(spec);
  std::string x = writer.Real({0, 1, 2});
  const int64_t rank = std::ssize(spec.inputs[0].shape);
  const bool last = spec.Int("channels_last", 0) != 0;
  std::vector<int64_t> to_first(static_cast<size_t>(rank)), back(static_cast<size_t>(rank));
  if (last) {
    if (rank < 3) Refuse(spec, "channels_last of a tensor without pixels");
    std::iota(to_first.begin(), to_first.end(), -1);
    to_first[0] = 0, to_first[1] = rank - 1;
    std::iota(back.begin(), back.end(), 1);
    back[0] = 0, back[static_cast<size_t>(rank) - 1] = 1;
    x = writer.Transpose(x, to_first);
  }
  std::string y = writer.Add(op_type, {x}, Without(spec.attributes, {"channels_last", "opset"}));
  if (last) y = writer.Transpose(y, back);
  return writer.Store(y, {0, 3, 4});
}

// The node says of which opset's softmax it means; before 13 that is over all axes from `axis` on.
BuiltOp BuildQLinearSoftmax(const NodeSpec& spec) {
  NeedInputs(spec, 4, 5);
  QLinearWriter writer(spec);
  const int64_t opset = spec.Int("opset", 13);
  ModelNode node{
      .op_type = "Softmax", .inputs = {writer.Real({0, 1, 2})}, .outputs = {spec.name + "/softmax"}};
  node.attributes = {{"axis", spec.Int("axis", opset < 13 ? 1 : -1)}};
  node.opset = opset;
  const std::string y = node.outputs[0];
  writer.Append(std::move(node));
  return writer.Store(y, {0, 3, 4});
}

// Inputs: scale and zero point of the result, then each tensor with its own.
BuiltOp BuildQLinearConcat(const NodeSpec& spec) {
  NeedInputs(spec, 5, 1 << 16);
  if (spec.inputs.size() % 3 != 2) Refuse(spec, fmt::format("it has {} inputs", spec.inputs.size()));
  NeedInputs(spec, spec.inputs.size(), spec.inputs.size());
  QLinearWriter writer(spec);
  std::vector<std::string> parts;
  for (size_t i = 2; i < spec.inputs.size(); i += 3) parts.push_back(writer.Real({i, i + 1, i + 2}));
  return writer.Store(writer.Add("Concat", std::move(parts), spec.attributes), {2, 0, 1});
}

// Inputs: a, its scale and zero point, the same of b, c of scale alpha * a * b, and, if the result is
// quantised, its scale and zero point.
BuiltOp BuildQGemm(const NodeSpec& spec) {
  NeedInputs(spec, 6, 9);
  QLinearWriter writer(spec);
  const bool transposed = spec.Int("transB", 0) != 0;
  const std::string a = writer.Real({0, 1, 2});
  const std::string b = writer.Real({3, 4, 5}, AxisOfScales(spec, 4, transposed ? 0 : 1));
  std::vector<std::string> inputs = {a, b};
  if (spec.HasInput(6)) {
    std::string scale = writer.Add("Mul", {writer.In(4), writer.In(1)});
    if (spec.Float("alpha", 1) != 1) scale = writer.Add("Mul", {scale, writer.Float(spec.Float("alpha", 1))});
    inputs.push_back(writer.Add("Mul", {writer.AsFloats(writer.In(6)), scale}));
  }
  const bool stores = spec.HasInput(7);
  const std::string y = writer.Add("Gemm", std::move(inputs), spec.attributes, stores ? "" : writer.Out(0));
  return stores ? writer.Store(y, {0, 7, 8}) : writer.Take();
}

// The product of integers as floats: (a * b) times both scales, and a bias.
BuiltOp ScaledProduct(QLinearWriter& writer, std::vector<std::string> integers, const std::string& scale,
                      const std::string& bias) {
  const std::string product = writer.AsFloats(writer.Add("MatMulInteger", std::move(integers)));
  if (bias.empty()) {
    writer.Add("Mul", {product, scale}, {}, writer.Out(0));
  } else {
    writer.Add("Add", {writer.Add("Mul", {product, scale}), bias}, {}, writer.Out(0));
  }
  return writer.Take();
}

std::string InOrNone(const NodeSpec& spec, size_t slot) {
  return spec.HasInput(slot) ? spec.input_names[slot] : "";
}

// Inputs: a, b, their scales, their zero points, bias.
BuiltOp BuildMatMulIntegerToFloat(const NodeSpec& spec) {
  NeedInputs(spec, 4, 7);
  QLinearWriter writer(spec);
  const std::string scale = writer.Add("Mul", {writer.In(2), writer.In(3)});
  return ScaledProduct(writer, {writer.In(0), writer.In(1), InOrNone(spec, 4), InOrNone(spec, 5)}, scale,
                       InOrNone(spec, 6));
}

// Adds what DynamicQuantizeLinear computes of the node's first input: y, scale and zero point, to these
// names. The range covers 0; one of a single number has scale 1 / 255 of nothing, and is stored as 0.
struct DynamicNames {
  std::string y, scale, zero_point;
};
DynamicNames AddDynamic(QLinearWriter& writer, const DynamicNames& out) {
  const std::string& x = writer.In(0);
  const std::string zero = writer.Float(0), levels = writer.Float(255);
  const auto end = [&](const char* reduce, const char* with_zero) {
    return writer.Add(with_zero, {writer.Add(reduce, {x}, {{"keepdims", int64_t{0}}}), zero});
  };
  const std::string low = end("ReduceMin", "Min"), high = end("ReduceMax", "Max");
  const std::string scale = writer.Add("Div", {writer.Add("Sub", {high, low}), levels}, {}, out.scale);
  // A tensor of zeros has scale 0: 0 / 0 is stored as 0.
  const std::string steps = writer.Add("Div", {writer.Add("Neg", {low}), scale});
  const std::string rounded = writer.Add("Round", {writer.Add("Clip", {steps, zero, levels})});
  const std::string point = writer.Add("Where", {writer.Add("IsNaN", {rounded}), zero, rounded});
  const std::string zero_point =
      writer.Add("Cast", {point}, {{"to", int64_t{OnnxTypeNumber(DataType::kU8)}}}, out.zero_point);
  return {writer.Add("QuantizeLinear", {x, scale, zero_point}, {}, out.y), scale, zero_point};
}

BuiltOp BuildDynamicQuantizeLinear(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  QLinearWriter writer(spec);
  const auto name = [&](size_t i) { return i < spec.output_names.size() ? spec.output_names[i] : ""; };
  AddDynamic(writer, {name(0), name(1), name(2)});
  return writer.Take();
}

// Inputs: a, to be quantised, b, scale and zero point of b, bias.
BuiltOp BuildDynamicQuantizeMatMul(const NodeSpec& spec) {
  NeedInputs(spec, 3, 5);
  QLinearWriter writer(spec);
  const DynamicNames a = AddDynamic(writer, {});
  const std::string scale = writer.Add("Mul", {a.scale, writer.In(2)});
  return ScaledProduct(writer, {a.y, writer.In(1), a.zero_point, InOrNone(spec, 3)}, scale,
                       InOrNone(spec, 4));
}

}  // namespace

std::vector<OpImporter> QLinearImporters() {
  const auto binary = [](const char* type) {
    return [type](const NodeSpec& spec) { return BuildQLinearBinary(spec, type); };
  };
  const auto unary = [](const char* type) {
    return [type](const NodeSpec& spec) { return BuildQLinearUnary(spec, type); };
  };
  return {{"QLinearConv", BuildQLinearConv},
          {"QLinearMatMul", BuildQLinearMatMul},
          {"DynamicQuantizeLinear", BuildDynamicQuantizeLinear},
          {"com.microsoft.QLinearConv", BuildQLinearConv},
          {"com.microsoft.QLinearAdd", binary("Add")},
          {"com.microsoft.QLinearMul", binary("Mul")},
          {"com.microsoft.QLinearConcat", BuildQLinearConcat},
          {"com.microsoft.QLinearSigmoid", unary("Sigmoid")},
          {"com.microsoft.QLinearLeakyRelu", unary("LeakyRelu")},
          {"com.microsoft.QLinearAveragePool", unary("AveragePool")},
          {"com.microsoft.QLinearGlobalAveragePool", unary("GlobalAveragePool")},
          {"com.microsoft.QLinearSoftmax", BuildQLinearSoftmax},
          {"com.microsoft.QGemm", BuildQGemm},
          {"com.microsoft.MatMulIntegerToFloat", BuildMatMulIntegerToFloat},
          {"com.microsoft.DynamicQuantizeMatMul", BuildDynamicQuantizeMatMul}};
}

}  // namespace tilesmith
