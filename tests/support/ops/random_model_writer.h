// A random model under construction: its tensors so far, and nodes that are added to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "layouts/tensor.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/random.h"

namespace tilesmith {

// A tensor of the model.
struct ModelTensor {
  std::string name;
  Shape shape;
  int32_t type = onnx::TensorProto::FLOAT;

  int64_t rank() const { return std::ssize(shape); }
  int64_t size() const { return ElementCount(shape); }
};

inline void SetFloat(onnx::NodeProto& node, const std::string& name, float value) {
  onnx::AttributeProto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

inline void SetString(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  onnx::AttributeProto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

// What sizes the tensors of a random model have.
enum class RandomSizes {
  kMixed,     // none is 0
  kSomeZero,  // some are
  kAllEqual,  // batch, channels, height and width are one number, so that only its place tells an axis
};

// Nodes and subgraphs that random models are made of.
class ModelWriter {
 public:
  ModelWriter(TestRandom& random, RandomSizes sizes)
      : random_(random), zeros_(sizes == RandomSizes::kSomeZero), model_(20) {
    if (sizes == RandomSizes::kAllEqual) equal_ = Between(2, 6);
    model_.proto.set_ir_version(9);
  }

 protected:
  static constexpr int64_t kMaxSize = 20000;  // of a tensor

  bool Once(int64_t in) { return random_.Integer(1, in) == 1; }
  int64_t Between(int64_t low, int64_t high) { return random_.Integer(low, high); }
  // One that may be 0 or has to be equal, where the model's are.
  int64_t SizeOr(int64_t mixed) { return equal_ > 0 ? equal_ : zeros_ && Once(8) ? 0 : mixed; }
  int64_t Size() { return SizeOr(random_.Pick(std::vector<int64_t>{1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17})); }
  // Positive.
  int64_t Channels() {
    return equal_ > 0 ? equal_ : random_.Pick(std::vector<int64_t>{1, 3, 4, 7, 8, 12, 16, 17, 24});
  }
  // A count of what there may be none of.
  int64_t Count(int64_t most) { return Between(zeros_ ? 0 : 1, most); }
  std::string Fresh() { return "t" + std::to_string(names_++); }

  void AddInput(const Shape& shape) {
    const ModelTensor value{Fresh(), shape};
    model_.Input(value.name, std::vector<OnnxDim>(shape.begin(), shape.end()));
    values_.push_back(value);
  }
  // With an Identity where it is an input of the model.
  void MarkOutput(const ModelTensor& value) {
    const std::string name = "out_" + value.name;
    model_.Node("Identity", {value.name}, {name});
    onnx::ValueInfoProto* output = model_.graph().add_output();
    output->set_name(name);
    auto* tensor = output->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(value.type);
    for (const int64_t size : value.shape) tensor->mutable_shape()->add_dim()->set_dim_value(size);
  }

  ModelTensor Floats(const Shape& shape, float low = -1, float high = 1) {
    std::vector<float> values(ElementCount(shape));
    FillUniform(values, random_.Next(), low, high);
    const std::string name = Fresh();
    model_.Floats(name, shape, values);
    return {name, shape};
  }
  ModelTensor Number(double value) {
    const std::string name = Fresh();
    model_.Floats(name, Once(3) ? Shape{1} : Shape{}, {static_cast<float>(value)});
    return {name, {}};
  }
  std::string Ints(const std::vector<int64_t>& values) {
    const std::string name = Fresh();
    model_.Ints(name, values);
    return name;
  }

  // A node with one output, of this shape; `attribute` sets what it has.
  ModelTensor Node(const std::string& type, const std::vector<std::string>& inputs, const Shape& shape,
                   const std::function<void(onnx::NodeProto&)>& attribute = {}) {
    const std::string name = Fresh();
    onnx::NodeProto& node = model_.Node(type, inputs, {name}, Once(2) ? "" : type + "_" + name);
    if (attribute) attribute(node);
    return {name, shape};
  }
  ModelTensor Map(const std::string& type, const ModelTensor& x,
                  const std::function<void(onnx::NodeProto&)>& attribute = {}) {
    return Node(type, {x.name}, x.shape, attribute);
  }

  static Shape Broadcast(const Shape& a, const Shape& b) {
    Shape shape(std::max(a.size(), b.size()), 1);
    for (const Shape* s : {&a, &b}) {
      for (size_t i = 0; i < s->size(); ++i) {
        int64_t& size = shape[shape.size() - s->size() + i];
        if (size == 1) size = (*s)[i];
      }
    }
    return shape;
  }
  static bool Fits(const Shape& a, const Shape& b) {
    for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
      const int64_t x = a[a.size() - i], y = b[b.size() - i];
      if (x != y && x != 1 && y != 1) return false;
    }
    return ElementCount(Broadcast(a, b)) <= kMaxSize;
  }
  ModelTensor Binary(const std::string& type, const ModelTensor& a, const ModelTensor& b) {
    return Node(type, {a.name, b.name}, Broadcast(a.shape, b.shape));
  }
  ModelTensor Either(const std::string& type, const ModelTensor& a, const ModelTensor& b) {
    return Once(2) ? Binary(type, a, b) : Binary(type, b, a);
  }

  ModelTensor Reshape(const ModelTensor& x, const Shape& shape) {
    if (x.shape == shape) return x;
    return Node("Reshape", {x.name, Ints(shape)}, shape, [](auto& node) { SetInt(node, "allowzero", 1); });
  }
  ModelTensor Transpose(const ModelTensor& x, const std::vector<int64_t>& order) {
    Shape shape;
    for (const int64_t axis : order) shape.push_back(x.shape[axis]);
    return Node("Transpose", {x.name}, shape, [&](auto& node) { SetInts(node, "perm", order); });
  }
  // Of nothing a sum.
  ModelTensor Reduce(const std::string& type, const ModelTensor& x, std::vector<int64_t> axes, bool keep) {
    if (x.size() == 0 && type != "ReduceSum") return Reduce("ReduceSum", x, std::move(axes), keep);
    Shape shape;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
      const bool reduced = std::ranges::find(axes, axis) != axes.end();
      if (!reduced) shape.push_back(x.shape[axis]);
      if (reduced && keep) shape.push_back(1);
    }
    if (Once(2)) {
      for (int64_t& axis : axes) axis -= x.rank();
    }
    return Node(type, {x.name, Ints(axes)}, shape, [&](auto& node) { SetInt(node, "keepdims", keep); });
  }
  ModelTensor Softmax(const ModelTensor& x, int64_t axis) {
    return Map(Once(6) ? "LogSoftmax" : "Softmax", x,
               [&](auto& node) { SetInt(node, "axis", Once(2) ? axis : axis - x.rank()); });
  }
  // x times constant weights over its last axis, with a bias or without.
  ModelTensor Dense(const ModelTensor& x, int64_t columns) {
    const int64_t k = x.shape.back();
    const auto scale = 1 / std::sqrt(static_cast<float>(std::max<int64_t>(k, 1)));
    Shape shape = x.shape;
    shape.back() = columns;
    const ModelTensor product = Node("MatMul", {x.name, Floats({k, columns}, -scale, scale).name}, shape);
    return Once(3) ? product : Either("Add", product, Floats({columns}));
  }
  ModelTensor Conv(const ModelTensor& x, int64_t channels, int64_t kernel, int64_t groups) {
    const int64_t per_group = x.shape[1] / groups;
    const float scale = 1 / std::sqrt(static_cast<float>(std::max<int64_t>(per_group, 1) * kernel * kernel));
    Shape shape = x.shape;
    shape[1] = channels;
    std::vector<std::string> inputs = {x.name,
                                       Floats({channels, per_group, kernel, kernel}, -scale, scale).name};
    if (Once(2)) inputs.push_back(Floats({channels}).name);
    return Node("Conv", inputs, shape, [&](auto& node) {
      SetInts(node, "kernel_shape", {kernel, kernel});
      SetInts(node, "pads", std::vector<int64_t>(4, kernel / 2));
      SetInt(node, "group", groups);
    });
  }

  // Recent ones are likelier. Of a rank within bounds, if there is any.
  ModelTensor Pick(int64_t least = 0, int64_t most = 8) {
    std::vector<ModelTensor> fitting;
    for (const ModelTensor& value : values_) {
      if (value.rank() >= least && value.rank() <= most) fitting.push_back(value);
    }
    if (fitting.empty()) {
      ModelTensor x = values_.back();
      Shape shape = x.shape;
      while (std::ssize(shape) < least) shape.insert(shape.begin() + Between(0, std::ssize(shape)), 1);
      while (std::ssize(shape) > most) {
        shape[1] *= shape[0];
        shape.erase(shape.begin());
      }
      return Reshape(x, shape);
    }
    return Once(2) ? fitting.back() : random_.Pick(fitting);
  }
  // One with pixels.
  ModelTensor Image() {
    const ModelTensor x = Pick(4, 4);
    if (x.shape[2] * x.shape[3] > 0) return x;
    const Shape shape = {x.shape[0], x.shape[1], x.shape[2] + 2, x.shape[3] + 1};
    return Node("Pad", {x.name, Ints({0, 0, 1, 0, 0, 0, 1, 1})}, shape);
  }
  int64_t Axis(const ModelTensor& x) { return Between(0, x.rank() - 1); }
  std::vector<int64_t> Order(int64_t rank) {
    std::vector<int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = rank; i > 1; --i) std::swap(order[i - 1], order[Between(0, i - 1)]);
    return order;
  }
  std::vector<int64_t> SomeAxes(const ModelTensor& x) {
    std::vector<int64_t> axes = Order(x.rank());
    axes.resize(Between(1, x.rank()));
    std::ranges::sort(axes);
    return axes;
  }

  // Something that x can be combined with: constant or not, with some axes 1 or missing.
  ModelTensor Other(const ModelTensor& x) {
    std::vector<ModelTensor> fitting;
    for (const ModelTensor& value : values_) {
      if (Fits(value.shape, x.shape)) fitting.push_back(value);
    }
    if (!fitting.empty() && Once(2)) return random_.Pick(fitting);
    if (x.rank() > 0 && Once(3)) return Reduce("ReduceMean", x, SomeAxes(x), true);
    Shape shape = x.shape;
    for (int64_t& size : shape) size = Once(2) ? size : 1;
    if (Once(2)) shape.erase(shape.begin(), shape.begin() + Between(0, x.rank()));
    return Floats(shape);
  }

  ModelTensor Convolved() {
    const ModelTensor x = Image();
    const int64_t kernel = Once(2) ? 1 : 3;
    const int64_t channels = x.shape[1];
    const ModelTensor y =
        Once(4) && channels > 0 ? Conv(x, channels, kernel, channels) : Conv(x, Channels(), kernel, 1);
    return y.shape == x.shape && Once(3) ? Either("Add", y, x) : y;
  }

  TestRandom& random_;
  const bool zeros_;
  int64_t equal_ = 0;  // the size of most axes, if it is one
  OnnxModel model_;
  int64_t names_ = 0;
  std::vector<ModelTensor> values_;
};

}  // namespace tilesmith
