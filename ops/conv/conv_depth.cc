#include "ops/conv/conv_depth.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/base/import_util.h"

namespace tilesmith {
namespace {

using Ints = std::vector<int64_t>;

// Taps along the depth of one convolution.
constexpr int64_t kMaxTaps = 64;

Shape SizesFrom(const Shape& shape, size_t from) { return Shape(shape.begin() + from, shape.end()); }

std::string Sliced(NodeWriter& writer, const std::string& x, int64_t axis, const AxisWindow& along) {
  // `begin` is the first element, `end` that behind the last, `stride` the step.
  return writer.Add("Slice", {x, writer.Ints({along.begin}), writer.Ints({along.end}), writer.Ints({axis}),
                              writer.Ints({along.stride})});
}

void NeedThreeDimensions(const NodeSpec& spec) {
  const Shape &in = spec.inputs[0].shape, &weights = spec.inputs[1].shape;
  if (in.size() == 5 && weights.size() == 5) return;
  Refuse(spec, fmt::format("an input {} and weights {}, supported are one, two and three dimensions",
                           ShapeToString(in), ShapeToString(weights)));
}

}  // namespace

BuiltOp BuildConvOfOtherRank(const NodeSpec& spec) {
  const Shape &in = spec.inputs[0].shape, &weights = spec.inputs[1].shape;
  if (in.size() == 3 && weights.size() == 3) return OverImages(spec, true);
  NeedThreeDimensions(spec);
  const std::vector<AxisWindow> w = ImportAxisWindows(spec, SizesFrom(weights, 2), in);
  if (spec.Ints("kernel_shape", SizesFrom(weights, 2)) != SizesFrom(weights, 2)) {
    Refuse(spec, fmt::format("kernel_shape contradicts the weights {}", ShapeToString(weights)));
  }
  const int64_t depth = w[0].Count(in[2]), height = w[1].Count(in[3]), width = w[2].Count(in[4]);
  if (depth < 1 || height < 1 || width < 1) Refuse(spec, "the kernel is larger than the padded input");
  if (w[0].kernel > kMaxTaps) Refuse(spec, fmt::format("{} taps along the depth", w[0].kernel));
  NodeWriter writer(spec);
  std::string images = writer.Transpose(writer.In(0), {0, 2, 1, 3, 4});
  if (w[0].begin > 0 || w[0].end > 0) {
    images = writer.Add("Pad", {images, writer.Ints({0, w[0].begin, 0, 0, 0, 0, w[0].end, 0, 0, 0})});
  }
  const Attributes attributes = {{"group", spec.Int("group", 1)},
                                 {"strides", Ints{w[1].stride, w[2].stride}},
                                 {"dilations", Ints{w[1].dilation, w[2].dilation}},
                                 {"pads", Ints{w[1].begin, w[2].begin, w[1].end, w[2].end}}};
  const int64_t batch = (Checked(in[0]) * depth).value();
  std::string sum;
  for (int64_t tap = 0; tap < w[0].kernel; ++tap) {
    const int64_t first = tap * w[0].dilation;
    const std::string taken =
        Sliced(writer, images, 1,
               {.stride = w[0].stride, .begin = first, .end = first + (depth - 1) * w[0].stride + 1});
    const std::string flat = writer.Reshape(taken, {batch, in[1], in[3], in[4]});
    const std::string kernel =
        writer.Squeeze(Sliced(writer, writer.In(1), 2, {.begin = tap, .end = tap + 1}), {2});
    std::vector<std::string> inputs = {flat, kernel};
    if (tap == 0 && spec.HasInput(2)) inputs.push_back(writer.In(2));
    const std::string part = writer.Add("Conv", inputs, attributes);
    sum = tap == 0 ? part : writer.Add("Add", {sum, part});
  }
  const std::string images_out = writer.Reshape(sum, {in[0], depth, weights[0], height, width});
  writer.Transpose(images_out, {0, 2, 1, 3, 4}, writer.Out(0));
  return writer.Take();
}

BuiltOp BuildConvTransposeOfOtherRank(const NodeSpec& spec) {
  const Shape &in = spec.inputs[0].shape, &weights = spec.inputs[1].shape;
  if (in.size() == 3 && weights.size() == 3) return OverImages(spec, true);
  NeedThreeDimensions(spec);
  // One axis at a time, by the rules of two dimensions, would repeat them here: what differs is refused.
  for (const char* name : {"output_shape", "auto_pad"}) {
    if (spec.Has(name) && spec.String("auto_pad", "NOTSET") != "NOTSET") {
      Refuse(spec, fmt::format("{} is not supported in three dimensions", name));
    }
  }
  const int64_t groups = spec.Int("group", 1);
  if (groups < 1 || in[1] % groups != 0 || weights[0] != in[1]) {
    Refuse(spec,
           fmt::format("{} groups of {} and weights {}", groups, ShapeToString(in), ShapeToString(weights)));
  }
  NodeSpec plain = spec;
  plain.attributes.erase("output_shape");
  const std::vector<AxisWindow> w = ImportAxisWindows(plain, SizesFrom(weights, 2), in);
  const Ints more = spec.Ints("output_padding", {0, 0, 0}), wanted = spec.Ints("output_shape", {});
  const auto negative = [](int64_t size) { return size < 0; };
  if (more.size() != 3 || (!wanted.empty() && wanted.size() != 3) || std::ranges::any_of(more, negative))
    Refuse(spec, "output_padding or output_shape");
  NodeWriter writer(spec);
  // Zeros between elements: {.., d, ..} as {.., d, 1, ..}, padded to {.., d, stride, ..}, and the end cut
  // off.
  std::string x = writer.In(0);
  Shape shape = in;
  Ints pads(10, 0), starts, ends;
  for (int64_t axis = 2; axis < 5; ++axis) {
    const AxisWindow& along = w[axis - 2];
    const int64_t extent = (along.kernel - 1) * along.dilation, size = shape[axis];
    int64_t begin = along.begin, end = along.end, extra = more[axis - 2];
    const int64_t full = ((Checked(size) - 1) * along.stride + extent + 1 + extra).value();
    if (!wanted.empty()) {
      if (wanted[axis - 2] < 1 || wanted[axis - 2] > full)
        Refuse(spec, "output_shape is larger than what the input reaches");
      const int64_t total = full - wanted[axis - 2];
      begin = total / 2;
      end = total - begin;
    }
    if (along.stride > 1) {
      Ints between(size_t{2} * 6, 0);
      between[6 + axis + 1] = along.stride - 1;
      const std::string spread = writer.Add("Pad", {writer.Unsqueeze(x, {axis + 1}), writer.Ints(between)});
      shape[axis] = (Checked(size) * along.stride).value();
      x = writer.Reshape(spread, shape);
      shape[axis] = (size - 1) * along.stride + 1;
      x = Sliced(writer, x, axis, {.begin = 0, .end = shape[axis]});
    }
    pads[axis] = extent - begin;
    pads[5 + axis] = extent - end + extra;
  }
  x = writer.Add("Pad", {x, writer.Ints(pads)});
  // {C, O / g, ...} becomes {O, C / g, ...}, back to front along each axis.
  const int64_t inner = in[1] / groups, outer = weights[1];
  Shape grouped = {groups, inner, outer};
  grouped.insert(grouped.end(), weights.begin() + 2, weights.end());
  std::string kernel = writer.Transpose(writer.Reshape(writer.In(1), grouped), {0, 2, 1, 3, 4, 5});
  kernel =
      writer.Reshape(kernel, {(Checked(groups) * outer).value(), inner, weights[2], weights[3], weights[4]});
  kernel =
      writer.Add("Slice", {kernel, writer.Ints({-1, -1, -1}), writer.Ints({INT64_MIN, INT64_MIN, INT64_MIN}),
                           writer.Ints({2, 3, 4}), writer.Ints({-1, -1, -1})});
  std::vector<std::string> inputs = {x, kernel};
  if (spec.HasInput(2)) inputs.push_back(writer.In(2));
  writer.Add("Conv", inputs,
             {{"group", groups}, {"dilations", Ints{w[0].dilation, w[1].dilation, w[2].dilation}}},
             writer.Out(0));
  return writer.Take();
}

}  // namespace tilesmith
