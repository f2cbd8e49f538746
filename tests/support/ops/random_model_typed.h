// Parts of random models beside float arithmetic: tensors of integers, bools and float16, all of whose
// results are exact, quantised ones, and operators that are rarer than those of random_model.cc.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/ops/random_model_writer.h"

namespace tilesmith {

class TypedWriter : public ModelWriter {
 public:
  using ModelWriter::ModelWriter;

 protected:
  // What some operators make of whole numbers, as floats.
  ModelTensor Typed() {
    ModelTensor value = Whole();
    const int64_t steps = Between(1, 5);
    for (int64_t i = 0; i < steps; ++i) {
      const std::string before = value.name;
      value = TypedStep(value);
      if (value.size() > kMaxSize) value = ReducedWhole(value);
      if (value.name != before) typed_.push_back(value);
    }
    return Binary("Mul", Cast(value, kFloat), Number(0.125));
  }

  ModelTensor Sampled() {
    const ModelTensor x = Image();
    const Shape places = {x.shape[0], SizeOr(Between(1, 6)), SizeOr(Between(1, 6)), 2};
    const ModelTensor grid = Floats(places, -1.2F, 1.2F);
    const Shape shape = {x.shape[0], x.shape[1], places[1], places[2]};
    return Node("GridSample", {x.name, grid.name}, shape, [&](auto& node) {
      SetString(node, "mode", "linear");
      SetString(node, "padding_mode",
                random_.Pick(std::vector<std::string>{"zeros", "border", "reflection"}));
      SetInt(node, "align_corners", Between(0, 1));
    });
  }

  // With a slope for all, for each channel, for each index of the last axis or for each element.
  ModelTensor Sloped(const ModelTensor& x) {
    Shape slopes = x.shape;
    const int64_t kept = x.rank() == 0 ? 3 : Between(0, 3);
    if (kept == 0) slopes = {1};
    if (kept == 1) slopes = {x.shape.back()};
    if (kept == 2 && x.rank() > 1) {
      slopes.assign(x.rank() - 1, 1);
      slopes[0] = x.shape[1];
    }
    return Node("PRelu", {x.name, Floats(slopes).name}, x.shape);
  }

  // With either side transposed, and a third matrix that broadcasts or none.
  ModelTensor Gemm(const ModelTensor& x) {
    const bool turned = Once(3), turns = Once(2);
    const int64_t m = x.shape[turned ? 1 : 0], k = x.shape[turned ? 0 : 1], n = Size();
    const float scale = 1 / std::sqrt(static_cast<float>(std::max<int64_t>(k, 1)));
    std::vector<std::string> inputs = {x.name, Floats(turns ? Shape{n, k} : Shape{k, n}, -scale, scale).name};
    const std::vector<Shape> added = {{n}, {1}, {m, 1}, {1, n}, {m, n}, {}};
    if (Once(2)) inputs.push_back(Floats(random_.Pick(added)).name);
    return Node("Gemm", inputs, {m, n}, [&](auto& node) {
      SetInt(node, "transA", turned), SetInt(node, "transB", turns);
      if (Once(2)) SetFloat(node, "alpha", 0.5F), SetFloat(node, "beta", 2);
    });
  }

  // A tensor cut into parts, and one of them, or two together again.
  ModelTensor Divided() {
    const ModelTensor x = Pick(1);
    const int64_t axis = Axis(x), parts = Between(2, 3);
    std::vector<int64_t> sizes;
    int64_t rest = x.shape[axis];
    for (int64_t i = 1; i < parts; ++i) {
      sizes.push_back(Between(zeros_ || rest == 0 ? 0 : 1, rest));
      rest -= sizes.back();
    }
    sizes.push_back(rest);
    if (!zeros_ && rest == 0) return Map("Neg", x);
    std::vector<ModelTensor> results;
    for (const int64_t size : sizes) {
      results.push_back({Fresh(), x.shape});
      results.back().shape[axis] = size;
    }
    std::vector<std::string> names;
    for (const ModelTensor& result : results) names.push_back(result.name);
    onnx::NodeProto& node = model_.Node("Split", {x.name, Ints(sizes)}, names);
    SetInt(node, "axis", axis);
    if (Once(2)) return random_.Pick(results);
    Shape shape = x.shape;
    shape[axis] = sizes[0] + sizes.back();
    return Node("Concat", {results.back().name, results[0].name}, shape,
                [&](auto& node) { SetInt(node, "axis", axis); });
  }

  // Bytes from an input of the model on, which nothing before them rounds, so that they are the same however
  // they are computed; moved and multiplied as bytes. Weights are small enough that no runtime saturates.
  ModelTensor Quantized() {
    ModelTensor x = inputs_[Between(0, std::ssize(inputs_) - 1)];
    const ModelTensor scale = Floats({}, 0.01F, 0.01F), zero = Byte(Between(100, 140));
    const auto stored = [&](const ModelTensor& real) {
      const ModelTensor bytes = Node("QuantizeLinear", {real.name, scale.name, zero.name}, real.shape);
      return Node("DequantizeLinear", {bytes.name, scale.name, zero.name}, real.shape);
    };
    x = stored(x);
    if (x.rank() > 0 && Once(2)) x = stored(Transpose(x, Order(x.rank())));
    const bool image = x.rank() == 4 && x.shape[2] * x.shape[3] > 0;
    if (image && Once(3)) x = stored(MaxPooled(x));
    if (x.rank() == 0 || x.rank() > 4 || Once(4)) return x;
    const int64_t columns = Channels(), rows = image ? x.shape[1] : x.shape.back();
    Shape shape = x.shape;
    shape[image ? 1 : x.rank() - 1] = columns;
    const ModelTensor weights = SmallBytes(image ? Shape{columns, rows, 1, 1} : Shape{rows, columns});
    const bool each = Once(2);  // a scale for each channel
    const ModelTensor scales = each ? Floats({columns}, 0.01F, 0.02F) : Floats({}, 0.015F, 0.015F);
    const ModelTensor real =
        Node("DequantizeLinear", {weights.name, scales.name}, weights.shape, [&](auto& node) {
          if (each) SetInt(node, "axis", image ? 0 : 1);
        });
    return Node(image ? "Conv" : "MatMul", {x.name, real.name}, shape);
  }

  // Rarer ops on floats.
  ModelTensor Rarer() {
    switch (Between(0, 9)) {
      case 0: {
        const ModelTensor x = Pick(1, 5);
        return Node("CumSum", {x.name, Scalar(Axis(x))}, x.shape,
                    [&](auto& node) { SetInt(node, "reverse", Between(0, 1)); });
      }
      case 1: {
        const ModelTensor x = Pick(2, 5);
        return Node("Trilu", {x.name, Scalar(Between(-2, 2))}, x.shape,
                    [&](auto& node) { SetInt(node, "upper", Between(0, 1)); });
      }
      case 2: {
        const ModelTensor x = Conv(Image(), 4 * Between(1, 4), 1, 1);
        const Shape shape = {x.shape[0], x.shape[1] / 4, 2 * x.shape[2], 2 * x.shape[3]};
        return Node("DepthToSpace", {x.name}, shape, [&](auto& node) {
          SetInt(node, "blocksize", 2);
          SetString(node, "mode", Once(2) ? "DCR" : "CRD");
        });
      }
      case 3:
        return Resized(Image());
      case 4:
        return ConvTransposed(Image());
      case 5:
        return GatheredElements(Pick(1, 5));
      case 6: {
        const ModelTensor x = Image();
        return Node("LRN", {x.name}, x.shape, [&](auto& node) { SetInt(node, "size", 3); });
      }
      case 7: {
        const ModelTensor x = Pick(3, 3), y = Map("Tanh", x);
        return Node("Einsum", {x.name, y.name}, {x.shape[0], x.shape[1], x.shape[1]},
                    [](auto& node) { SetString(node, "equation", "bik,bjk->bij"); });
      }
      case 8: {
        const ModelTensor x = Pick(1, 5);
        const int64_t axis = Axis(x);
        Shape shape = x.shape;
        shape[axis] = Between(shape[axis] > 0 && !zeros_ ? 1 : 0, shape[axis]);
        return Node("TopK", {x.name, Ints({shape[axis]})}, shape, [&](auto& node) {
          SetInt(node, "axis", axis);
          node.add_output(Fresh());
        });
      }
      default: {
        const ModelTensor x = Pick(1, 5);
        return Node("LpNormalization", {Binary("Add", Map("Abs", x), Number(0.5)).name}, x.shape,
                    [&](auto& node) {
                      SetInt(node, "axis", Axis(x));
                      SetInt(node, "p", Between(1, 2));
                    });
      }
    }
  }

  // An input of whole numbers from 0 to 9, or of bools.
  void AddTypedInput() {
    Shape shape(Between(0, 5));
    for (int64_t& size : shape) size = Size();
    while (ElementCount(shape) > kMaxSize) shape.pop_back();
    const ModelTensor value{Fresh(), shape, PickType()};
    model_.Input(value.name, std::vector<OnnxDim>(shape.begin(), shape.end()), value.type);
    typed_.push_back(value);
  }

  void MarkTypedOutputs() {
    for (const ModelTensor& value : typed_) {
      if (Once(6)) MarkOutput(value);
    }
  }

  std::vector<ModelTensor> inputs_;  // of the model, floats

 private:
  static constexpr int32_t kFloat = onnx::TensorProto::FLOAT, kBool = onnx::TensorProto::BOOL,
                           kInt64 = onnx::TensorProto::INT64, kInt32 = onnx::TensorProto::INT32;

  int32_t PickType() {
    return random_.Pick(std::vector<int32_t>{kInt32, kInt64, kInt64, kBool, onnx::TensorProto::UINT8,
                                             onnx::TensorProto::INT8, onnx::TensorProto::FLOAT16});
  }

  ModelTensor TypedNode(const std::string& type, const std::vector<std::string>& inputs, const Shape& shape,
                        int32_t element, const std::function<void(onnx::NodeProto&)>& attribute = {}) {
    ModelTensor value = Node(type, inputs, shape, attribute);
    value.type = element;
    return value;
  }

  std::string Scalar(int64_t number) {
    const std::string name = Fresh();
    model_.Ints(name, {number});
    model_.graph().mutable_initializer(model_.graph().initializer_size() - 1)->clear_dims();
    return name;
  }

  ModelTensor Cast(const ModelTensor& x, int32_t type) {
    if (x.type == type) return x;
    return TypedNode("Cast", {x.name}, x.shape, type, [&](auto& node) { SetInt(node, "to", type); });
  }

  ModelTensor Whole() {
    return typed_.empty() || Once(3) ? Numbers(Pick().shape, kInt64) : random_.Pick(typed_);
  }

  // Constants from 1 to 9.
  ModelTensor Numbers(const Shape& shape, int32_t type) {
    std::vector<int64_t> values(ElementCount(shape));
    for (int64_t& value : values) value = Between(1, 9);
    const ModelTensor flat{Ints(values), {std::ssize(values)}, kInt64};
    return Cast(ReshapedWhole(flat, shape), type);
  }

  ModelTensor ReshapedWhole(const ModelTensor& x, const Shape& shape) {
    return TypedNode("Reshape", {x.name, Ints(shape)}, shape, x.type,
                     [](auto& node) { SetInt(node, "allowzero", 1); });
  }

  // As a type that arithmetic is defined for, of numbers that stay small.
  ModelTensor Arithmetic(const ModelTensor& x) {
    return x.type == kInt32 || x.type == kInt64 ? x : Cast(x, Once(2) ? kInt32 : kInt64);
  }
  ModelTensor Small(const ModelTensor& x) {
    return TypedNode("Mod", {x.name, Numbers({}, x.type).name}, x.shape, x.type);
  }

  ModelTensor OtherWhole(const ModelTensor& x) {
    for (const ModelTensor& value : typed_) {
      if (value.type == x.type && Fits(value.shape, x.shape) && Once(3)) return value;
    }
    Shape shape = x.shape;
    for (int64_t& size : shape) size = Once(2) ? size : 1;
    if (Once(2)) shape.erase(shape.begin(), shape.begin() + Between(0, x.rank()));
    return Numbers(shape, x.type);
  }

  ModelTensor TypedStep(const ModelTensor& given) {
    switch (Between(0, 6)) {
      case 0: {
        const ModelTensor x = Arithmetic(given), y = OtherWhole(x);
        const auto type = random_.Pick(std::vector<std::string>{"Add", "Sub", "Mul", "Min", "Max"});
        const ModelTensor result = TypedNode(type, {x.name, y.name}, Broadcast(x.shape, y.shape), x.type);
        return type == "Mul" ? Small(result) : result;
      }
      case 1: {
        const ModelTensor x = Arithmetic(given), y = OtherWhole(x);
        const auto type = random_.Pick(
            std::vector<std::string>{"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"});
        return TypedNode(type, {x.name, y.name}, Broadcast(x.shape, y.shape), kBool);
      }
      case 2: {
        const ModelTensor x = Cast(given, kBool), y = OtherWhole(x);
        if (Once(4)) return TypedNode("Not", {x.name}, x.shape, kBool);
        return TypedNode(random_.Pick(std::vector<std::string>{"And", "Or", "Xor"}), {x.name, y.name},
                         Broadcast(x.shape, y.shape), kBool);
      }
      case 3: {
        const ModelTensor x = Arithmetic(given), y = OtherWhole(x);
        const ModelTensor mask = Cast(OtherWhole(x), kBool);
        const Shape shape = Broadcast(Broadcast(x.shape, y.shape), mask.shape);
        if (!Fits(Broadcast(x.shape, y.shape), mask.shape)) return x;
        return TypedNode("Where", {mask.name, x.name, y.name}, shape, x.type);
      }
      case 4:
        return ReducedWhole(given);
      case 5: {
        const ModelTensor x = Arithmetic(given);
        const auto type = random_.Pick(std::vector<std::string>{"Abs", "Neg", "Sign"});
        return TypedNode(type, {x.name}, x.shape, x.type);
      }
      default:
        return MovedWhole(given);
    }
  }

  ModelTensor ReducedWhole(const ModelTensor& given) {
    const ModelTensor x = Arithmetic(given);
    if (x.rank() == 0) return x;
    const int64_t axis = Axis(x);
    Shape shape = x.shape;
    const bool some = shape[axis] > 0;
    if (Once(4) && some) {
      const ModelTensor narrow = Cast(x, kInt32);  // which ONNX Runtime has these for
      shape[axis] = 1;
      return TypedNode(Once(2) ? "ArgMax" : "ArgMin", {narrow.name}, shape, kInt64,
                       [&](auto& node) { SetInt(node, "axis", axis); });
    }
    if (Once(4)) return Small(TypedNode("CumSum", {x.name, Scalar(axis)}, x.shape, x.type));
    const std::string type =
        some ? random_.Pick(std::vector<std::string>{"ReduceSum", "ReduceMax", "ReduceMin"}) : "ReduceSum";
    const bool keep = Once(2);
    keep ? void(shape[axis] = 1) : void(shape.erase(shape.begin() + axis));
    const ModelTensor result = TypedNode(type, {x.name, Ints({axis})}, shape, x.type,
                                         [&](auto& node) { SetInt(node, "keepdims", keep); });
    return type == "ReduceSum" ? Small(result) : result;
  }

  ModelTensor MovedWhole(const ModelTensor& x) {
    if (x.rank() == 0) return ReshapedWhole(x, {1});
    const int64_t axis = Axis(x), size = x.shape[axis];
    Shape shape = x.shape;
    switch (Between(0, 4)) {
      case 0: {
        const std::vector<int64_t> order = Order(x.rank());
        for (int64_t i = 0; i < x.rank(); ++i) shape[i] = x.shape[order[i]];
        return TypedNode("Transpose", {x.name}, shape, x.type,
                         [&](auto& node) { SetInts(node, "perm", order); });
      }
      case 1: {
        std::vector<int64_t> indices(size == 0 ? 0 : Count(6));
        for (int64_t& index : indices) index = Between(-size, size - 1);
        shape[axis] = std::ssize(indices);
        return TypedNode("Gather", {x.name, Ints(indices)}, shape, x.type,
                         [&](auto& node) { SetInt(node, "axis", axis); });
      }
      case 2: {
        shape[axis] *= 2;
        return TypedNode("Concat", {x.name, x.name}, shape, x.type,
                         [&](auto& node) { SetInt(node, "axis", axis); });
      }
      case 3: {
        const int64_t first = Between(0, size - 1 + (size == 0));
        if (size == 0) return x;
        shape[axis] = first + 1;
        return TypedNode("Slice", {x.name, Ints({first}), Ints({INT64_MIN}), Ints({axis}), Ints({-1})}, shape,
                         x.type);
      }
      default: {
        if (x.rank() > 5) return x;
        shape.insert(shape.begin(), Count(3));
        return TypedNode("Expand", {x.name, Ints(shape)}, shape, x.type);
      }
    }
  }

  ModelTensor Resized(const ModelTensor& x) {
    const bool nearest = Once(2);
    const Shape shape = {x.shape[0], x.shape[1], 2 * x.shape[2], 2 * x.shape[3]};
    return Node("Resize", {x.name, "", "", Ints(shape)}, shape, [&](auto& node) {
      SetString(node, "mode", nearest ? "nearest" : "linear");
      SetString(node, "coordinate_transformation_mode", nearest ? "asymmetric" : "half_pixel");
      if (nearest) SetString(node, "nearest_mode", "floor");
    });
  }

  ModelTensor ConvTransposed(const ModelTensor& x) {
    if (x.shape[1] == 0) return Map("Tanh", x);
    const int64_t channels = Channels(), kernel = Between(2, 3);
    const Shape shape = {x.shape[0], channels, (x.shape[2] - 1) * 2 + kernel, (x.shape[3] - 1) * 2 + kernel};
    const ModelTensor weights = Floats({x.shape[1], channels, kernel, kernel}, -0.2F, 0.2F);
    return Node("ConvTranspose", {x.name, weights.name}, shape, [&](auto& node) {
      SetInts(node, "strides", {2, 2});
      SetInts(node, "kernel_shape", {kernel, kernel});
    });
  }

  ModelTensor GatheredElements(const ModelTensor& x) {
    const int64_t axis = Axis(x);
    std::vector<int64_t> indices(x.size());
    for (int64_t& index : indices) index = Between(-x.shape[axis], x.shape[axis] - 1);
    const ModelTensor flat{Ints(indices), {x.size()}, kInt64};
    return Node("GatherElements", {x.name, ReshapedWhole(flat, x.shape).name}, x.shape,
                [&](auto& node) { SetInt(node, "axis", axis); });
  }

  ModelTensor MaxPooled(const ModelTensor& x) {
    return Node("MaxPool", {x.name}, x.shape, [](auto& node) {
      SetInts(node, "kernel_shape", {3, 3});
      SetInts(node, "pads", {1, 1, 1, 1});
    });
  }
  ModelTensor Byte(int64_t value) {
    const std::string name = Fresh();
    model_.Weight(name, {}, onnx::TensorProto::UINT8).add_int32_data(static_cast<int32_t>(value));
    return {name, {}, onnx::TensorProto::UINT8};
  }
  ModelTensor SmallBytes(const Shape& shape) {
    const std::string name = Fresh();
    onnx::TensorProto& tensor = model_.Weight(name, shape, onnx::TensorProto::INT8);
    for (int64_t i = 0; i < ElementCount(shape); ++i) {
      tensor.add_int32_data(static_cast<int32_t>(Between(-60, 60)));
    }
    return {name, shape, onnx::TensorProto::INT8};
  }

  std::vector<ModelTensor> typed_;
};

}  // namespace tilesmith
