// Operators of com.microsoft that ONNX Runtime and its tools write when they optimise a model, as ONNX's own.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "layouts/base/sizes.h"
#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"

namespace tilesmith {
namespace {

// x behind the activation that the node names; parameters as the fused operators have them, in one list or
// by their names.
void Activate(const NodeSpec& spec, NodeWriter& writer, const std::string& x) {
  const std::string kind = spec.String("activation", "");
  std::vector<float> values = spec.Floats("activation_params", {});
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (spec.Has(name)) values.push_back(spec.Float(name, 0));
  }
  const auto need = [&](size_t count) {
    if (values.size() != count) {
      Refuse(spec, fmt::format("{} parameters of the activation \"{}\"", values.size(), kind));
    }
  };
  if (kind.empty()) {
    writer.Add("Identity", {x}, {}, writer.Out(0));
  } else if (kind == "Relu" || kind == "Sigmoid" || kind == "Tanh" || kind == "HardSwish") {
    writer.Add(kind, {x}, {}, writer.Out(0));
  } else if (kind == "LeakyRelu") {
    need(1);
    writer.Add(kind, {x}, {{"alpha", values[0]}}, writer.Out(0));
  } else if (kind == "HardSigmoid") {
    need(2);
    writer.Add(kind, {x}, {{"alpha", values[0]}, {"beta", values[1]}}, writer.Out(0));
  } else if (kind == "Clip") {
    need(2);
    writer.Add(kind, {x, writer.Float(values[0]), writer.Float(values[1])}, {}, writer.Out(0));
  } else {
    Refuse(spec, fmt::format("the activation \"{}\" is not supported", kind));
  }
}

Attributes Without(Attributes attributes, std::string_view prefix) {
  std::erase_if(attributes, [prefix](const auto& attribute) { return attribute.first.starts_with(prefix); });
  return attributes;
}

// Inputs: data, weights, bias, and what is added.
BuiltOp BuildFusedConv(const NodeSpec& spec) {
  NeedInputs(spec, 2, 4);
  NodeWriter writer(spec);
  std::vector<std::string> inputs = {writer.In(0), writer.In(1)};
  if (spec.HasInput(2)) inputs.push_back(writer.In(2));
  std::string x = writer.Add("Conv", inputs, Without(spec.attributes, "activation"));
  if (spec.HasInput(3)) x = writer.Add("Add", {x, writer.In(3)});
  Activate(spec, writer, x);
  return writer.Take();
}

BuiltOp BuildFusedGemm(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  NodeWriter writer(spec);
  Activate(spec, writer, writer.Add("Gemm", spec.input_names, Without(spec.attributes, "activation")));
  return writer.Take();
}

// The last two axes exchanged, or, of a batch, the first moved behind all but the last.
std::string Transposed(const NodeSpec& spec, NodeWriter& writer, size_t index, const char* suffix) {
  const int64_t rank = std::ssize(spec.inputs[index].shape);
  const std::string name = index == 0 ? "transA" : "transB", batch = std::string("transBatch") + suffix;
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (spec.Int(batch, 0) != 0 && rank > 2) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (spec.Int(name, 0) != 0 && rank > 1) std::swap(perm[rank - 2], perm[rank - 1]);
  if (std::ranges::is_sorted(perm)) return writer.In(index);
  return writer.Transpose(writer.In(index), perm);
}

BuiltOp BuildFusedMatMul(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  NodeWriter writer(spec);
  const std::string a = Transposed(spec, writer, 0, "A"), b = Transposed(spec, writer, 1, "B");
  const float alpha = spec.Float("alpha", 1);
  if (alpha == 1) {
    writer.Add("MatMul", {a, b}, {}, writer.Out(0));
  } else {
    writer.Add("Mul", {writer.Add("MatMul", {a, b}), writer.Float(alpha)}, {}, writer.Out(0));
  }
  return writer.Take();
}

// Gelu of x, or of x + bias.
BuiltOp BuildGelu(const NodeSpec& spec, const std::string& approximate) {
  NeedInputs(spec, 1, 2);
  NodeWriter writer(spec);
  const std::string x = spec.HasInput(1) ? writer.Add("Add", {writer.In(0), writer.In(1)}) : writer.In(0);
  writer.Add("Gelu", {x}, {{"approximate", approximate}}, writer.Out(0));
  return writer.Take();
}

// x * sigmoid(alpha x)
BuiltOp BuildQuickGelu(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  NodeWriter writer(spec);
  const std::string scaled = writer.Add("Mul", {writer.In(0), writer.Float(spec.Float("alpha", 1.702f))});
  writer.Add("Mul", {writer.In(0), writer.Add("Sigmoid", {scaled})}, {}, writer.Out(0));
  return writer.Take();
}

// Inputs: x, what skips, scale, shift, bias of x. Outputs: the normalized sum, and as the fourth the sum.
BuiltOp BuildSkipLayerNorm(const NodeSpec& spec) {
  NeedInputs(spec, 3, 5);
  NodeWriter writer(spec);
  std::string x = writer.In(0);
  if (spec.HasInput(4)) x = writer.Add("Add", {x, writer.In(4)});
  const bool wants_sum = spec.output_names.size() > 3 && !writer.Out(3).empty();
  x = writer.Add("Add", {x, writer.In(1)}, {}, wants_sum ? writer.Out(3) : "");
  std::vector<std::string> inputs = {x, writer.In(2)};
  if (spec.HasInput(3)) inputs.push_back(writer.In(3));
  writer.Add("LayerNormalization", inputs, {{"epsilon", spec.Float("epsilon", 1e-12f)}}, writer.Out(0));
  return writer.Take();
}

// What attention adds to its scores: 0 where a mask has something positive, else mask_filter_value; and a
// bias.
class ScoreMask {
 public:
  ScoreMask(const NodeSpec& spec, NodeWriter& writer) : spec_(spec), writer_(writer) {}

  // Input `index`, as {batch}, how many keys count; {batch, keys}; or {batch, rows, keys}.
  void AddMask(size_t index, int64_t keys) {
    if (!spec_.HasInput(index)) return;
    const Shape& shape = spec_.inputs[index].shape;
    const std::string& mask = writer_.In(index);
    std::string kept;
    if (shape.size() == 1) {
      NeedFoldable(spec_, {keys});
      std::vector<int64_t> numbers(keys);
      std::iota(numbers.begin(), numbers.end(), 0);
      const std::string lengths = writer_.Add("Cast", {mask}, {{"to", int64_t{7}}});
      kept = writer_.Add("Less", {writer_.Ints(numbers), writer_.Unsqueeze(lengths, {1, 2, 3})});
    } else if (shape.size() == 2 && shape[1] == keys) {
      kept = Positive(writer_.Unsqueeze(mask, {1, 2}));
    } else if (shape.size() == 3 && shape[2] == keys) {
      kept = Positive(writer_.Unsqueeze(mask, {1}));
    } else {
      Refuse(spec_, fmt::format("a mask of shape {} is not supported", ShapeToString(shape)));
    }
    const float filter = spec_.Float("mask_filter_value", -10000.0f);
    Plus(writer_.Add("Where", {kept, writer_.Float(0), writer_.Float(filter)}));
  }
  void AddBias(size_t index) {
    if (spec_.HasInput(index)) Plus(writer_.In(index));
  }
  const std::string& name() const { return name_; }  // "" when nothing is added

 private:
  std::string Positive(const std::string& mask) {
    const std::string numbers = writer_.Add("Cast", {mask}, {{"to", int64_t{7}}});
    return writer_.Add("Greater", {numbers, writer_.Ints({0})});
  }
  void Plus(const std::string& more) { name_ = name_.empty() ? more : writer_.Add("Add", {name_, more}); }

  const NodeSpec& spec_;
  NodeWriter& writer_;
  std::string name_;
};

int64_t HeadsOf(const NodeSpec& spec, std::initializer_list<int64_t> sizes) {
  const int64_t heads = spec.Int("num_heads", 0);
  for (const int64_t size : sizes) {
    if (heads < 1 || size % heads != 0) Refuse(spec, fmt::format("num_heads {} of {}", heads, size));
  }
  return heads;
}

// Attention of the default domain.
BuiltOp Attend(const NodeSpec& spec, NodeWriter& writer, const std::vector<std::string>& qkv, int64_t heads,
               const ScoreMask& mask) {
  for (size_t i = 1; i < spec.output_names.size(); ++i) {
    if (!writer.Out(i).empty()) Refuse(spec, "keys and values as outputs are not supported");
  }
  Attributes attributes = {{"q_num_heads", heads}, {"kv_num_heads", heads}};
  if (spec.Float("scale", 0) != 0) attributes.emplace("scale", spec.Float("scale", 0));
  if (spec.Int("unidirectional", 0) != 0) attributes.emplace("is_causal", int64_t{1});
  std::vector<std::string> inputs = qkv;
  if (!mask.name().empty()) inputs.push_back(mask.name());
  ModelNode node{.op_type = "Attention", .inputs = std::move(inputs), .outputs = {writer.Out(0)}};
  node.attributes = std::move(attributes);
  node.opset = 23;
  writer.Append(std::move(node));
  return writer.Take();
}

// x[..., begin[i] : begin[i + 1]] for the sizes given, which are all of the last axis.
std::vector<std::string> Split(NodeWriter& writer, const std::string& x, const std::vector<int64_t>& sizes) {
  std::vector<std::string> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    parts.push_back(
        writer.Add("Slice", {x, writer.Ints({begin}), writer.Ints({begin + size}), writer.Ints({-1})}));
    begin += size;
  }
  return parts;
}

// Inputs: x {batch, rows, width}, weights and bias of Q, K and V side by side, mask, past, bias of the
// scores.
BuiltOp BuildContribAttention(const NodeSpec& spec) {
  NeedInputs(spec, 2, 7);
  for (const size_t index : {4, 6}) {
    if (spec.HasInput(index)) Refuse(spec, "a cache of keys and values is not supported");
  }
  if (spec.Int("do_rotary", 0) != 0) Refuse(spec, "do_rotary is not supported");
  const Shape& x = ShapeOfRank(spec, 0, 3);
  const int64_t columns = ShapeOfRank(spec, 1, 2)[1];
  std::vector<int64_t> sizes = spec.Ints("qkv_hidden_sizes", {columns / 3, columns / 3, columns / 3});
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[2] < 1 || sizes[0] != sizes[1] || sizes[0] > columns ||
      sizes[2] != columns - 2 * sizes[0]) {
    Refuse(spec, fmt::format("qkv_hidden_sizes do not fit {} columns", columns));
  }
  const int64_t heads = HeadsOf(spec, {sizes[0], sizes[2]});
  NodeWriter writer(spec);
  std::string all = writer.Add("MatMul", {writer.In(0), writer.In(1)});
  if (spec.HasInput(2)) all = writer.Add("Add", {all, writer.In(2)});
  ScoreMask mask(spec, writer);
  mask.AddMask(3, x[1]);
  mask.AddBias(5);
  return Attend(spec, writer, Split(writer, all, sizes), heads, mask);
}

// Inputs: Q, K and V, all in one {batch, rows, heads, 3, width}, or K and V in one; then their bias, a mask
// of keys, and a bias of the scores. K and V may have their heads apart, {batch, heads, keys, width}.
BuiltOp BuildMultiHeadAttention(const NodeSpec& spec) {
  NeedInputs(spec, 1, 10);
  for (size_t index = 6; index < spec.inputs.size(); ++index) {
    if (spec.HasInput(index)) Refuse(spec, "a cache of keys and values is not supported");
  }
  NodeWriter writer(spec);
  // Part `i` of a tensor {batch, rows, heads, parts, width}, as {batch, rows, heads * width}.
  const auto part = [&](size_t index, int64_t i) {
    const Shape& shape = spec.inputs[index].shape;
    const std::string cut =
        writer.Add("Slice", {writer.In(index), writer.Ints({i}), writer.Ints({i + 1}), writer.Ints({3})});
    return writer.Reshape(cut, {shape[0], shape[1], (Checked(shape[2]) * shape[4]).value()});
  };
  const auto packed = [&](size_t index, int64_t parts) {
    if (!spec.HasInput(index)) return false;
    const Shape& shape = spec.inputs[index].shape;
    return shape.size() == 5 && shape[3] == parts;
  };
  std::vector<std::string> qkv;
  int64_t keys = 0, width = 0, values = 0;
  if (packed(0, 3)) {
    for (int64_t i = 0; i < 3; ++i) qkv.push_back(part(0, i));
    const Shape& shape = spec.inputs[0].shape;
    keys = shape[1], width = values = (Checked(shape[2]) * shape[4]).value();
  } else {
    width = ShapeOfRank(spec, 0, 3)[2];
    qkv.push_back(writer.In(0));
    if (packed(1, 2)) {
      for (int64_t i = 0; i < 2; ++i) qkv.push_back(part(1, i));
      keys = spec.inputs[1].shape[1], values = width;
    } else {
      NeedInputs(spec, 3, 10);
      for (const size_t index : {size_t{1}, size_t{2}}) {
        const Shape& shape = spec.inputs[index].shape;
        if (shape.size() != 3 && shape.size() != 4) ShapeOfRank(spec, index, 3);
        if (spec.HasInput(3) && shape.size() == 4) Refuse(spec, "a bias of keys whose heads are apart");
        qkv.push_back(writer.In(index));
        keys = shape[shape.size() - 2];
        values = shape.size() == 3 ? shape[2] : (Checked(shape[1]) * shape[3]).value();
      }
    }
  }
  const int64_t heads = HeadsOf(spec, {width, values});
  if (spec.HasInput(3)) {
    if (spec.inputs[3].shape != Shape{(Checked(width) * 2 + values).value()}) {
      Refuse(spec, fmt::format("a bias of shape {}", ShapeToString(spec.inputs[3].shape)));
    }
    const std::vector<std::string> biases = Split(writer, writer.In(3), {width, width, values});
    for (size_t i = 0; i < 3; ++i) qkv[i] = writer.Add("Add", {qkv[i], biases[i]});
  }
  ScoreMask mask(spec, writer);
  mask.AddMask(4, keys);
  mask.AddBias(5);
  return Attend(spec, writer, qkv, heads, mask);
}

// Numbers of `bits` bits, packed into bytes from the lowest bits on, in rows that begin with a byte.
struct PackedRows {
  const uint8_t* bytes;
  int64_t row_bytes, bits;

  int At(int64_t row, int64_t column) const {
    const int64_t bit = column * bits;
    return bytes[row * row_bytes + bit / 8] >> (bit % 8) & ((1 << bits) - 1);
  }
};

// The bytes of a constant input; refuses unless there are `count`.
const uint8_t* ConstantBytes(const NodeSpec& spec, size_t index, int64_t count) {
  NeedKnown(spec, index, "packed weights");
  const Tensor& packed = spec.Constant(index);
  if (packed.type() != DataType::kU8 || packed.size() != count) {
    Refuse(spec, fmt::format("input {} has {} numbers of type {}, {} of type u8 are needed", index,
                             packed.size(), DataTypeName(packed.type()), count));
  }
  return packed.data<uint8_t>();
}

// Inputs: x, weights of N rows in blocks of K, a scale of each block, zero points, packed as weights are or
// as floats, an order of the columns, bias. The weights become floats.
BuiltOp BuildMatMulNBits(const NodeSpec& spec) {
  NeedInputs(spec, 3, 6);
  if (spec.HasInput(4)) Refuse(spec, "an order of the columns (g_idx) is not supported");
  const int64_t k = spec.Int("K", 0), n = spec.Int("N", 0), bits = spec.Int("bits", 4),
                block = spec.Int("block_size", 0);
  if (k < 1 || n < 1 || block < 1 || block > kMaxTensorElements || (bits != 2 && bits != 4 && bits != 8) ||
      block * bits % 8 != 0) {
    Refuse(spec, fmt::format("weights {}x{} of {} bits in blocks of {}", n, k, bits, block));
  }
  NeedFoldable(spec, {k, n});
  const int64_t blocks = CeilDiv(k, block), row_bytes = (Checked(blocks) * (block * bits / 8)).value();
  const PackedRows codes{ConstantBytes(spec, 1, (Checked(n) * row_bytes).value()), row_bytes, bits};
  NeedKnown(spec, 2, "scales");
  const std::vector<float> scales = ConstantFloats(spec, 2);
  PackedRows packed_zeros{nullptr, CeilDiv(blocks * bits, int64_t{8}), bits};
  std::vector<float> zeros;
  if (spec.HasInput(3) && spec.inputs[3].type == DataType::kU8) {
    packed_zeros.bytes = ConstantBytes(spec, 3, n * packed_zeros.row_bytes);
  } else if (spec.HasInput(3)) {
    NeedKnown(spec, 3, "zero points");
    zeros = ConstantFloats(spec, 3);
  }
  if (std::ssize(scales) != n * blocks || (!zeros.empty() && zeros.size() != scales.size())) {
    Refuse(spec, fmt::format("{} scales and {} zero points for {}x{} blocks", scales.size(), zeros.size(), n,
                             blocks));
  }
  Tensor weights({k, n});
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < k; ++column) {
      const int64_t in_row = column / block, at = row * blocks + in_row;
      const float zero = packed_zeros.bytes != nullptr ? static_cast<float>(packed_zeros.At(row, in_row))
                         : !zeros.empty()              ? zeros[at]
                                                       : static_cast<float>(1 << (bits - 1));
      weights.floats()[column * n + row] = (static_cast<float>(codes.At(row, column)) - zero) * scales[at];
    }
  }
  NodeWriter writer(spec);
  const bool floats = spec.inputs[0].type == DataType::kF32;
  std::string x = floats ? writer.In(0) : writer.Add("CastLike", {writer.In(0), writer.Float(0)});
  x = writer.Add("MatMul", {x, writer.Constant(std::move(weights))});
  if (!floats) x = writer.Add("CastLike", {x, writer.In(0)});
  if (spec.HasInput(5)) x = writer.Add("Add", {x, writer.In(5)});
  writer.Add("Identity", {x}, {}, writer.Out(0));
  return writer.Take();
}

}  // namespace

// com.microsoft's FusedConv, FusedGemm, FusedMatMul, Gelu, FastGelu, QuickGelu, BiasGelu,
// SkipLayerNormalization, Attention, MultiHeadAttention, MatMulNBits.
std::vector<OpImporter> ContribImporters() {
  return {{"com.microsoft.FusedConv", BuildFusedConv},
          {"com.microsoft.FusedGemm", BuildFusedGemm},
          {"com.microsoft.FusedMatMul", BuildFusedMatMul},
          {"com.microsoft.TransposeMatMul", BuildFusedMatMul},
          {"com.microsoft.Gelu", [](const NodeSpec& spec) { return BuildGelu(spec, "none"); }},
          {"com.microsoft.BiasGelu", [](const NodeSpec& spec) { return BuildGelu(spec, "none"); }},
          {"com.microsoft.FastGelu", [](const NodeSpec& spec) { return BuildGelu(spec, "tanh"); }},
          {"com.microsoft.QuickGelu", BuildQuickGelu},
          {"com.microsoft.SkipLayerNormalization", BuildSkipLayerNorm},
          {"com.microsoft.MatMulNBits", BuildMatMulNBits},
          {"com.microsoft.Attention", BuildContribAttention},
          {"com.microsoft.MultiHeadAttention", BuildMultiHeadAttention}};
}

}  // namespace tilesmith
