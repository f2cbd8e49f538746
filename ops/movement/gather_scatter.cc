// Elements picked and placed by tensors of indices. Plain, through the reference. Negative indices count from
// the end; an index outside its axis throws Error(kBadModel) when it is met.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

// What becomes of an element that an update meets.
enum class ScatterReduction { kReplace, kAdd, kMul, kMax, kMin };

constexpr std::string_view kReductions[] = {"none", "add", "mul", "max", "min"};

ScatterReduction ReductionOf(const NodeSpec& spec) {
  const std::string name = spec.String("reduction", "none");
  const auto found = std::ranges::find(kReductions, name);
  if (found == std::end(kReductions)) Refuse(spec, fmt::format("reduction \"{}\" is not supported", name));
  return static_cast<ScatterReduction>(found - std::begin(kReductions));
}

std::string ReductionText(ScatterReduction reduction) {
  if (reduction == ScatterReduction::kReplace) return "";
  return fmt::format(" {}", kReductions[static_cast<int>(reduction)]);
}

void NeedIndices(DataType type) {
  if (!IsInteger(type)) throw Error(ErrorCode::kBadModel, "its indices must be integers");
}

[[noreturn]] void Misfit(std::string_view what, std::span<const Shape> inputs) {
  std::string shapes;
  for (const Shape& shape : inputs) shapes += (shapes.empty() ? "" : ", ") + ShapeToString(shape);
  throw Error(ErrorCode::kBadModel, fmt::format("{} of {}: the shapes do not fit", what, shapes));
}

int64_t NormalIndex(int64_t index, int64_t size) {
  if (index >= -size && index < size) return index < 0 ? index + size : index;
  throw Error(ErrorCode::kBadModel, fmt::format("index {} is outside an axis of {}", index, size));
}

Shape Part(const Shape& shape, size_t begin, size_t end) {
  return Shape(shape.begin() + static_cast<int64_t>(begin), shape.begin() + static_cast<int64_t>(end));
}

// body(i, at, run): elements i to i + run of `indices` mean those from `at` on of `data`, along `axis` where
// indices[i] says. Exporters repeat one index over whole slices, which are runs then.
template <typename Body>
void ForEachRun(const Tensor& indices, const Shape& data, int64_t axis, const Body& body) {
  const Shape& shape = indices.shape();
  const int64_t count = indices.size(), size = data[axis];
  if (count == 0) return;
  std::vector<int64_t> steps = DenseStrides(data), index(shape.size(), 0);
  const int64_t along = std::exchange(steps[axis], 0);  // the others' are of the element itself
  std::vector<int64_t> converted;
  if (indices.type() != DataType::kI64) converted = ElementsAs<int64_t>(indices);
  const int64_t* const chosen = converted.empty() ? indices.ints() : converted.data();
  int64_t outer = std::ssize(shape) - 1, columns = shape.back();  // rows of both lie together
  for (; outer > axis + 1 && shape[outer] == data[outer]; --outer) columns *= shape[outer - 1];
  const int64_t step = steps.back();
  int64_t base = 0;
  for (int64_t row = 0; row < count; row += columns) {
    const int64_t* const own = chosen + row;
    const bool same = step == 1 && std::equal(own + 1, own + columns, own);
    const int64_t run = same ? columns : 1;
    for (int64_t j = 0; j < columns; j += run)
      body(row + j, base + j * step + NormalIndex(own[j], size) * along, run);
    for (int64_t a = outer; a-- > 0;) {
      base += steps[a];
      if (++index[a] < shape[a]) break;
      base -= steps[a] * shape[a];
      index[a] = 0;
    }
  }
}

// Where tuple number `i` of the last axis of `indices` begins in a tensor with these leading sizes.
int64_t TupleOffset(const int64_t* tuple, std::span<const int64_t> sizes, int64_t slice) {
  int64_t at = 0;
  for (size_t k = 0; k < sizes.size(); ++k) at = at * sizes[k] + NormalIndex(tuple[k], sizes[k]);
  return at * slice;
}

template <typename T>
void Reduce(ScatterReduction reduction, T value, T& result) {
  switch (reduction) {
    case ScatterReduction::kReplace:
      result = value;
      return;
    case ScatterReduction::kMax:
      if (result < value) result = value;
      return;
    case ScatterReduction::kMin:
      if (value < result) result = value;
      return;
    default:
      break;
  }
  const bool add = reduction == ScatterReduction::kAdd;
  if constexpr (std::is_integral_v<T>) {  // wraps around
    const auto x = static_cast<uint64_t>(+result), y = static_cast<uint64_t>(+value);
    result = static_cast<T>(add ? x + y : x * y);
  } else {
    result = static_cast<T>(add ? result + value : result * value);
  }
}

template <typename T>
void ReduceRun(ScatterReduction reduction, const T* values, int64_t count, T* results) {
  if (reduction == ScatterReduction::kReplace) {
    std::copy_n(values, count, results);
  } else {
    for (int64_t k = 0; k < count; ++k) Reduce<T>(reduction, values[k], results[k]);
  }
}

DataType ScatterType(std::span<const DataType> inputs) {
  NeedIndices(inputs[1]);
  const DataType types[] = {inputs[0], inputs[2]};
  return SharedType(types);
}

// out[i] = data[i, but indices[i] along the axis]
class GatherElementsOp : public Op {
 public:
  explicit GatherElementsOp(int64_t axis) : axis_(axis) {}
  std::string_view Type() const override { return "GatherElements"; }
  std::string Signature() const override { return fmt::format("GatherElements axis {}", axis_); }
  Shape InferShape(std::span<const Shape> inputs) const override {
    const Shape &data = inputs[0], &indices = inputs[1];
    bool fits = data.size() == indices.size() && axis_ < std::ssize(data);
    for (size_t axis = 0; fits && axis < data.size(); ++axis) {
      fits = static_cast<int64_t>(axis) == axis_ || indices[axis] <= data[axis];
    }
    if (!fits) Misfit(Signature(), inputs);
    return indices;
  }
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const Tensor &data = *inputs[0], &indices = *inputs[1];
    NeedIndices(indices.type());
    Tensor out(indices.shape(), Layout::Nchw(data.type()));
    VisitType(data.type(), [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* from = data.data<T>();
      T* to = out.data<T>();
      ForEachRun(indices, data.shape(), axis_,
                 [&](int64_t i, int64_t at, int64_t run) { std::copy_n(from + at, run, to + i); });
    });
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(axis_); }

 private:
  int64_t axis_;
};

// out[b, i, :] = data[b, indices[b, i, 0], indices[b, i, 1], ..., :], where b are `batch_dims` axes.
class GatherNdOp : public Op {
 public:
  explicit GatherNdOp(int64_t batch_dims) : batch_dims_(batch_dims) {}
  std::string_view Type() const override { return "GatherND"; }
  std::string Signature() const override {
    return batch_dims_ == 0 ? "GatherND" : fmt::format("GatherND behind {} axes", batch_dims_);
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    const Shape &data = inputs[0], &indices = inputs[1];
    const auto batch = static_cast<size_t>(batch_dims_);
    bool fits = batch < indices.size() && batch <= data.size();
    for (size_t axis = 0; fits && axis < batch; ++axis) fits = data[axis] == indices[axis];
    fits = fits && batch_dims_ + indices.back() <= std::ssize(data);
    if (!fits) Misfit(Signature(), inputs);
    Shape shape = Part(indices, 0, indices.size() - 1);
    const Shape slice = Part(data, batch + static_cast<size_t>(indices.back()), data.size());
    shape.insert(shape.end(), slice.begin(), slice.end());
    return shape;
  }
  DataType OutputType(std::span<const DataType> inputs) const override { return inputs[0]; }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const Tensor &data = *inputs[0], &indices = *inputs[1];
    NeedIndices(indices.type());
    const Shape shapes[] = {data.shape(), indices.shape()};
    Tensor out(InferShape(shapes), Layout::Nchw(data.type()));
    if (out.size() == 0) return out;
    const auto batch = static_cast<size_t>(batch_dims_);
    const int64_t length = indices.shape().back();
    const size_t indexed = batch + static_cast<size_t>(length);
    const Shape sizes = Part(data.shape(), batch, indexed);
    const int64_t slice = ElementCount(Part(data.shape(), indexed, data.shape().size()));
    const int64_t image = ElementCount(Part(data.shape(), batch, data.shape().size()));
    const int64_t tuples = ElementCount(Part(indices.shape(), 0, indices.shape().size() - 1));
    const std::vector<int64_t> chosen = ElementsAs<int64_t>(indices);
    const int64_t per_image = tuples / ElementCount(Part(data.shape(), 0, batch));
    for (int64_t i = 0; i < tuples; ++i) {
      const int64_t from = i / per_image * image + TupleOffset(chosen.data() + i * length, sizes, slice);
      CopyElements(data, from, out, i * slice, slice);
    }
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(batch_dims_); }

 private:
  int64_t batch_dims_;
};

// out = data, then out[i, but indices[i] along the axis] takes updates[i]
class ScatterElementsOp : public Op {
 public:
  ScatterElementsOp(int64_t axis, ScatterReduction reduction) : axis_(axis), reduction_(reduction) {}
  std::string_view Type() const override { return "ScatterElements"; }
  std::string Signature() const override {
    return fmt::format("ScatterElements axis {}{}", axis_, ReductionText(reduction_));
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    const Shape &data = inputs[0], &indices = inputs[1];
    bool fits = data.size() == indices.size() && indices == inputs[2] && axis_ < std::ssize(data);
    for (size_t axis = 0; fits && axis < data.size(); ++axis) {
      fits = static_cast<int64_t>(axis) == axis_ || indices[axis] <= data[axis];
    }
    if (!fits) Misfit(Signature(), inputs);
    return data;
  }
  DataType OutputType(std::span<const DataType> inputs) const override { return ScatterType(inputs); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    Tensor out = *inputs[0];
    VisitType(out.type(), [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* updates = inputs[2]->data<T>();
      T* to = out.data<T>();
      ForEachRun(*inputs[1], out.shape(), axis_, [&](int64_t i, int64_t at, int64_t run) {
        ReduceRun(reduction_, updates + i, run, to + at);
      });
    });
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(axis_, reduction_); }

 private:
  int64_t axis_;
  ScatterReduction reduction_;
};

// out = data, then out[indices[i, 0], indices[i, 1], ..., :] takes updates[i, :]
class ScatterNdOp : public Op {
 public:
  explicit ScatterNdOp(ScatterReduction reduction) : reduction_(reduction) {}
  std::string_view Type() const override { return "ScatterND"; }
  std::string Signature() const override { return "ScatterND" + ReductionText(reduction_); }
  Shape InferShape(std::span<const Shape> inputs) const override {
    const Shape &data = inputs[0], &indices = inputs[1], &updates = inputs[2];
    if (indices.empty() || indices.back() > std::ssize(data)) Misfit(Signature(), inputs);
    Shape wanted = Part(indices, 0, indices.size() - 1);
    const Shape slice = Part(data, static_cast<size_t>(indices.back()), data.size());
    wanted.insert(wanted.end(), slice.begin(), slice.end());
    if (updates != wanted) Misfit(Signature(), inputs);
    return data;
  }
  DataType OutputType(std::span<const DataType> inputs) const override { return ScatterType(inputs); }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    Tensor out = *inputs[0];
    const Tensor &indices = *inputs[1], &updates = *inputs[2];
    const auto length = static_cast<size_t>(indices.shape().back());
    const Shape sizes = Part(out.shape(), 0, length);
    const int64_t slice = ElementCount(Part(out.shape(), length, out.shape().size()));
    const int64_t tuples = ElementCount(Part(indices.shape(), 0, indices.shape().size() - 1));
    const std::vector<int64_t> chosen = ElementsAs<int64_t>(indices);
    VisitType(out.type(), [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* from = updates.data<T>();
      T* to = out.data<T>();
      for (int64_t i = 0; i < tuples && slice > 0; ++i) {
        const int64_t at = TupleOffset(chosen.data() + i * static_cast<int64_t>(length), sizes, slice);
        ReduceRun(reduction_, from + i * slice, slice, to + at);
      }
    });
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(reduction_); }

 private:
  ScatterReduction reduction_;
};

BuiltOp BuildGatherElements(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 0), spec.inputs[0].shape.size());
  return BuiltWithInputs(std::make_shared<GatherElementsOp>(axis), 2);
}

BuiltOp BuildGatherNd(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const int64_t batch_dims = spec.Int("batch_dims", 0);
  if (batch_dims < 0 || batch_dims > kMaxRank) Refuse(spec, fmt::format("batch_dims is {}", batch_dims));
  return BuiltWithInputs(std::make_shared<GatherNdOp>(batch_dims), 2);
}

BuiltOp BuildScatterElements(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 0), spec.inputs[0].shape.size());
  return BuiltWithInputs(std::make_shared<ScatterElementsOp>(axis, ReductionOf(spec)), 3);
}

BuiltOp BuildScatterNd(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  return BuiltWithInputs(std::make_shared<ScatterNdOp>(ReductionOf(spec)), 3);
}

}  // namespace

// GatherElements, GatherND, ScatterElements (and Scatter, its old name), ScatterND.
std::vector<OpImporter> GatherScatterImporters() {
  return {{"GatherElements", BuildGatherElements},
          {"GatherND", BuildGatherNd},
          {"Scatter", BuildScatterElements},
          {"ScatterElements", BuildScatterElements},
          {"ScatterND", BuildScatterNd}};
}

std::vector<SavedOp> GatherScatterOps() {
  return {Saved<GatherElementsOp>("GatherElements"), Saved<GatherNdOp>("GatherNd"),
          Saved<ScatterElementsOp>("ScatterElements"), Saved<ScatterNdOp>("ScatterNd")};
}

}  // namespace tilesmith
