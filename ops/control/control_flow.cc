// If, Loop and Scan as the nodes that run: what decides must be known, at load time or in the tail.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "ops/base/import_util.h"
#include "ops/base/node_writer.h"

namespace tilesmith {
namespace {

using Names = std::vector<std::string>;

const NodeList& BodyOf(const NodeSpec& spec, std::string_view name) {
  const auto found = spec.bodies.find(name);
  if (found == spec.bodies.end()) Refuse(spec, fmt::format("the attribute {} is missing", name));
  return *found->second;
}

int64_t ScalarAt(const NodeSpec& spec, size_t index) {
  const std::vector<int64_t> values = ConstantInts(spec, index);
  if (values.size() != 1) Refuse(spec, fmt::format("input {} must be one value", index));
  return values[0];
}

BuiltOp BuildIf(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  const NodeList& branch = BodyOf(spec, ScalarAt(spec, 0) != 0 ? "then_branch" : "else_branch");
  if (branch.outputs.size() != spec.output_names.size()) {
    Refuse(spec,
           fmt::format("{} outputs of a branch with {}", spec.output_names.size(), branch.outputs.size()));
  }
  NodeWriter writer(spec);
  writer.Inline(branch, {}, spec.output_names);
  return writer.Take();
}

// What a Loop in the middle of its iterations has beside what the model gave it.
constexpr std::string_view kDone = "iterations done";

// `parts` stacked along a new axis 0.
void Stack(NodeWriter& writer, const Names& parts, int64_t axis, const std::string& output) {
  Names slices;
  for (const std::string& part : parts) slices.push_back(writer.Unsqueeze(part, {axis}));
  writer.Add("Concat", slices, {{"axis", axis}}, output);
}

// The stack of no iterations, of what the body declares as its output number `index`.
void StackNothing(const NodeSpec& spec, NodeWriter& writer, size_t index, int64_t axis,
                  const std::string& output) {
  const NodeList& body = BodyOf(spec, "body");
  if (index >= body.declared.size() || !body.declared[index]) {
    Refuse(spec, "no iteration, and no declaration, gives its stacked outputs a type");
  }
  Shape shape = body.declared[index]->shape;
  shape.insert(shape.begin() + NormalAxis(spec, axis, shape.size() + 1), 0);
  CheckShape(shape, spec.limits);
  writer.Add("Constant", {}, {{"value", Tensor(shape, Layout::Nchw(body.declared[index]->type))}}, output);
}

// Inputs: count, condition, the carried values; then, between iterations, what each iteration so far has
// given to the stacked outputs, iteration by iteration.
BuiltOp BuildLoop(const NodeSpec& spec) {
  NeedInputs(spec, 0, 1 << 20);
  const NodeList& body = BodyOf(spec, "body");
  if (body.inputs.size() < 2 || body.outputs.size() + 1 < body.inputs.size()) {
    Refuse(spec,
           fmt::format("a body with {} inputs and {} outputs", body.inputs.size(), body.outputs.size()));
  }
  const size_t carried = body.inputs.size() - 2, stacked = body.outputs.size() - 1 - carried;
  const int64_t done = spec.Int(kDone, 0);
  if (spec.input_names.size() < 2 + carried || done < 0 || spec.output_names.size() > carried + stacked ||
      (stacked > 0 && spec.input_names.size() - 2 - carried != static_cast<size_t>(done) * stacked)) {
    Refuse(spec, fmt::format("{} inputs and {} outputs for a body with {} and {}", spec.input_names.size(),
                             spec.output_names.size(), body.inputs.size(), body.outputs.size()));
  }
  const bool counted = spec.HasInput(0) && done >= ScalarAt(spec, 0);
  const bool ends = counted || (spec.HasInput(1) && ScalarAt(spec, 1) == 0);
  const Names state(spec.input_names.begin() + 2, spec.input_names.begin() + 2 + carried);
  Names parts(spec.input_names.begin() + 2 + carried, spec.input_names.end());
  NodeWriter writer(spec, fmt::format("{}/", done));
  if (ends) {
    for (size_t i = 0; i < spec.output_names.size(); ++i) {
      if (spec.output_names[i].empty()) continue;
      if (i < carried) {
        writer.Add("Identity", {state[i]}, {}, writer.Out(i));
        continue;
      }
      if (done == 0) {
        StackNothing(spec, writer, i + 1, 0, writer.Out(i));
        continue;
      }
      Names along;
      for (size_t k = i - carried; k < parts.size(); k += stacked) along.push_back(parts[k]);
      Stack(writer, along, 0, writer.Out(i));
    }
    return writer.Take();
  }
  Tensor number({}, Layout::Nchw(DataType::kI64));
  number.ints()[0] = done;
  const std::string condition =
      spec.HasInput(1) ? spec.input_names[1] : writer.Add("Equal", {writer.Float(0), writer.Float(0)});
  Names inputs = {writer.Constant(std::move(number)), condition};
  inputs.insert(inputs.end(), state.begin(), state.end());
  const Names results = writer.Inline(body, inputs, {});
  ModelNode rest{.name = spec.name, .op_type = "Loop", .outputs = spec.output_names};
  rest.inputs = {spec.input_names[0], results[0]};
  rest.inputs.insert(rest.inputs.end(), results.begin() + 1, results.begin() + 1 + carried);
  rest.inputs.insert(rest.inputs.end(), parts.begin(), parts.end());
  rest.inputs.insert(rest.inputs.end(), results.begin() + 1 + carried, results.end());
  rest.attributes.emplace(kDone, done + 1);
  rest.bodies = spec.bodies;
  rest.opset = spec.opset;
  writer.Append(std::move(rest));
  return writer.Take();
}

std::vector<int64_t> ListOf(const NodeSpec& spec, std::string_view name, size_t count) {
  std::vector<int64_t> values = spec.Ints(name, std::vector<int64_t>(count, 0));
  if (values.size() != count)
    Refuse(spec, fmt::format("{} has {} values for {}", name, values.size(), count));
  return values;
}

// What every iteration of a body copies: nodes, those of bodies in it too, and elements of tensors in
// attributes.
struct BodySize {
  double nodes = 0, elements = 0;
};

BodySize SizeOf(const NodeList& body) {
  BodySize size;
  for (const ModelNode& node : body.nodes) {
    ++size.nodes;
    for (const auto& [name, value] : node.attributes)
      if (const auto* tensor = std::get_if<TensorAttribute>(&value))
        size.elements += static_cast<double>(tensor->value()->size());
    for (const auto& [name, inner] : node.bodies) {
      const BodySize of_inner = SizeOf(*inner);
      size.nodes += of_inner.nodes;
      size.elements += of_inner.elements;
    }
  }
  return size;
}

BuiltOp BuildScan(const NodeSpec& spec) {
  if (spec.opset < 9) Refuse(spec, fmt::format("its form in opset {} is not supported", spec.opset));
  const NodeList& body = BodyOf(spec, "body");
  const int64_t scanned = spec.Int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > std::ssize(spec.inputs) || body.inputs.size() != spec.inputs.size() ||
      body.outputs.size() != spec.output_names.size()) {
    Refuse(spec, fmt::format("{} scanned inputs of {}, a body with {} inputs and {} outputs", scanned,
                             spec.inputs.size(), body.inputs.size(), body.outputs.size()));
  }
  const size_t carried = spec.inputs.size() - static_cast<size_t>(scanned);
  if (body.outputs.size() < carried) Refuse(spec, "its body has fewer outputs than carried values");
  const size_t stacked = body.outputs.size() - carried;
  std::vector<int64_t> axes = ListOf(spec, "scan_input_axes", scanned);
  const std::vector<int64_t> backwards = ListOf(spec, "scan_input_directions", scanned);
  const std::vector<int64_t> out_axes = ListOf(spec, "scan_output_axes", stacked);
  const std::vector<int64_t> out_backwards = ListOf(spec, "scan_output_directions", stacked);
  int64_t steps = -1;
  for (int64_t i = 0; i < scanned; ++i) {
    const Shape& shape = spec.inputs[carried + i].shape;
    axes[i] = NormalAxis(spec, axes[i], shape.size());
    if (steps >= 0 && shape[axes[i]] != steps) Refuse(spec, "its scanned inputs have different lengths");
    steps = shape[axes[i]];
  }
  // Every iteration repeats the body: more of them than nodes may be written is said before they are.
  constexpr double kMaxNodes = 1 << 16, kMaxElements = 1 << 26;
  const BodySize size = SizeOf(body);
  const double most = std::floor(std::min(kMaxNodes / (size.nodes + static_cast<double>(scanned) + 1),
                                          kMaxElements / std::max(size.elements, 1.0)));
  if (static_cast<double>(steps) > most)
    Refuse(spec, fmt::format("{} iterations, at most {:.0f} are unrolled", steps, most));
  NodeWriter writer(spec);
  Names state(spec.input_names.begin(), spec.input_names.begin() + carried);
  std::vector<Names> parts(stacked);
  for (int64_t step = 0; step < steps; ++step) {
    Names inputs = state;
    for (int64_t i = 0; i < scanned; ++i) {
      Tensor at({}, Layout::Nchw(DataType::kI64));
      at.ints()[0] = backwards[i] != 0 ? steps - 1 - step : step;
      inputs.push_back(writer.Add("Gather", {spec.input_names[carried + i], writer.Constant(std::move(at))},
                                  {{"axis", axes[i]}}));
    }
    const Names results = writer.Inline(body, inputs, {});
    state.assign(results.begin(), results.begin() + carried);
    for (size_t i = 0; i < stacked; ++i) {
      Names& along = parts[i];
      along.insert(out_backwards[i] != 0 ? along.begin() : along.end(), results[carried + i]);
    }
  }
  for (size_t i = 0; i < carried; ++i) {
    if (!writer.Out(i).empty()) writer.Add("Identity", {state[i]}, {}, writer.Out(i));
  }
  for (size_t i = 0; i < stacked; ++i) {
    const std::string& output = writer.Out(carried + i);
    if (output.empty()) continue;
    if (steps == 0) {
      StackNothing(spec, writer, carried + i, out_axes[i], output);
    } else {
      Stack(writer, parts[i], out_axes[i], output);
    }
  }
  return writer.Take();
}

}  // namespace

// If, Loop, Scan. A Loop becomes the nodes of one iteration, and a Loop of those that are left.
std::vector<OpImporter> ControlFlowImporters() {
  return {{"If", BuildIf}, {"Loop", BuildLoop}, {"Scan", BuildScan}};
}

}  // namespace tilesmith
