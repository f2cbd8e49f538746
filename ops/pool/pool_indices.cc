#include "ops/pool/pool_indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/base/elements.h"
#include "ops/base/op_registry.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

using Ints = std::vector<int64_t>;

Ints KernelOf(const NodeSpec& spec) {
  if (!spec.Has("kernel_shape")) Refuse(spec, "the attribute kernel_shape is missing");
  return spec.Ints("kernel_shape", {});
}

// Walks over the taps of one window that lie in the input: visit(offset in the plane).
template <typename Visit>
void ForEachTap(const std::vector<AxisWindow>& windows, const Ints& position, const Shape& sizes,
                const Visit& visit) {
  const auto walk = [&](const auto& self, size_t axis, int64_t offset) -> void {
    if (axis == windows.size()) return visit(offset);
    const AxisWindow& w = windows[axis];
    const int64_t start = position[axis] * w.stride - w.begin;
    for (int64_t tap = start < 0 ? CeilDiv(-start, w.dilation) : 0; tap < w.kernel; ++tap) {
      const int64_t at = start + tap * w.dilation;
      if (at >= sizes[axis]) break;
      self(self, axis + 1, offset * sizes[axis] + at);
    }
  };
  walk(walk, 0, 0);
}

template <typename T>
T Lowest() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  return T(-std::numeric_limits<float>::infinity());
}

int64_t ColumnMajor(int64_t offset, const Shape& sizes) {
  int64_t index = 0;
  const Ints strides = DenseStrides(sizes);
  for (size_t axis = sizes.size(); axis-- > 0;)
    index = index * sizes[axis] + offset / strides[axis] % sizes[axis];
  return index;
}

BuiltOp BuildMaxUnpool(const NodeSpec& spec) {
  NeedInputs(spec, 2, 3);
  const Shape& in = spec.inputs[0].shape;
  const std::vector<AxisWindow> windows = ImportAxisWindows(spec, KernelOf(spec), in);
  Shape out = in;
  for (size_t axis = 0; axis < windows.size(); ++axis) {
    const AxisWindow& w = windows[axis];
    out[axis + 2] = ((Checked(in[axis + 2]) - 1) * w.stride + w.kernel - w.begin - w.end).value();
  }
  const Shape pooled = out;
  if (spec.HasInput(2)) out = ConstantInts(spec, 2);
  const auto within = [](int64_t inner, int64_t outer) { return inner >= 0 && inner <= outer; };
  if (!std::ranges::equal(pooled, out, within)) {
    Refuse(spec, fmt::format("an output {} of {}", ShapeToString(out), ShapeToString(in)));
  }
  return BuiltWithInputs(std::make_shared<MaxUnpoolOp>(pooled, out), 2);
}

// (sum |x|^p)^(1/p): of a window the sum is a depthwise convolution with ones.
std::string PowerSumRoot(NodeWriter& writer, const std::string& sum, float p) {
  return p == 1 ? sum : p == 2 ? writer.Add("Sqrt", {sum}) : writer.Add("Pow", {sum, writer.Float(1 / p)});
}
std::string Powers(NodeWriter& writer, const std::string& x, float p) {
  const std::string positive = writer.Add("Abs", {x});
  return p == 1 ? positive : writer.Add("Pow", {positive, writer.Float(p)});
}

float NormOf(const NodeSpec& spec) {
  const auto given = spec.attributes.find("p");
  const bool is_float = given != spec.attributes.end() && std::holds_alternative<float>(given->second);
  const float p = is_float ? spec.Float("p", 2) : static_cast<float>(spec.Int("p", 2));
  if (!(p >= 1)) Refuse(spec, fmt::format("p is {}", p));
  return p;
}

BuiltOp BuildLpPool(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& in = spec.inputs[0].shape;
  const float p = NormOf(spec);
  std::vector<AxisWindow> windows = ImportAxisWindows(spec, KernelOf(spec), in);
  const bool ceil_mode = spec.Int("ceil_mode", 0) != 0;
  Shape weights = {in[1], 1};
  Ints strides, dilations, pads, ends;
  for (size_t axis = 0; axis < windows.size(); ++axis) {
    const AxisWindow& w = windows[axis];
    const int64_t size = in[axis + 2], count = w.Count(size, ceil_mode);
    const int64_t needed = (count - 1) * w.stride + (w.kernel - 1) * w.dilation + 1 - size - w.begin;
    weights.push_back(w.kernel);
    strides.push_back(w.stride), dilations.push_back(w.dilation);
    pads.push_back(w.begin), ends.push_back(std::max(w.end, needed));
  }
  pads.insert(pads.end(), ends.begin(), ends.end());
  NeedFoldable(spec, weights);
  NodeWriter writer(spec);
  Tensor ones(weights);
  std::fill_n(ones.floats(), ones.size(), 1.0f);
  const std::string powers = Powers(writer, writer.In(0), p);
  const std::string sum =
      writer.Add("Conv", {powers, writer.Constant(std::move(ones))},
                 {{"group", in[1]}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}});
  writer.Add("Identity", {PowerSumRoot(writer, sum, p)}, {}, writer.Out(0));
  return writer.Take();
}

Ints AxesBehindSecond(const Shape& shape) {
  Ints axes(shape.size() < 2 ? 0 : shape.size() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

BuiltOp BuildGlobalLpPool(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const float p = NormOf(spec);
  NodeWriter writer(spec);
  const std::string axes = writer.Ints(AxesBehindSecond(spec.inputs[0].shape));
  const std::string sum = writer.Add("ReduceSum", {Powers(writer, writer.In(0), p), axes});
  writer.Add("Identity", {PowerSumRoot(writer, sum, p)}, {}, writer.Out(0));
  return writer.Take();
}

}  // namespace

std::string IndexedMaxPoolOp::Signature() const {
  std::string text = fmt::format("MaxPool output {}", output_);
  for (const AxisWindow& w : pool_.windows) {
    text += fmt::format(" k{}s{}d{}p{},{}", w.kernel, w.stride, w.dilation, w.begin, w.end);
  }
  return text + (pool_.ceil_mode ? " ceil" : "") + (pool_.column_major ? " column_major" : "");
}

Shape IndexedMaxPoolOp::InferShape(std::span<const Shape> inputs) const {
  const Shape& in = inputs[0];
  Shape out = in;
  bool fits = in.size() == pool_.windows.size() + 2;
  for (size_t axis = 0; fits && axis < pool_.windows.size(); ++axis) {
    out[axis + 2] = pool_.windows[axis].Count(in[axis + 2], pool_.ceil_mode);
    fits = out[axis + 2] > 0;
  }
  if (!fits) throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(in)));
  return out;
}

Tensor IndexedMaxPoolOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& x = *inputs[0];
  const Shape shapes[] = {x.shape()};
  const DataType types[] = {x.type()};
  Tensor out(InferShape(shapes), Layout::Nchw(OutputType(types)));
  const Shape sizes(x.shape().begin() + 2, x.shape().end());
  const Shape counts(out.shape().begin() + 2, out.shape().end());
  const int64_t plane = ElementCount(sizes), windows = ElementCount(counts);
  const int64_t planes = x.shape()[0] * x.shape()[1];
  const Ints strides = DenseStrides(counts);
  Ints position(counts.size());
  VisitType(x.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const T lowest = Lowest<T>();
    for (int64_t p = 0; p < windows; ++p) {
      for (size_t axis = 0; axis < counts.size(); ++axis) position[axis] = p / strides[axis] % counts[axis];
      for (int64_t image = 0; image < planes; ++image) {
        const T* from = x.data<T>() + image * plane;
        T largest = lowest;
        int64_t where = -1;
        ForEachTap(pool_.windows, position, sizes, [&](int64_t offset) {
          if (where >= 0 ? from[offset] > largest : from[offset] >= largest)
            largest = from[offset], where = offset;
        });
        if (output_ == 0) {
          out.data<T>()[image * windows + p] = largest;
        } else {
          const int64_t at = std::max<int64_t>(where, 0);
          out.ints()[image * windows + p] =
              image * plane + (pool_.column_major ? ColumnMajor(at, sizes) : at);
        }
      }
    }
  });
  return out;
}

double IndexedMaxPoolOp::Flops(std::span<const Shape> inputs) const {
  auto flops = static_cast<double>(ElementCount(InferShape(inputs)));
  for (const AxisWindow& w : pool_.windows) flops *= static_cast<double>(w.kernel);
  return flops;
}

Shape MaxUnpoolOp::InferShape(std::span<const Shape> inputs) const {
  if (inputs[0] == inputs[1]) return output_;
  throw Error(ErrorCode::kBadModel, fmt::format("{} of {} with indices {}", Signature(),
                                                ShapeToString(inputs[0]), ShapeToString(inputs[1])));
}

DataType MaxUnpoolOp::OutputType(std::span<const DataType> inputs) const {
  if (!IsInteger(inputs[1])) throw Error(ErrorCode::kBadModel, "its indices must be integers");
  return inputs[0];
}

Tensor MaxUnpoolOp::Reference(std::span<const Tensor* const> inputs) const {
  const Tensor& x = *inputs[0];
  const Ints indices = ElementsAs<int64_t>(*inputs[1]);
  Tensor out(output_, Layout::Nchw(x.type()));
  const Ints from = DenseStrides(pooled_), to = DenseStrides(output_);
  const int64_t count = x.size(), size = ElementCount(pooled_);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[i];
    if (index < 0 || index >= size) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{}: index {} is outside the output", Signature(), index));
    }
    int64_t at = 0;
    for (size_t axis = 0; axis < from.size(); ++axis) at += index / from[axis] % pooled_[axis] * to[axis];
    CopyElements(x, i, out, at, 1);
  }
  return out;
}

BuiltOp BuildIndexedMaxPool(const NodeSpec& spec) {
  IndexedPool pool{ImportAxisWindows(spec, KernelOf(spec), spec.inputs[0].shape),
                   spec.Int("ceil_mode", 0) != 0, spec.Int("storage_order", 0) != 0};
  return BuiltWithInputs(std::make_shared<IndexedMaxPoolOp>(std::move(pool), spec.output), 1);
}

BuiltOp BuildPoolOfOtherRank(const NodeSpec& spec) {
  const Shape& in = spec.inputs[0].shape;
  if (in.size() == 3) return OverImages(spec, false);
  if (in.size() != 5) Refuse(spec, fmt::format("an input {}, supported are ranks 3 to 5", ShapeToString(in)));
  const std::vector<AxisWindow> w = ImportAxisWindows(spec, KernelOf(spec), in);
  const bool ceil_mode = spec.Int("ceil_mode", 0) != 0;
  const int64_t height = w[1].Count(in[3], ceil_mode), width = w[2].Count(in[4], ceil_mode);
  NodeWriter writer(spec);
  const auto pool = [&](const std::string& x, const AxisWindow& rows, const AxisWindow& columns) {
    Attributes attributes = {{"kernel_shape", Ints{rows.kernel, columns.kernel}},
                             {"strides", Ints{rows.stride, columns.stride}},
                             {"dilations", Ints{rows.dilation, columns.dilation}},
                             {"pads", Ints{rows.begin, columns.begin, rows.end, columns.end}}};
    for (const char* name : {"ceil_mode", "count_include_pad"}) {
      if (spec.Has(name)) attributes[name] = spec.Int(name, 0);
    }
    return writer.Add(spec.op_type, {x}, std::move(attributes));
  };
  const std::string planes =
      writer.Reshape(writer.In(0), {in[0], (Checked(in[1]) * in[2]).value(), in[3], in[4]});
  const std::string pooled =
      writer.Reshape(pool(planes, w[1], w[2]), {in[0], in[1], in[2], (Checked(height) * width).value()});
  writer.Reshape(pool(pooled, w[0], {}), {in[0], in[1], w[0].Count(in[2], ceil_mode), height, width},
                 writer.Out(0));
  return writer.Take();
}

BuiltOp BuildGlobalPoolOfOtherRank(const NodeSpec& spec, const std::string& reduction) {
  NodeWriter writer(spec);
  writer.Add(reduction, {writer.In(0), writer.Ints(AxesBehindSecond(spec.inputs[0].shape))}, {},
             writer.Out(0));
  return writer.Take();
}

// MaxUnpool, LpPool (a sum, which is a convolution), GlobalLpPool.
std::vector<OpImporter> PoolIndicesImporters() {
  return {{"MaxUnpool", BuildMaxUnpool}, {"LpPool", BuildLpPool}, {"GlobalLpPool", BuildGlobalLpPool}};
}

std::vector<SavedOp> PoolIndicesOps() {
  return {Saved<IndexedMaxPoolOp>("IndexedMaxPool"), Saved<MaxUnpoolOp>("MaxUnpool")};
}

}  // namespace tilesmith
