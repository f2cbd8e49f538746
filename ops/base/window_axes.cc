#include "ops/base/window_axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tilesmith {
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
