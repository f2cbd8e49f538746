#include "ops/base/node_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ops/base/import_util.h"

namespace tilesmith {
namespace {

using Renames = std::unordered_map<std::string, std::string>;

void Rename(std::vector<std::string>& tensors, const Renames& names) {
  for (std::string& tensor : tensors) {
    if (const auto found = names.find(tensor); found != names.end()) tensor = found->second;
  }
}

// The tensors around a body that have other names now.
NodeList Renamed(const NodeList& list, Renames names) {
  NodeList result = list;
  for (const std::string& input : list.inputs) names.erase(input);
  for (ModelNode& node : result.nodes) {
    Rename(node.inputs, names);
    for (auto& [name, body] : node.bodies) body = std::make_shared<NodeList>(Renamed(*body, names));
  }
  Rename(result.outputs, names);
  return result;
}

void Resolve(ModelNode& node, const Attributes& attributes) {
  for (const auto& [name, reference] : node.references) {
    if (const auto found = attributes.find(reference); found != attributes.end()) {
      node.attributes.insert_or_assign(name, found->second);
    }
  }
  node.references.clear();
  for (auto& [name, body] : node.bodies) {
    auto resolved = std::make_shared<NodeList>(*body);
    for (ModelNode& inner : resolved->nodes) Resolve(inner, attributes);
    body = std::move(resolved);
  }
}

}  // namespace

NodeWriter::NodeWriter(const NodeSpec& spec, const std::string& part)
    : spec_(spec),
      prefix_(spec.scope == 0 ? fmt::format("{}/{}", spec.name, part)
                              : fmt::format("{}/{}/{}", spec.name, spec.scope, part)) {}

std::string NodeWriter::NewName(std::string_view what) {
  return fmt::format("{}{}_{}", prefix_, what, names_++);
}

std::string NodeWriter::Add(std::string op_type, std::vector<std::string> inputs, Attributes attributes,
                            std::string output) {
  if (output.empty()) output = NewName(op_type);
  ModelNode node{.op_type = std::move(op_type), .inputs = std::move(inputs), .outputs = {output}};
  node.attributes = std::move(attributes);
  node.opset = kOpset;
  nodes_.push_back(std::move(node));
  return output;
}

std::string NodeWriter::Add(OpPtr op, std::vector<std::string> inputs, std::string output) {
  if (output.empty()) output = NewName(op->Type());
  ModelNode node{
      .name = spec_.name, .op_type = spec_.op_type, .inputs = std::move(inputs), .outputs = {output}};
  node.opset = kOpset;
  node.op = std::move(op);
  nodes_.push_back(std::move(node));
  return output;
}

std::string NodeWriter::Constant(Tensor value) { return Add("Constant", {}, {{"value", std::move(value)}}); }

std::string NodeWriter::Ints(const std::vector<int64_t>& values) {
  return Add("Constant", {}, {{"value_ints", values}});
}

std::string NodeWriter::Float(float value) { return Add("Constant", {}, {{"value_float", value}}); }

std::string NodeWriter::Reshape(const std::string& x, const std::vector<int64_t>& shape, std::string output) {
  return Add("Reshape", {x, Ints(shape)}, {{"allowzero", int64_t{1}}}, std::move(output));
}

std::string NodeWriter::Transpose(const std::string& x, const std::vector<int64_t>& perm,
                                  std::string output) {
  return Add("Transpose", {x}, {{"perm", perm}}, std::move(output));
}

std::string NodeWriter::Unsqueeze(const std::string& x, const std::vector<int64_t>& axes,
                                  std::string output) {
  return Add("Unsqueeze", {x, Ints(axes)}, {}, std::move(output));
}

std::string NodeWriter::Squeeze(const std::string& x, const std::vector<int64_t>& axes, std::string output) {
  return Add("Squeeze", {x, Ints(axes)}, {}, std::move(output));
}

std::vector<std::string> NodeWriter::Inline(const NodeList& list, const std::vector<std::string>& inputs,
                                            const std::vector<std::string>& outputs,
                                            const Attributes& attributes) {
  if (inputs.size() > list.inputs.size() || outputs.size() > list.outputs.size()) {
    Refuse(spec_, fmt::format("a body with {} inputs and {} outputs is given {} and {}", list.inputs.size(),
                              list.outputs.size(), inputs.size(), outputs.size()));
  }
  Renames names;
  for (size_t i = 0; i < list.inputs.size(); ++i) names[list.inputs[i]] = i < inputs.size() ? inputs[i] : "";
  std::set<std::string_view> computed;
  for (const ModelNode& node : list.nodes) computed.insert(node.outputs.begin(), node.outputs.end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& inner = list.outputs[i];
    if (!outputs[i].empty() && computed.contains(inner)) names.try_emplace(inner, outputs[i]);
  }
  for (const ModelNode& node : list.nodes) {
    for (const std::string& output : node.outputs) {
      if (!output.empty() && !names.contains(output)) names[output] = NewName(output);
    }
  }
  for (ModelNode node : list.nodes) {
    Rename(node.inputs, names);
    Rename(node.outputs, names);
    for (auto& [name, body] : node.bodies) body = std::make_shared<NodeList>(Renamed(*body, names));
    Resolve(node, attributes);
    if (!node.name.empty()) node.name = prefix_ + node.name;
    nodes_.push_back(std::move(node));
  }
  std::vector<std::string> results = list.outputs;
  Rename(results, names);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].empty() && results[i] != outputs[i]) {
      results[i] = Add("Identity", {results[i]}, {}, outputs[i]);
    }
  }
  return results;
}

std::vector<std::string> FreeNames(const NodeList& list) {
  std::set<std::string> known(list.inputs.begin(), list.inputs.end()), found;
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !known.contains(name)) found.insert(name);
  };
  for (const ModelNode& node : list.nodes) {
    std::ranges::for_each(node.inputs, read);
    for (const auto& [name, body] : node.bodies) std::ranges::for_each(FreeNames(*body), read);
    known.insert(node.outputs.begin(), node.outputs.end());
  }
  std::ranges::for_each(list.outputs, read);
  return {found.begin(), found.end()};
}

}  // namespace tilesmith
