#include "ops/base/import_util.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/elements.h"

namespace tilesmith {
namespace {

// Padding that makes the output ceil(input / stride), the odd one at the end (SAME_UPPER) or the start.
void ResolveSame(int64_t input, int64_t extent, int64_t stride, bool upper, int64_t& begin, int64_t& end) {
  const int64_t output = CeilDiv(input, stride);
  const int64_t total = std::max<int64_t>((output - 1) * stride + extent - input, 0);
  begin = upper ? total / 2 : total - total / 2;
  end = total - begin;
}

void NeedTwo(const NodeSpec& spec, std::string_view name, const std::vector<int64_t>& values, size_t count) {
  if (values.size() == count) return;
  Refuse(spec, fmt::format("{} has {} values, 2-D windows need {}", name, values.size(), count));
}

void NeedPositive(const NodeSpec& spec, std::string_view name, const std::vector<int64_t>& values) {
  const auto fits = [](int64_t value) { return value > 0 && value <= kMaxWindow; };
  if (std::ranges::all_of(values, fits)) return;
  Refuse(spec, fmt::format("{} is [{}], all must be positive and at most {}", name, fmt::join(values, ", "),
                           kMaxWindow));
}

}  // namespace

void Refuse(const NodeSpec& spec, const std::string& reason) {
  throw Error(ErrorCode::kBadModel, fmt::format("node \"{}\" ({}): {}", spec.name, spec.op_type, reason));
}

void NeedInputs(const NodeSpec& spec, size_t least, size_t most) {
  if (spec.inputs.size() > most) {
    Refuse(spec, fmt::format("it has {} inputs, at most {} are allowed", spec.inputs.size(), most));
  }
  for (size_t i = 0; i < least; ++i) {
    if (!spec.HasInput(i)) Refuse(spec, fmt::format("input {} is missing", i));
  }
}

const Shape& ShapeOfRank(const NodeSpec& spec, size_t index, size_t rank) {
  const Shape& shape = spec.inputs.at(index).shape;
  if (shape.size() != rank) {
    Refuse(spec, fmt::format("input {} has shape {} of rank {}, only rank {} is supported", index,
                             ShapeToString(shape), shape.size(), rank));
  }
  return shape;
}

bool IsKnown(const NodeSpec& spec, size_t index) {
  return !spec.HasInput(index) || spec.inputs[index].constant;
}

void NeedKnown(const NodeSpec& spec, size_t index, std::string_view what) {
  if (spec.inputs.at(index).constant) return;
  Refuse(spec, fmt::format("{} must be constant, it depends on the network's inputs", what));
}

std::vector<int64_t> ConstantInts(const NodeSpec& spec, size_t index) {
  return ElementsAs<int64_t>(spec.Constant(index));
}

std::vector<float> ConstantFloats(const NodeSpec& spec, size_t index) {
  return ElementsAs<float>(spec.Constant(index));
}

std::optional<std::vector<int64_t>> IntsFromAttributeOrInput(const NodeSpec& spec, std::string_view name,
                                                             size_t index) {
  if (spec.Has(name)) return spec.Ints(name, {});
  if (spec.HasInput(index)) return ConstantInts(spec, index);
  return std::nullopt;
}

int64_t NormalAxis(const NodeSpec& spec, int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    Refuse(spec, fmt::format("axis {} is outside the rank {}", axis, rank));
  }
  return axis < 0 ? axis + signed_rank : axis;
}

std::vector<int64_t> NormalAxes(const NodeSpec& spec, std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes) axis = NormalAxis(spec, axis, rank);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) Refuse(spec, "an axis is listed twice");
  return axes;
}

Window ImportWindow(const NodeSpec& spec, const std::vector<int64_t>& kernel, int64_t ih, int64_t iw) {
  const std::vector<int64_t> strides = spec.Ints("strides", {1, 1});
  const std::vector<int64_t> dilations = spec.Ints("dilations", {1, 1});
  const std::vector<int64_t> pads = spec.Ints("pads", {0, 0, 0, 0});
  NeedTwo(spec, "kernel_shape", kernel, 2);
  NeedTwo(spec, "strides", strides, 2);
  NeedTwo(spec, "dilations", dilations, 2);
  NeedTwo(spec, "pads", pads, 4);
  NeedPositive(spec, "kernel_shape", kernel);
  NeedPositive(spec, "strides", strides);
  NeedPositive(spec, "dilations", dilations);
  const auto [least_pad, most_pad] = std::ranges::minmax(pads);
  if (least_pad < 0 || most_pad > kMaxWindow) {
    Refuse(spec, fmt::format("pads are [{}], negative ones are not supported, nor any above {}",
                             fmt::join(pads, ", "), kMaxWindow));
  }
  Window window{kernel[0],    kernel[1], strides[0], strides[1], dilations[0],
                dilations[1], pads[0],   pads[1],    pads[2],    pads[3]};
  const std::string auto_pad = spec.String("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const bool upper = auto_pad == "SAME_UPPER";
    ResolveSame(ih, (window.kh - 1) * window.dh + 1, window.sh, upper, window.top, window.bottom);
    ResolveSame(iw, (window.kw - 1) * window.dw + 1, window.sw, upper, window.left, window.right);
  } else if (auto_pad == "VALID") {
    window.top = window.left = window.bottom = window.right = 0;
  } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
    Refuse(spec, fmt::format("auto_pad \"{}\" is unknown (known: NOTSET, SAME_UPPER, SAME_LOWER, VALID)",
                             auto_pad));
  }
  return window;
}

void NeedFoldable(const NodeSpec& spec, const Shape& shape) {
  try {
    CheckShape(shape, spec.limits);
  } catch (const Error& error) {
    Refuse(spec, fmt::format("an impossible constant: {}", error.what()));
  }
  if (ElementCount(shape) <= spec.limits.folded_operations) return;
  Refuse(spec, fmt::format("a constant {} would be computed at load time, where {} more elements are allowed",
                           ShapeToString(shape), spec.limits.folded_operations));
}

BuiltOp BuiltWithInputs(OpPtr op, int count) {
  BuiltOp built{std::move(op), {}};
  for (int i = 0; i < count; ++i) built.data_inputs.push_back(i);
  return built;
}

namespace {

std::vector<int64_t> Sized(const NodeSpec& spec, std::string_view name, size_t count, int64_t fallback) {
  std::vector<int64_t> values = spec.Ints(name, std::vector<int64_t>(count, fallback));
  if (values.size() != count) {
    Refuse(spec, fmt::format("{} has {} values, {} are needed", name, values.size(), count));
  }
  return values;
}

}  // namespace

BuiltOp OverImages(const NodeSpec& spec, bool weights) {
  NodeWriter writer(spec);
  ModelNode node{.op_type = spec.op_type, .inputs = spec.input_names, .attributes = spec.attributes};
  node.opset = spec.opset;
  node.inputs[0] = writer.Unsqueeze(node.inputs[0], {2});
  if (weights) node.inputs[1] = writer.Unsqueeze(node.inputs[1], {2});
  for (const auto& [name, first] : {std::pair<std::string_view, int64_t>("kernel_shape", 1),
                                    {"strides", 1},
                                    {"dilations", 1},
                                    {"pads", 0},
                                    {"output_padding", 0},
                                    {"output_shape", 1}}) {
    if (!spec.Has(name)) continue;
    std::vector<int64_t> values = Sized(spec, name, name == "pads" ? 2 : 1, 0);
    if (name == "pads") values.insert(values.begin() + 1, 0);
    values.insert(values.begin(), first);
    node.attributes.find(name)->second = values;
  }
  for (const std::string& output : spec.output_names) {
    node.outputs.push_back(output.empty() ? "" : output + "/of_images");
  }
  const std::vector<std::string> outputs = node.outputs;
  writer.Append(std::move(node));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].empty()) writer.Squeeze(outputs[i], {2}, writer.Out(i));
  }
  return writer.Take();
}

int64_t AxisWindow::Count(int64_t size, bool ceil_mode) const {
  const int64_t room = size + begin + end - (kernel - 1) * dilation - 1;
  if (room < 0) return 0;
  int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= size + begin) --count;
  return count;
}

std::vector<AxisWindow> ImportAxisWindows(const NodeSpec& spec, const std::vector<int64_t>& kernel,
                                          const Shape& input) {
  const size_t count = input.size() < 2 ? 0 : input.size() - 2;
  if (kernel.size() != count || count == 0) {
    Refuse(spec, fmt::format("kernel_shape [{}] for {}", fmt::join(kernel, ", "), ShapeToString(input)));
  }
  const std::vector<int64_t> strides = Sized(spec, "strides", count, 1);
  const std::vector<int64_t> dilations = Sized(spec, "dilations", count, 1);
  const std::vector<int64_t> pads = Sized(spec, "pads", 2 * count, 0);
  const std::string auto_pad = spec.String("auto_pad", "NOTSET");
  std::vector<AxisWindow> windows;
  for (size_t axis = 0; axis < count; ++axis) {
    // One axis at a time, as the height of an image of width 1.
    NodeSpec one = spec;
    one.attributes = {{"strides", std::vector<int64_t>{strides[axis], 1}},
                      {"dilations", std::vector<int64_t>{dilations[axis], 1}},
                      {"pads", std::vector<int64_t>{pads[axis], 0, pads[count + axis], 0}},
                      {"auto_pad", auto_pad}};
    const Window w = ImportWindow(one, {kernel[axis], 1}, input[axis + 2], 1);
    windows.push_back({w.kh, w.sh, w.dh, w.top, w.bottom});
  }
  return windows;
}

}  // namespace tilesmith
