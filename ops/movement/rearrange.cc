// Operators that move or mark elements and that others can express: nodes in their place.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"
#include "ops/base/op.h"

namespace tilesmith {
namespace {

std::vector<int64_t> Counting(int64_t count) {
  std::vector<int64_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// {a, b} repeated {r, s} times is {1, a, 1, b} expanded to {r, a, s, b}. Neighbouring axes that are not
// repeated stay one.
BuiltOp BuildTile(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const Shape& shape = spec.inputs[0].shape;
  const std::vector<int64_t> repeats = ConstantInts(spec, 1);
  if (repeats.size() != shape.size()) {
    Refuse(spec, fmt::format("{} repeats of {}", repeats.size(), ShapeToString(shape)));
  }
  Shape parts, expanded, result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (repeats[axis] < 0) Refuse(spec, fmt::format("repeats are {}", repeats[axis]));
    result.push_back((Checked(shape[axis]) * repeats[axis]).value());
    if (repeats[axis] == 1 && axis > 0 && repeats[axis - 1] == 1) {
      parts.back() = (Checked(parts.back()) * shape[axis]).value();
      expanded.back() = parts.back();
      continue;
    }
    if (repeats[axis] != 1) parts.push_back(1), expanded.push_back(repeats[axis]);
    parts.push_back(shape[axis]), expanded.push_back(shape[axis]);
  }
  NodeWriter writer(spec);
  if (ElementCount(result) == 0) {  // Expand cannot shrink a size to 0
    writer.Add("Constant", {}, {{"value", Tensor(result, Layout::Nchw(spec.inputs[0].type))}}, writer.Out(0));
    return writer.Take();
  }
  const std::string split = writer.Reshape(writer.In(0), parts);
  writer.Reshape(writer.Add("Expand", {split, writer.Ints(expanded)}), result, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildSpaceToDepth(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& s = ShapeOfRank(spec, 0, 4);
  const int64_t block = spec.Int("blocksize", 0);
  if (block < 1 || block > kMaxWindow || s[2] % block != 0 || s[3] % block != 0) {
    Refuse(spec, fmt::format("blocksize {} of {}", block, ShapeToString(s)));
  }
  NodeWriter writer(spec);
  const std::string split =
      writer.Reshape(writer.In(0), {s[0], s[1], s[2] / block, block, s[3] / block, block});
  const std::string moved = writer.Transpose(split, {0, 3, 5, 1, 2, 4});
  const int64_t channels = (Checked(s[1]) * block * block).value();
  writer.Reshape(moved, {s[0], channels, s[2] / block, s[3] / block}, writer.Out(0));
  return writer.Take();
}

// Each axis is cut or padded around its center; the odd element is at the end.
BuiltOp BuildCenterCropPad(const NodeSpec& spec) {
  NeedInputs(spec, 2, 2);
  const Shape& shape = spec.inputs[0].shape;
  const std::vector<int64_t> sizes = ConstantInts(spec, 1);
  const auto rank = std::ssize(shape);
  std::vector<int64_t> axes = spec.Ints("axes", Counting(rank));
  if (axes.size() != sizes.size())
    Refuse(spec, fmt::format("{} sizes of {} axes", sizes.size(), axes.size()));
  std::vector<int64_t> starts(rank, 0), ends = shape, pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = NormalAxis(spec, axes[i], shape.size());
    if (sizes[i] < 0 || sizes[i] > kMaxTensorElements) Refuse(spec, fmt::format("a size of {}", sizes[i]));
    const int64_t more = sizes[i] - shape[axis];
    if (more < 0) {
      starts[axis] = -more / 2;
      ends[axis] = starts[axis] + sizes[i];
    } else {
      pads[axis] = more / 2;
      pads[rank + axis] = more - more / 2;
    }
  }
  NodeWriter writer(spec);
  const std::string cut = writer.Add(
      "Slice", {writer.In(0), writer.Ints(starts), writer.Ints(ends), writer.Ints(Counting(rank))});
  writer.Add("Pad", {cut, writer.Ints(pads)}, {}, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildOneHot(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  const Shape& shape = spec.inputs[0].shape;
  const std::vector<int64_t> depths = ConstantInts(spec, 1);
  if (depths.size() != 1 || depths[0] < 1) Refuse(spec, "its depth must be one positive number");
  const int64_t depth = depths[0], axis = NormalAxis(spec, spec.Int("axis", -1), shape.size() + 1);
  NeedFoldable(spec, {depth});
  NodeWriter writer(spec);
  const std::string zero = writer.Ints({0}), one = writer.Ints({1});
  const std::string indices = writer.Add("Cast", {writer.In(0)}, {{"to", int64_t{7}}});
  const std::string from_end = writer.Add("Add", {indices, writer.Ints({depth})});
  const std::string positive = writer.Add("Where", {writer.Add("Less", {indices, zero}), from_end, indices});
  Shape along(shape.size() + 1, 1);
  along[axis] = depth;
  const std::string numbers = writer.Reshape(writer.Ints(Counting(depth)), along);
  const std::string flat = writer.Reshape(positive, shape);  // of a scalar, which Where made one element
  const std::string hot = writer.Add("Equal", {writer.Unsqueeze(flat, {axis}), numbers});
  const std::string off = writer.Add("Slice", {writer.In(2), zero, one});
  const std::string on = writer.Add("Slice", {writer.In(2), one, writer.Ints({2})});
  writer.Add("Where", {hot, on, off}, {}, writer.Out(0));
  return writer.Take();
}

// What is not on the wanted side of the diagonal is 0.
BuiltOp BuildTrilu(const NodeSpec& spec) {
  NeedInputs(spec, 1, 2);
  const Shape& shape = spec.inputs[0].shape;
  if (shape.size() < 2) Refuse(spec, "its input must be of matrices");
  if (spec.HasInput(1) && ElementCount(spec.inputs[1].shape) != 1) Refuse(spec, "k must be one number");
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  NeedFoldable(spec, {rows, columns});
  Tensor diagonals({rows, columns}, Layout::Nchw(DataType::kI64));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) diagonals.ints()[i * columns + j] = j - i;
  }
  NodeWriter writer(spec);
  const std::string k = spec.HasInput(1) ? writer.In(1) : writer.Ints({0});
  const std::string kept = writer.Add(spec.Int("upper", 1) != 0 ? "GreaterOrEqual" : "LessOrEqual",
                                      {writer.Constant(std::move(diagonals)), k});
  const std::string zero = writer.Constant(Tensor({}, Layout::Nchw(spec.inputs[0].type)));
  writer.Add("Where", {kept, writer.In(0), zero}, {}, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildEyeLike(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const Shape& shape = ShapeOfRank(spec, 0, 2);
  const int64_t k = spec.Int("k", 0);
  NeedFoldable(spec, shape);
  Tensor eye(shape);
  if (k < -kMaxTensorElements || k > kMaxTensorElements) Refuse(spec, fmt::format("k is {}", k));
  for (int64_t i = 0; i < shape[0]; ++i) {
    if (k >= -i && k < shape[1] - i) eye.floats()[i * shape[1] + i + k] = 1;
  }
  NodeWriter writer(spec);
  const std::string floats = writer.Constant(std::move(eye));
  if (spec.Has("dtype")) {
    writer.Add("Cast", {floats}, {{"to", spec.Int("dtype", 1)}}, writer.Out(0));
  } else {
    writer.Add("CastLike", {floats, writer.In(0)}, {}, writer.Out(0));
  }
  return writer.Take();
}

}  // namespace

// Tile, SpaceToDepth, CenterCropPad, OneHot, Trilu, EyeLike.
std::vector<OpImporter> RearrangeImporters() {
  return {{"Tile", BuildTile},
          {"SpaceToDepth", BuildSpaceToDepth},
          {"CenterCropPad", BuildCenterCropPad},
          {"OneHot", BuildOneHot},
          {"Trilu", BuildTrilu},
          {"EyeLike", BuildEyeLike}};
}

}  // namespace tilesmith
