// Elements in the order of their size along an axis. Plain, through the reference. Among equals the first
// comes first; a NaN is larger than every number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

// A strict weak order also of NaNs, which come behind all numbers.
template <typename T>
bool Smaller(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    if (std::isnan(static_cast<float>(b))) return !std::isnan(static_cast<float>(a));
  }
  return a < b;
}

// A tensor as lines along one axis: element i of line {o, n} is number (o * size + i) * inner + n.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;
  Lines(const Shape& shape, int64_t axis) : size(shape[axis]) {
    for (int64_t a = 0; a < axis; ++a) outer *= shape[a];
    for (int64_t a = axis + 1; a < std::ssize(shape); ++a) inner *= shape[a];
  }
};

template <typename T>
void FindTop(const Tensor& x, const Lines& lines, int64_t k, bool largest, T* values, int64_t* indices) {
  const T* from = x.data<T>();
  std::vector<int64_t> order(lines.size);
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    const int64_t outer = line / lines.inner, inner = line % lines.inner;
    const T* first = from + outer * lines.size * lines.inner + inner;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      const T x_a = first[a * lines.inner], x_b = first[b * lines.inner];
      if (Smaller(x_a, x_b)) return !largest;
      if (Smaller(x_b, x_a)) return largest;
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      const int64_t to = (outer * k + i) * lines.inner + inner;
      if (values) values[to] = first[order[i] * lines.inner];
      if (indices) indices[to] = order[i];
    }
  }
}

// The k largest or smallest along an axis, in order. Output 0 are the values, output 1 their indices.
class TopKOp : public Op {
 public:
  TopKOp(int64_t k, int64_t axis, bool largest, int output)
      : k_(k), axis_(axis), largest_(largest), output_(output) {}
  std::string_view Type() const override { return "TopK"; }
  std::string Signature() const override {
    return fmt::format("TopK {} {} axis {} output {}", k_, largest_ ? "largest" : "smallest", axis_, output_);
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    Shape shape = inputs[0];
    if (axis_ >= std::ssize(shape) || k_ > shape[axis_]) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(shape)));
    }
    shape[axis_] = k_;
    return shape;
  }
  DataType OutputType(std::span<const DataType> inputs) const override {
    return output_ == 0 ? inputs[0] : DataType::kI64;
  }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const Tensor& x = *inputs[0];
    const Shape shapes[] = {x.shape()};
    const DataType types[] = {x.type()};
    Tensor out(InferShape(shapes), Layout::Nchw(OutputType(types)));
    VisitType(x.type(), [&](auto tag) {
      using T = typename decltype(tag)::Type;
      T* values = output_ == 0 ? out.data<T>() : nullptr;
      int64_t* indices = output_ == 0 ? nullptr : out.ints();
      FindTop<T>(x, Lines(x.shape(), axis_), k_, largest_, values, indices);
    });
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override {
    const auto count = static_cast<double>(ElementCount(inputs[0]));
    return count * std::log2(static_cast<double>(k_) + 2);
  }
  auto Parameters() const { return std::tie(k_, axis_, largest_, output_); }

 private:
  int64_t k_, axis_;
  bool largest_;
  int output_;
};

// The index of the largest or smallest along an axis: the first of them, or the last.
class ArgOp : public Op {
 public:
  ArgOp(bool largest, int64_t axis, bool keep_dims, bool last)
      : largest_(largest), axis_(axis), keep_dims_(keep_dims), last_(last) {}
  std::string_view Type() const override { return largest_ ? "ArgMax" : "ArgMin"; }
  std::string Signature() const override {
    return fmt::format("{} axis {}{}{}", Type(), axis_, last_ ? " last" : "", keep_dims_ ? "" : " squeezed");
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    Shape shape = inputs[0];
    if (axis_ >= std::ssize(shape) || shape[axis_] == 0) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(shape)));
    }
    shape[axis_] = 1;
    if (!keep_dims_) shape.erase(shape.begin() + axis_);
    return shape;
  }
  DataType OutputType(std::span<const DataType>) const override { return DataType::kI64; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const Tensor& x = *inputs[0];
    const Shape shapes[] = {x.shape()};
    Tensor out(InferShape(shapes), Layout::Nchw(DataType::kI64));
    const Lines lines(x.shape(), axis_);
    VisitType(x.type(), [&](auto tag) {
      using T = typename decltype(tag)::Type;
      std::vector<T> best(lines.inner);
      for (int64_t o = 0; o < lines.outer; ++o) {
        const T* from = x.data<T>() + o * lines.size * lines.inner;
        int64_t* to = out.ints() + o * lines.inner;
        std::copy_n(from, lines.inner, best.begin());
        for (int64_t i = 1; i < lines.size; ++i) {
          for (int64_t n = 0; n < lines.inner; ++n) {
            const T value = from[i * lines.inner + n], found = best[n];
            const bool beyond = largest_ ? Smaller<T>(found, value) : Smaller<T>(value, found);
            const bool equal =
                last_ && !beyond && !(largest_ ? Smaller<T>(value, found) : Smaller<T>(found, value));
            if (beyond || equal) best[n] = value, to[n] = i;
          }
        }
      }
    });
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(largest_, axis_, keep_dims_, last_); }

 private:
  bool largest_;
  int64_t axis_;
  bool keep_dims_, last_;
};

BuiltOp BuildTopK(const NodeSpec& spec) {
  NeedInputs(spec, 1, 2);
  const Shape& shape = spec.inputs[0].shape;
  const int64_t axis = NormalAxis(spec, spec.Int("axis", -1), shape.size());
  int64_t count = spec.Int("k", -1);  // before opset 10
  if (!spec.Has("k")) {
    const std::vector<int64_t> given = ConstantInts(spec, 1);
    if (given.size() == 1) count = given[0];
  }
  if (count < 0 || count > shape[axis]) {
    Refuse(spec, fmt::format("the first {} of {} elements", count, shape[axis]));
  }
  const bool largest = spec.Int("largest", 1) != 0;
  return BuiltWithInputs(std::make_shared<TopKOp>(count, axis, largest, spec.output), 1);
}

BuiltOp BuildArg(const NodeSpec& spec, bool largest) {
  NeedInputs(spec, 1, 1);
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 0), spec.inputs[0].shape.size());
  const bool keep_dims = spec.Int("keepdims", 1) != 0, last = spec.Int("select_last_index", 0) != 0;
  return BuiltWithInputs(std::make_shared<ArgOp>(largest, axis, keep_dims, last), 1);
}

// 1 where the first of the largest elements is, else 0. Before opset 13 over all axes from `axis` on.
BuiltOp BuildHardmax(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& shape = spec.inputs[0].shape;
  const bool flat = spec.opset < 13;
  const int64_t axis = NormalAxis(spec, spec.Int("axis", flat ? 1 : -1), shape.size());
  NodeWriter writer(spec);
  std::string x = writer.In(0);
  if (ElementCount(shape) == 0) {  // there may be no largest
    writer.Add("Identity", {x}, {}, writer.Out(0));
    return writer.Take();
  }
  int64_t size = shape[axis], along = axis;
  if (flat) {
    x = writer.Add("Flatten", {x}, {{"axis", axis}});
    size = ElementCount(Shape(shape.begin() + axis, shape.end()));
    along = 1;
  }
  const std::string largest = writer.Add("ArgMax", {x}, {{"axis", along}, {"keepdims", int64_t{0}}});
  Tensor values(Shape{2});
  values.floats()[1] = 1;
  const std::string one_hot = writer.Add(
      "OneHot", {largest, writer.Ints({size}), writer.Constant(std::move(values))}, {{"axis", along}});
  writer.Reshape(one_hot, shape, writer.Out(0));
  return writer.Take();
}

}  // namespace

// TopK, ArgMax, ArgMin, and Hardmax by them.
std::vector<OpImporter> OrderImporters() {
  return {{"TopK", BuildTopK, true},
          {"ArgMax", [](const NodeSpec& spec) { return BuildArg(spec, true); }},
          {"ArgMin", [](const NodeSpec& spec) { return BuildArg(spec, false); }},
          {"Hardmax", BuildHardmax}};
}

std::vector<SavedOp> OrderOps() { return {Saved<TopKOp>("TopK"), Saved<ArgOp>("Arg")}; }

}  // namespace tilesmith
