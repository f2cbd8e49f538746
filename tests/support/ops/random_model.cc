#include "tests/support/ops/random_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/ops/random_model_typed.h"

namespace tilesmith {
namespace {

class ModelMaker : public TypedWriter {
 public:
  using TypedWriter::TypedWriter;

  OnnxModel Make() {
    const int64_t inputs = random_.Integer(1, 2);
    for (int64_t i = 0; i < inputs; ++i) {
      Shape shape(Between(1, 5));
      for (int64_t& size : shape) size = Size();
      while (ElementCount(shape) > kMaxSize) shape.pop_back();
      if (Once(2)) {
        shape = {SizeOr(Between(1, 2)), zeros_ ? SizeOr(Channels()) : Channels(), SizeOr(Between(1, 7)),
                 SizeOr(Between(1, 7))};
      }
      AddInput(shape);
    }
    inputs_ = values_;
    if (Once(3)) AddTypedInput();
    const int64_t parts = Between(2, 8);
    for (int64_t i = 0; i < parts; ++i) AddPart();
    for (const ModelTensor& value : values_) {
      if (value.name == values_.back().name || Once(8)) MarkOutput(value);
    }
    MarkTypedOutputs();
    return std::move(model_);
  }

 private:
  void AddPart() {
    using Part = ModelTensor (ModelMaker::*)();
    static constexpr Part kParts[] = {
        &ModelMaker::Function,    &ModelMaker::Function,  &ModelMaker::Combined, &ModelMaker::Combined,
        &ModelMaker::Activated,   &ModelMaker::Activated, &ModelMaker::Reduced,  &ModelMaker::Normalized,
        &ModelMaker::WrittenNorm, &ModelMaker::Softened,  &ModelMaker::Moved,    &ModelMaker::Moved,
        &ModelMaker::Cut,         &ModelMaker::Joined,    &ModelMaker::Gathered, &ModelMaker::Product,
        &ModelMaker::Attention,   &ModelMaker::BoxHead,   &ModelMaker::Gate,     &ModelMaker::SelectiveSum,
        &ModelMaker::Convolved,   &ModelMaker::Pooled,    &ModelMaker::Chosen,   &ModelMaker::Sampled,
        &ModelMaker::Windows,     &ModelMaker::Typed,     &ModelMaker::Typed,    &ModelMaker::Rarer,
        &ModelMaker::Rarer,       &ModelMaker::Quantized, &ModelMaker::Divided};
    ModelTensor value = (this->*kParts[Between(0, std::ssize(kParts) - 1)])();
    if (value.size() > kMaxSize) value = Reduce("ReduceMean", value, {Axis(value)}, true);
    values_.push_back(value);
  }

  ModelTensor Function() {
    const ModelTensor x = Pick();
    switch (Between(0, 6)) {
      case 6:
        return Sloped(x);
      case 0:
        return Map("Exp", Map("Tanh", x));
      case 1:
        return Map("Sqrt", Map("Abs", x));
      case 2:
        return Map("Clip", x);
      case 3:
        return Map("LeakyRelu", x, [](auto& node) { SetFloat(node, "alpha", 0.2F); });
      case 4:
        return Node("Clip", {x.name, Number(-0.5).name, Number(0.75).name}, x.shape);
      default:
        return Map(random_.Pick(std::vector<std::string>{"Relu", "Sigmoid", "Tanh", "Erf", "Neg", "Softplus",
                                                         "Elu", "Sin", "Atan", "Softsign", "HardSigmoid"}),
                   x);
    }
  }

  ModelTensor Combined() {
    const ModelTensor x = Pick(), y = Other(x);
    if (Once(8)) return Binary("Pow", x, Number(2));
    if (Once(6)) return Binary("Div", x, Binary("Add", Map("Abs", y), Number(0.5)));
    return Either(random_.Pick(std::vector<std::string>{"Add", "Sub", "Mul", "Min", "Max"}), x, y);
  }

  // Gates and GELU, whole and written out.
  ModelTensor Activated() {
    ModelTensor x = Once(2) ? Pick() : Once(2) ? Dense(Pick(1, 4), Size()) : Convolved();
    const int64_t form = Between(0, 8);
    // Far below 0, GELU written out is a difference of roundings.
    if (form >= 1 && form <= 3) x = Either("Max", x, Number(-2));
    switch (form) {
      case 0:
        return Map("Gelu", x, [&](auto& node) { SetString(node, "approximate", Once(2) ? "tanh" : "none"); });
      case 1: {
        const ModelTensor erf = Map("Erf", Binary("Div", x, Number(std::sqrt(2.0))));
        return Either("Mul", Either("Mul", x, Either("Add", erf, Number(1))), Number(0.5));
      }
      case 2: {
        const ModelTensor erf = Map("Erf", Either("Mul", x, Number(std::sqrt(0.5))));
        return Either("Mul", Either("Mul", x, Number(0.5)), Either("Add", erf, Number(1)));
      }
      case 3: {
        const ModelTensor cube = Binary("Pow", x, Number(3));
        const ModelTensor inner = Either("Add", x, Either("Mul", cube, Number(0.044715)));
        const ModelTensor tanh = Map("Tanh", Either("Mul", inner, Number(std::sqrt(2 / M_PI))));
        return Either("Mul", Either("Mul", x, Number(0.5)), Either("Add", tanh, Number(1)));
      }
      case 4:
        return Either("Mul", x, Map("Sigmoid", x));
      case 5:
        return Either("Mul", x, Map("Tanh", Map("Softplus", x)));
      case 6: {
        const ModelTensor sum = Either("Add", x, Number(3));
        const ModelTensor gate = Node("Clip", {sum.name, Number(0).name, Number(6).name}, x.shape);
        return Once(2) ? Binary("Div", Either("Mul", x, gate), Number(6))
                       : Either("Mul", x, Binary("Div", gate, Number(6)));
      }
      case 7:
        return Either("Mul", x, Map("HardSigmoid", x, [](auto& node) {
                        SetFloat(node, "alpha", 1.0F / 6);
                        SetFloat(node, "beta", 0.5F);
                      }));
      default:
        return Map(Once(2) ? "HardSwish" : "Mish", x);
    }
  }

  ModelTensor Reduced() {
    const ModelTensor x = Pick(1);
    const std::vector<std::string> types = {"ReduceMean", "ReduceMean", "ReduceSum",      "ReduceMax",
                                            "ReduceMin",  "ReduceL1",   "ReduceLogSumExp"};
    return Reduce(random_.Pick(types), x, SomeAxes(x), Once(2));
  }

  ModelTensor Normalized() {
    if (Once(3)) {
      const ModelTensor x = Pick(3, 5);
      const ModelTensor scale = Floats({x.shape[1]}, 0.5F, 1.5F), shift = Floats({x.shape[1]});
      if (Once(2)) {
        return Node("InstanceNormalization", {x.name, scale.name, shift.name}, x.shape,
                    [](auto& node) { SetFloat(node, "epsilon", 0.1F); });
      }
      const ModelTensor mean = Floats({x.shape[1]}), variance = Floats({x.shape[1]}, 0.5F, 2);
      return Node("BatchNormalization", {x.name, scale.name, shift.name, mean.name, variance.name}, x.shape);
    }
    const ModelTensor x = Pick(1);
    const int64_t axis = Axis(x);
    const Shape last(x.shape.begin() + axis, x.shape.end());
    return Node("LayerNormalization", {x.name, Floats(last, 0.5F, 1.5F).name, Floats(last).name}, x.shape,
                [&](auto& node) {
                  SetInt(node, "axis", Once(2) ? axis : axis - x.rank());
                  SetFloat(node, "epsilon", 0.1F);
                });
  }

  // Layer, RMS, group and L2 normalization as formulas.
  ModelTensor WrittenNorm() {
    if (const ModelTensor x = Once(4) ? Image() : ModelTensor(); x.rank() == 4 && x.size() > 0) {
      std::vector<int64_t> counts;
      for (int64_t count = 1; count <= x.shape[1]; ++count) {
        if (x.shape[1] % count == 0) counts.push_back(count);
      }
      const int64_t groups = random_.Pick(counts);
      const ModelTensor rows = Reshape(x, {x.shape[0], groups, x.size() / x.shape[0] / groups});
      const ModelTensor scale = Floats({groups}, 1, 1), shift = Floats({groups}, 0, 0);
      const ModelTensor normal = Node("InstanceNormalization", {rows.name, scale.name, shift.name},
                                      rows.shape, [](auto& node) { SetFloat(node, "epsilon", 0.1F); });
      const ModelTensor scaled =
          Either("Mul", Reshape(normal, x.shape), Floats({x.shape[1], 1, 1}, 0.5F, 1.5F));
      return Either("Add", scaled, Floats({x.shape[1], 1, 1}));
    }
    const ModelTensor x = Pick(1);
    const std::vector<int64_t> axes = {Once(2) ? x.rank() - 1 : Axis(x)};
    const bool centered = Once(2);
    const ModelTensor from = centered ? Binary("Sub", x, Reduce("ReduceMean", x, axes, true)) : x;
    if (!centered && Once(3)) {
      const ModelTensor norm = Reduce("ReduceL2", x, axes, true);
      return Binary("Div", x, Node("Clip", {norm.name, Number(0.1).name}, norm.shape));
    }
    const ModelTensor square = Once(2) ? Binary("Pow", from, Number(2)) : Binary("Mul", from, from);
    const ModelTensor deviation =
        Map("Sqrt", Either("Add", Reduce("ReduceMean", square, axes, true), Number(0.1)));
    const ModelTensor normal =
        Once(2) ? Binary("Div", from, deviation) : Either("Mul", from, Map("Reciprocal", deviation));
    Shape parameters(x.rank() - axes[0], 1);
    parameters[0] = x.shape[axes[0]];
    const ModelTensor scaled = Either("Mul", normal, Floats(parameters, 0.5F, 1.5F));
    return Once(2) ? scaled : Either("Add", scaled, Floats(parameters));
  }

  ModelTensor Softened() {
    const ModelTensor x = Pick(1);
    return Softmax(x, Axis(x));
  }

  ModelTensor Moved() {
    const ModelTensor x = Pick(1);
    switch (Between(0, 4)) {
      case 0: {  // axes merged
        if (x.rank() < 2) return Transpose(Reshape(x, {x.size(), 1}), {1, 0});
        const int64_t axis = Between(0, x.rank() - 2);
        Shape shape = x.shape;
        shape[axis] *= shape[axis + 1];
        shape.erase(shape.begin() + axis + 1);
        return Reshape(x, shape);
      }
      case 1: {  // an axis split
        const int64_t axis = Axis(x);
        Shape shape = x.shape;
        for (const int64_t factor : {4, 3, 2}) {
          if (shape[axis] % factor != 0 || x.rank() > 5) continue;
          shape[axis] /= factor;
          shape.insert(shape.begin() + axis + Between(0, 1), factor);
          return Reshape(x, shape);
        }
        return Transpose(x, Order(x.rank()));
      }
      case 2: {
        if (x.rank() > 5) return Transpose(x, Order(x.rank()));
        const int64_t axis = Between(0, x.rank());
        Shape shape = x.shape;
        shape.insert(shape.begin() + axis, 1);
        return Node("Unsqueeze", {x.name, Ints({axis})}, shape);
      }
      default:
        return Transpose(x, Order(x.rank()));
    }
  }

  ModelTensor Cut() {
    const ModelTensor x = Pick(1);
    const int64_t axis = Axis(x), size = x.shape[axis];
    Shape shape = x.shape;
    const int64_t first = size == 0 || (zeros_ && Once(6)) ? size : Between(0, size - 1),
                  step = Between(1, 3);
    if (first < size && Once(3)) {  // backwards
      shape[axis] = first / step + 1;
      return Node("Slice", {x.name, Ints({first}), Ints({INT64_MIN}), Ints({axis}), Ints({-step})}, shape);
    }
    shape[axis] = (size - first + step - 1) / step;
    return Node("Slice", {x.name, Ints({first}), Ints({INT64_MAX}), Ints({axis}), Ints({step})}, shape);
  }

  ModelTensor Joined() {
    const ModelTensor x = Pick(1);
    const int64_t axis = Axis(x);
    std::vector<ModelTensor> parts = {x};
    for (const ModelTensor& value : values_) {
      Shape shape = value.shape;
      if (value.rank() != x.rank()) continue;
      shape[axis] = x.shape[axis];
      if (shape == x.shape && parts.size() < 3) parts.push_back(value);
    }
    if (parts.size() == 1) parts.push_back(Map("Relu", x));
    Shape shape = x.shape;
    shape[axis] = 0;
    std::vector<std::string> names;
    for (const ModelTensor& part : parts) {
      shape[axis] += part.shape[axis];
      names.push_back(part.name);
    }
    return Node("Concat", names, shape, [&](auto& node) { SetInt(node, "axis", axis); });
  }

  ModelTensor Gathered() {
    const ModelTensor x = Pick(1);
    const int64_t axis = Axis(x), size = x.shape[axis];
    Shape shape = x.shape;
    switch (Between(0, 3)) {
      case 0: {
        std::vector<int64_t> indices(size == 0 ? 0 : Count(6));
        for (int64_t& index : indices) index = Between(-size, size - 1);
        shape[axis] = std::ssize(indices);
        return Node("Gather", {x.name, Ints(indices)}, shape,
                    [&](auto& node) { SetInt(node, "axis", axis); });
      }
      case 1: {
        std::vector<int64_t> pads(2 * x.rank(), 0);
        pads[axis] = Between(0, 2), pads[axis + x.rank()] = Between(0, 3);
        shape[axis] += pads[axis] + pads[axis + x.rank()];
        return Node("Pad", {x.name, Ints(pads)}, shape);
      }
      case 2: {
        std::vector<int64_t> repeats(x.rank(), 1);
        repeats[axis] = Count(3);
        shape[axis] *= repeats[axis];
        return Node("Tile", {x.name, Ints(repeats)}, shape);
      }
      default: {
        if (x.rank() > 5) return Map("Relu", x);
        shape.insert(shape.begin(), Count(3));
        return Node("Expand", {x.name, Ints(shape)}, shape);
      }
    }
  }

  ModelTensor Product() {
    if (Once(3)) return Dense(Pick(1, 4), Size());
    if (Once(4)) return Gemm(Pick(2, 2));
    ModelTensor x = Pick(2, 4);
    std::vector<int64_t> turned(x.rank());
    std::iota(turned.begin(), turned.end(), 0);
    std::swap(turned[x.rank() - 1], turned[x.rank() - 2]);
    const ModelTensor other = Map("Tanh", Transpose(x, turned));
    Shape shape = x.shape;
    shape.back() = shape[x.rank() - 2];
    ModelTensor product = Node("MatMul", {x.name, other.name}, shape);
    if (Once(2)) product = Either("Mul", product, Number(0.25));
    if (Once(3)) product = Either("Add", product, Floats({shape.back()}));
    return Once(3) ? Map("Relu", product) : product;
  }

  // One matrix for queries, keys and values, or three; with a mask, or without.
  ModelTensor Attention() {
    ModelTensor x = Pick(3, 3);
    const int64_t batch = x.shape[0], rows = x.shape[1], heads = Between(1, 3), depth = Channels();
    const int64_t width = heads * depth;
    const auto head = [&](const ModelTensor& value) {
      return Transpose(Reshape(value, {batch, rows, heads, depth}), {0, 2, 1, 3});
    };
    ModelTensor q, k, v;
    if (Once(2)) {
      const ModelTensor all =
          Transpose(Reshape(Dense(x, 3 * width), {batch, rows, 3, heads, depth}), {2, 0, 3, 1, 4});
      const auto part = [&](int64_t i) {
        const std::string name = Fresh();
        model_.Ints(name, {i});
        model_.graph().mutable_initializer(model_.graph().initializer_size() - 1)->clear_dims();
        return Node("Gather", {all.name, name}, {batch, heads, rows, depth},
                    [](auto& node) { SetInt(node, "axis", 0); });
      };
      q = part(0), k = part(1), v = part(2);
    } else {
      q = head(Dense(x, width)), k = head(Dense(x, width)), v = head(Dense(x, width));
    }
    const double scale = 1 / std::sqrt(static_cast<double>(depth));
    const int64_t form = Between(0, 2);
    if (form == 0) q = Either("Mul", q, Number(scale));
    if (form == 1) q = Either("Mul", q, Number(std::sqrt(scale)));
    ModelTensor keys = Transpose(k, {0, 1, 3, 2});
    if (form == 1) keys = Either("Mul", keys, Number(std::sqrt(scale)));
    ModelTensor scores = Node("MatMul", {q.name, keys.name}, {batch, heads, rows, rows});
    if (form == 2) scores = Binary("Div", scores, Number(1 / scale));
    if (Once(2))
      scores = Either("Add", scores, Floats(Once(2) ? Shape{rows, rows} : Shape{1, heads, rows, rows}));
    const ModelTensor weights = Map("Softmax", scores, [](auto& node) { SetInt(node, "axis", -1); });
    const ModelTensor mixed = Node("MatMul", {weights.name, v.name}, {batch, heads, rows, depth});
    const ModelTensor merged = Reshape(Transpose(mixed, {0, 2, 1, 3}), {batch, rows, width});
    return Once(3) ? merged : Either("Add", Dense(merged, x.shape[2]), x);
  }

  // The expected value of a distribution over distances, of each side of each box.
  ModelTensor BoxHead() {
    const ModelTensor x = Image();
    const int64_t bins = Between(2, 16), batch = x.shape[0], boxes = x.shape[2] * x.shape[3];
    const ModelTensor sides = Reshape(Conv(x, 4 * bins, 1, 1), {batch, 4, bins, boxes});
    std::vector<float> numbers(bins);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    const std::string weights = Fresh();
    model_.Floats(weights, {1, bins, 1, 1}, numbers);
    const ModelTensor spread =
        Map("Softmax", Transpose(sides, {0, 2, 1, 3}), [](auto& node) { SetInt(node, "axis", 1); });
    return Reshape(Node("Conv", {spread.name, weights}, {batch, 1, 4, boxes}), {batch, 4, boxes});
  }

  // Squeeze and excitation, with convolutions or dense layers.
  ModelTensor Gate() {
    const ModelTensor x = Image();
    if (x.size() == 0) return Convolved();
    const int64_t channels = x.shape[1], narrow = std::max<int64_t>(1, channels / 4);
    const ModelTensor mean = Once(2) ? Node("GlobalAveragePool", {x.name}, {x.shape[0], channels, 1, 1})
                                     : Reduce("ReduceMean", x, {2, 3}, true);
    ModelTensor gate;
    if (Once(2)) {
      gate = Conv(Map("Relu", Conv(mean, narrow, 1, 1)), channels, 1, 1);
    } else {
      const ModelTensor rows = Reshape(mean, {x.shape[0], channels});
      gate = Reshape(Dense(Map("Relu", Dense(rows, narrow)), channels), {x.shape[0], channels, 1, 1});
    }
    const ModelTensor gated = Either("Mul", x, Map(Once(2) ? "Sigmoid" : "HardSigmoid", gate));
    return Once(2) ? gated : Either("Add", x, gated);
  }

  // Selective kernels: branches weighed by a softmax over them.
  ModelTensor SelectiveSum() {
    const ModelTensor x = Image();
    if (x.size() == 0) return Convolved();
    const int64_t n = x.shape[0], c = x.shape[1], h = x.shape[2], w = x.shape[3];
    ModelTensor both;
    if (Once(2)) {
      const auto branch = [&](const ModelTensor& value) {
        return Node("Unsqueeze", {value.name, Ints({1})}, {n, 1, c, h, w});
      };
      const ModelTensor a = branch(Conv(x, c, 3, 1)), b = branch(Conv(x, c, 1, 1));
      both = Node("Concat", {a.name, b.name}, {n, 2, c, h, w}, [](auto& node) { SetInt(node, "axis", 1); });
    } else {
      both = Reshape(Conv(x, 2 * c, 3, 1), {n, 2, c, h, w});
    }
    const ModelTensor sum = Reduce("ReduceSum", both, {1}, false);
    const ModelTensor mean = Reduce("ReduceMean", sum, {2, 3}, true);
    const ModelTensor scores = Reshape(Conv(Map("Relu", Conv(mean, 4, 1, 1)), 2 * c, 1, 1), {n, 2, c, 1, 1});
    const ModelTensor weights = Map("Softmax", scores, [](auto& node) { SetInt(node, "axis", 1); });
    return Reduce("ReduceSum", Either("Mul", both, weights), {1}, false);
  }

  ModelTensor Pooled() {
    const ModelTensor x = Image();
    const bool max = Once(2);
    return Node(max ? "MaxPool" : "AveragePool", {x.name}, x.shape, [&](auto& node) {
      SetInts(node, "kernel_shape", {3, 3});
      SetInts(node, "pads", {1, 1, 1, 1});
      if (!max) SetInt(node, "count_include_pad", Between(0, 1));
    });
  }

  // By what is not computed, so that no rounding decides.
  ModelTensor Chosen() {
    const ModelTensor x = Pick(), y = Other(x);
    const Shape shape = Broadcast(x.shape, y.shape);
    const ModelTensor given = Floats(shape);
    const ModelTensor mask = Binary(Once(2) ? "Greater" : "LessOrEqual", given, Number(0.1));
    return Node("Where", {mask.name, x.name, y.name}, shape);
  }

  // An image cut into windows, as tokens, with a shift; and back.
  ModelTensor Windows() {
    ModelTensor x = Image();
    x = Transpose(x, {0, 2, 3, 1});
    const int64_t n = x.shape[0], h = x.shape[1], w = x.shape[2], c = x.shape[3];
    const int64_t rows = h % 2 == 0 ? 2 : 1, columns = w % 3 == 0 ? 3 : 1;
    if (h > 1 && Once(2)) {
      const ModelTensor low = Node("Slice", {x.name, Ints({1}), Ints({h}), Ints({1})}, {n, h - 1, w, c});
      const ModelTensor high = Node("Slice", {x.name, Ints({0}), Ints({1}), Ints({1})}, {n, 1, w, c});
      x = Node("Concat", {low.name, high.name}, x.shape, [](auto& node) { SetInt(node, "axis", 1); });
    }
    const ModelTensor cut =
        Transpose(Reshape(x, {n, h / rows, rows, w / columns, columns, c}), {0, 1, 3, 2, 4, 5});
    const ModelTensor tokens = Reshape(cut, {n * (h / rows) * (w / columns), rows * columns, c});
    const ModelTensor mixed = Dense(tokens, c);
    if (Once(2)) return mixed;
    const ModelTensor back = Transpose(Reshape(mixed, cut.shape), {0, 1, 3, 2, 4, 5});
    return Reshape(back, {n, h, w, c});
  }
};

}  // namespace

OnnxModel RandomModel(TestRandom& random, RandomSizes sizes) { return ModelMaker(random, sizes).Make(); }

}  // namespace tilesmith
