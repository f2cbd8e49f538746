#include "ops/selection/dependent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "layouts/base/sizes.h"
#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/op.h"
#include "ops/selection/boxes_loops.h"

namespace tilesmith {
namespace {

BuiltOp Built(Tensor value, double operations) {
  return {.op = std::make_shared<ConstantOp>(std::make_shared<const Tensor>(std::move(value))),
          .data_inputs = {},
          .operations = operations};
}

void NeedOperations(const NodeSpec& spec, double operations) {
  if (operations <= static_cast<double>(spec.limits.folded_operations)) return;
  Refuse(spec, fmt::format("{:.2g} operations at load time, where {} more are allowed", operations,
                           spec.limits.folded_operations));
}

BuiltOp BuildNonZero(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Tensor& x = spec.Constant(0);
  const double operations = static_cast<double>(x.size()) * static_cast<double>(x.shape().size() + 1);
  NeedOperations(spec, operations);
  return Built(NonZeroIndices(x), operations);
}

BuiltOp BuildNms(const NodeSpec& spec) {
  NeedInputs(spec, 2, 5);
  const Tensor &boxes = spec.Constant(0), &scores = spec.Constant(1);
  const Shape &b = boxes.shape(), &s = scores.shape();
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2] ||
      boxes.type() != DataType::kF32 || scores.type() != DataType::kF32) {
    Refuse(spec, fmt::format("boxes {} and scores {} do not fit", ShapeToString(b), ShapeToString(s)));
  }
  NmsParams params{.center_point_box = spec.Int("center_point_box", 0) != 0};
  const auto number = [&](size_t index) -> std::optional<float> {
    if (!spec.HasInput(index)) return std::nullopt;
    const std::vector<float> values = ConstantFloats(spec, index);
    if (values.size() != 1) Refuse(spec, fmt::format("input {} must be one number", index));
    return values[0];
  };
  if (spec.HasInput(2)) {
    const std::vector<int64_t> values = ConstantInts(spec, 2);
    if (values.size() != 1) Refuse(spec, "input 2 must be one number");
    params.max_boxes = values[0];
  }
  params.iou_threshold = number(3).value_or(0.0f);
  params.score_threshold = number(4);
  const double kept = static_cast<double>(std::clamp<int64_t>(params.max_boxes, 0, b[1]));
  const double operations = static_cast<double>(scores.size()) * (kept + 32);
  NeedOperations(spec, operations);
  const Isa isa = spec.machine != nullptr ? spec.machine->cpu.isa : Isa::kPortable;
  return Built(NonMaxSuppression(boxes, scores, params, isa), operations);
}

// The slices of `x` along `axis` whose numbers are in `kept`.
Tensor Slices(const Tensor& x, int64_t axis, const std::vector<int64_t>& kept) {
  Shape shape = x.shape();
  const int64_t size = shape[axis];
  shape[axis] = std::ssize(kept);
  Tensor out(shape, Layout::Nchw(x.type()));
  const int64_t inner = ElementCount(Shape(shape.begin() + axis + 1, shape.end()));
  const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < std::ssize(kept); ++i) {
      CopyElements(x, (o * size + kept[i]) * inner, out, (o * std::ssize(kept) + i) * inner, inner);
    }
  }
  return out;
}

BuiltOp BuildCompress(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const Tensor& given = spec.Constant(0);
  const Tensor x = spec.Has("axis") ? given : given.Reshaped({given.size()});
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 0), x.shape().size());
  const std::vector<int64_t> condition = ConstantInts(spec, 1);
  if (std::ssize(condition) > x.shape()[axis]) {
    Refuse(spec, fmt::format("{} conditions for {} slices", condition.size(), x.shape()[axis]));
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < std::ssize(condition); ++i) {
    if (condition[i] != 0) kept.push_back(i);
  }
  return Built(Slices(x, axis, kept), static_cast<double>(x.size()));
}

// The distinct slices of x along an axis.
struct Distinct {
  std::vector<int64_t> first, of, counts;  // its first slice; for each slice which one; how many of each
};

template <typename T>
Distinct FindDistinct(const T* x, int64_t outer, int64_t size, int64_t inner, bool sorted) {
  const auto at = [=](int64_t slice, int64_t i) { return x[(i / inner * size + slice) * inner + i % inner]; };
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t i = 0; i < outer * inner; ++i) {
      const T p = at(a, i), q = at(b, i);
      if constexpr (std::is_floating_point_v<T>) {  // NaN is one value, the largest
        if (std::isnan(p) && std::isnan(q)) continue;
        if (std::isnan(p) || std::isnan(q)) return std::isnan(p) ? 1 : -1;
      }
      if (p < q) return -1;
      if (q < p) return 1;
    }
    return 0;
  };
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  Distinct result;
  result.of.resize(size);
  for (int64_t i = 0; i < size; ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      result.first.push_back(order[i]);
      result.counts.push_back(0);
    }
    result.of[order[i]] = std::ssize(result.first) - 1;
    ++result.counts.back();
  }
  if (sorted) return result;
  std::vector<int64_t> by_first(result.first.size()), rank(result.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::ranges::sort(by_first, {}, [&](int64_t i) { return result.first[i]; });
  Distinct moved;
  moved.of = result.of;
  for (const int64_t i : by_first) {
    rank[i] = std::ssize(moved.first);
    moved.first.push_back(result.first[i]);
    moved.counts.push_back(result.counts[i]);
  }
  for (int64_t& of : moved.of) of = rank[of];
  return moved;
}

Tensor Vector(const std::vector<int64_t>& values) {
  Tensor tensor({std::ssize(values)}, Layout::Nchw(DataType::kI64));
  std::ranges::copy(values, tensor.ints());
  return tensor;
}

BuiltOp BuildUnique(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Tensor& given = spec.Constant(0);
  const Tensor x = spec.Has("axis") ? given : given.Reshaped({given.size()});
  const int64_t axis = NormalAxis(spec, spec.Int("axis", 0), x.shape().size());
  const Shape& shape = x.shape();
  const int64_t inner = ElementCount(Shape(shape.begin() + axis + 1, shape.end()));
  const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  const double operations = static_cast<double>(x.size()) * std::log2(static_cast<double>(x.size()) + 2);
  NeedOperations(spec, operations);
  const bool sorted = spec.Int("sorted", 1) != 0;
  const Distinct distinct = VisitType(x.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return FindDistinct<T>(x.data<T>(), outer, shape[axis], inner, sorted);
  });
  switch (spec.output) {
    case 0:
      return Built(Slices(x, axis, distinct.first), operations);
    case 1:
      return Built(Vector(distinct.first), operations);
    case 2:
      return Built(Vector(distinct.of), operations);
    default:
      return Built(Vector(distinct.counts), operations);
  }
}

CornerBox WithCorners(float top, float left, float bottom, float right) {
  return {top, left, bottom, right, (bottom - top) * (right - left)};
}

CornerBox MakeBox(const float* given, bool center_point_box) {
  if (center_point_box) {
    const float half_width = given[2] / 2, half_height = given[3] / 2;
    return WithCorners(given[1] - half_height, given[0] - half_width, given[1] + half_height,
                       given[0] + half_width);
  }
  return WithCorners(std::min(given[0], given[2]), std::min(given[1], given[3]), std::max(given[0], given[2]),
                     std::max(given[1], given[3]));
}

struct ScoredBox {
  float score = 0;
  int64_t index = 0;
};

// The order is that of falling scores, numbers before NaNs, equal ones in the order of their indices.
bool ComesAfter(const ScoredBox& a, const ScoredBox& b) {
  const bool a_nan = std::isnan(a.score), b_nan = std::isnan(b.score);
  if (a_nan != b_nan) return a_nan;
  return a_nan || a.score == b.score ? a.index > b.index : a.score < b.score;
}

// Boxes that were kept, in whole blocks.
class KeptBoxes {
 public:
  int64_t size() const { return size_; }
  void Clear() {
    for (std::vector<float>& column : columns_) column.clear();
    size_ = 0;
  }
  void Add(const CornerBox& box) {
    if (size_ % kBoxBlock == 0) {
      for (std::vector<float>& column : columns_) column.resize(column.size() + kBoxBlock);
    }
    const float values[] = {box.top, box.left, box.bottom, box.right, box.area};
    for (size_t i = 0; i < columns_.size(); ++i) columns_[i][size_] = values[i];
    ++size_;
  }
  BoxColumns Columns() const {
    return {columns_[0].data(), columns_[1].data(), columns_[2].data(),
            columns_[3].data(), columns_[4].data(), CeilDiv(size_, kBoxBlock)};
  }

 private:
  std::array<std::vector<float>, 5> columns_;
  int64_t size_ = 0;
};

}  // namespace

Tensor NonZeroIndices(const Tensor& x) {
  std::vector<int64_t> found;
  VisitType(x.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T* from = x.data<T>();
    const int64_t count = x.size();
    for (int64_t i = 0; i < count; ++i) {
      if (from[i] != T(0)) found.push_back(i);
    }
  });
  const std::vector<int64_t> strides = DenseStrides(x.shape());
  const int64_t rank = std::ssize(strides), count = std::ssize(found);
  Tensor out({rank, count}, Layout::Nchw(DataType::kI64));
  for (int64_t axis = 0; axis < rank; ++axis) {
    for (int64_t i = 0; i < count; ++i) {
      out.ints()[axis * count + i] = found[i] / strides[axis] % x.shape()[axis];
    }
  }
  return out;
}

Tensor NonMaxSuppression(const Tensor& boxes, const Tensor& scores, const NmsParams& params, Isa isa) {
  const auto overlaps_any = TILESMITH_DISPATCH(isa, OverlapsAny);
  const int64_t images = scores.shape()[0], classes = scores.shape()[1], count = scores.shape()[2];
  std::vector<int64_t> selected;
  std::vector<ScoredBox> heap;  // few of many boxes are looked at where few are kept
  KeptBoxes kept;
  for (int64_t image = 0; image < images && params.max_boxes > 0; ++image) {
    for (int64_t c = 0; c < classes; ++c) {
      const float* score = scores.floats() + (image * classes + c) * count;
      heap.clear();
      for (int64_t i = 0; i < count; ++i) {
        if (!params.score_threshold || score[i] > *params.score_threshold) heap.push_back({score[i], i});
      }
      std::ranges::make_heap(heap, ComesAfter);
      kept.Clear();
      for (; !heap.empty() && kept.size() < params.max_boxes; heap.pop_back()) {
        std::ranges::pop_heap(heap, ComesAfter);
        const int64_t i = heap.back().index;
        const CornerBox box = MakeBox(boxes.floats() + (image * count + i) * 4, params.center_point_box);
        if (overlaps_any(kept.Columns(), box, params.iou_threshold)) continue;
        kept.Add(box);
        selected.insert(selected.end(), {image, c, i});
      }
    }
  }
  Tensor out({std::ssize(selected) / 3, 3}, Layout::Nchw(DataType::kI64));
  std::ranges::copy(selected, out.ints());
  return out;
}

// NonZero, NonMaxSuppression, Compress, Unique.
std::vector<OpImporter> DependentImporters() {
  return {{"NonZero", BuildNonZero},
          {"NonMaxSuppression", BuildNms},
          {"Compress", BuildCompress},
          {"Unique", BuildUnique, true}};
}

}  // namespace tilesmith
