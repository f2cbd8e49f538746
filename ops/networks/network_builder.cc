#include "ops/networks/network_builder.h"

#include <cmath>

#include "layouts/base/check.h"
#include "layouts/base/split_mix.h"
#include "ops/base/op.h"

namespace tilesmith {
namespace {

// FNV-1a.
uint64_t HashText(std::string_view text, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Marsaglia, "Xorshift RNGs" (2003), the 64-bit triple (13, 7, 17), started through a splitmix64 step so that
// similar seeds give unlike sequences. Two floats a step: the 140 M parameters of a VGG take a fraction of a
// second.
class UniformStream {
 public:
  explicit UniformStream(uint64_t seed) : state_(SplitMix64(seed).Next() | 1) {}
  // Fills with values uniform in [low, high).
  void Fill(std::span<float> values, float low, float high) {
    const float step = (high - low) * 0x1p-24f;
    size_t i = 0;
    for (; i + 1 < values.size(); i += 2) {
      const uint64_t bits = Next();
      values[i] = low + step * static_cast<float>(static_cast<uint32_t>(bits >> 40));
      values[i + 1] = low + step * static_cast<float>(static_cast<uint32_t>(bits >> 8) & 0xffffff);
    }
    if (i < values.size()) values[i] = low + step * static_cast<float>(static_cast<uint32_t>(Next() >> 40));
  }

 private:
  uint64_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  uint64_t state_;
};

std::shared_ptr<const Tensor> Scalar(float value) {
  auto tensor = std::make_shared<Tensor>(Shape{});
  tensor->floats()[0] = value;
  return tensor;
}

}  // namespace

NetworkBuilder::NetworkBuilder(std::string network_name, uint64_t seed, ModelListing* listing,
                               const SizeLimits& limits)
    : graph_(std::move(network_name), limits), seed_(seed), listing_(listing) {
  if (listing_ != nullptr) listing_->name = graph_.name();
}

NetworkBuilder::Constant NetworkBuilder::Random(const std::string& name, Shape shape, float center,
                                                float radius) const {
  CheckShape(shape, graph_.limits());
  auto tensor = std::make_shared<Tensor>(std::move(shape), Layout::Nchw(), NewMemory::kAnything);
  UniformStream(HashText(name, seed_))
      .Fill({tensor->floats(), static_cast<size_t>(tensor->size())}, center - radius, center + radius);
  return tensor;
}

NetworkBuilder::Id NetworkBuilder::AddNode(const std::string& name, std::string op_type,
                                           Attributes attributes, const std::vector<Id>& inputs,
                                           const std::vector<Constant>& constants) {
  const OpImporter* importer = FindOpImporter(op_type);
  TILESMITH_CHECK(importer != nullptr, "no importer for {}", op_type);
  NodeSpec spec;
  spec.name = name;
  spec.op_type = std::move(op_type);
  spec.attributes = std::move(attributes);
  for (const Id input : inputs) {
    spec.inputs.push_back({true, graph_.node(input).shape, graph_.node(input).type, nullptr});
  }
  for (const Constant& constant : constants) {
    spec.inputs.push_back({true, constant->shape(), constant->type(), constant});
  }
  const BuiltOp built = importer->build(spec);
  if (listing_ != nullptr) {
    ListedNode& listed = listing_->nodes.emplace_back(
        ListedNode{name, spec.op_type, std::move(spec.attributes), {}, constants});
    for (const Id input : inputs) listed.inputs.push_back(graph_.node(input).name);
  }
  std::vector<Id> edges;
  for (const int input : built.data_inputs) {
    TILESMITH_CHECK(input >= 0 && input < static_cast<int>(inputs.size()), "{}: input {}", name, input);
    edges.push_back(inputs[input]);
  }
  return graph_.Add(name, built.op, edges);
}

NetworkBuilder::Id NetworkBuilder::Input(const std::string& name, Shape shape) {
  if (listing_ != nullptr) listing_->inputs.emplace_back(name, shape);
  return graph_.Add(name, std::make_shared<InputOp>(std::move(shape)), {});
}

NetworkBuilder::Id NetworkBuilder::Conv(const std::string& name, Id x, const ConvSpec& spec) {
  const Shape weights = {spec.channels, channels(x) / spec.groups, spec.kernel.h, spec.kernel.w};
  const float fan_in = static_cast<float>(weights[1] * weights[2] * weights[3]);
  const float variance = (spec.rectified_input ? 2 : 1) / fan_in;
  std::vector<Constant> constants = {Random(name + ".weight", weights, 0, std::sqrt(3 * variance))};
  if (spec.bias) constants.push_back(Random(name + ".bias", {spec.channels}, 0, 0.1f));
  Attributes attributes = {{"kernel_shape", std::vector<int64_t>{spec.kernel.h, spec.kernel.w}},
                           {"strides", std::vector<int64_t>{spec.stride, spec.stride}},
                           {"pads", std::vector<int64_t>{spec.pad.h, spec.pad.w, spec.pad.h, spec.pad.w}},
                           {"group", spec.groups}};
  return AddNode(name, "Conv", std::move(attributes), {x}, constants);
}

NetworkBuilder::Id NetworkBuilder::ConvTranspose(const std::string& name, Id x, const UpConvSpec& spec) {
  const Shape weights = {channels(x), spec.channels, spec.stride, spec.stride};
  const float fan_in = static_cast<float>(channels(x));
  return AddNode(name, "ConvTranspose", {{"strides", std::vector<int64_t>{spec.stride, spec.stride}}}, {x},
                 {Random(name + ".weight", weights, 0, std::sqrt(6 / fan_in)),
                  Random(name + ".bias", {spec.channels}, 0, 0.1f)});
}

NetworkBuilder::Id NetworkBuilder::BatchNorm(const std::string& name, Id x, float epsilon, float gain) {
  const Shape shape = {channels(x)};
  return AddNode(
      name, "BatchNormalization", {{"epsilon", epsilon}}, {x},
      {Random(name + ".weight", shape, gain, 0.2f * gain), Random(name + ".bias", shape, 0, 0.1f),
       Random(name + ".running_mean", shape, 0, 0.1f), Random(name + ".running_var", shape, 1, 0.2f)});
}

NetworkBuilder::Id NetworkBuilder::Relu(const std::string& name, Id x) {
  return AddNode(name, "Relu", {}, {x});
}

NetworkBuilder::Id NetworkBuilder::Relu6(const std::string& name, Id x) {
  return AddNode(name, "Clip", {}, {x}, {Scalar(0), Scalar(6)});
}

NetworkBuilder::Attributes NetworkBuilder::PoolAttributes(const PoolSpec& spec) const {
  return {{"kernel_shape", std::vector<int64_t>(2, spec.kernel)},
          {"strides", std::vector<int64_t>(2, spec.stride)},
          {"pads", std::vector<int64_t>(4, spec.pad)},
          {"ceil_mode", int64_t{spec.ceil_mode}}};
}

NetworkBuilder::Id NetworkBuilder::MaxPool(const std::string& name, Id x, const PoolSpec& spec) {
  return AddNode(name, "MaxPool", PoolAttributes(spec), {x});
}

NetworkBuilder::Id NetworkBuilder::AveragePool(const std::string& name, Id x, const PoolSpec& spec) {
  Attributes attributes = PoolAttributes(spec);
  attributes["count_include_pad"] = int64_t{1};
  return AddNode(name, "AveragePool", std::move(attributes), {x});
}

NetworkBuilder::Id NetworkBuilder::GlobalAveragePool(const std::string& name, Id x) {
  return AddNode(name, "GlobalAveragePool", {}, {x});
}

NetworkBuilder::Id NetworkBuilder::Concat(const std::string& name, const std::vector<Id>& inputs) {
  return AddNode(name, "Concat", {{"axis", int64_t{1}}}, inputs);
}

NetworkBuilder::Id NetworkBuilder::Add(const std::string& name, Id a, Id b) {
  return AddNode(name, "Add", {}, {a, b});
}

NetworkBuilder::Id NetworkBuilder::Flatten(const std::string& name, Id x) {
  return AddNode(name, "Flatten", {{"axis", int64_t{1}}}, {x});
}

// Weights are stated output by input, so that importing the 100 M of a VGG's first layer transposes nothing.
NetworkBuilder::Id NetworkBuilder::Gemm(const std::string& name, Id x, int64_t features) {
  const int64_t fan_in = channels(x);
  return AddNode(
      name, "Gemm", {{"alpha", 1.f}, {"beta", 1.f}, {"transB", int64_t{1}}}, {x},
      {Random(name + ".weight", {features, fan_in}, 0, std::sqrt(6.f / static_cast<float>(fan_in))),
       Random(name + ".bias", {features}, 0, 0.1f)});
}

NetworkBuilder::Id NetworkBuilder::Softmax(const std::string& name, Id x) {
  return AddNode(name, "Softmax", {{"axis", int64_t{-1}}}, {x});
}

Graph NetworkBuilder::Finish(Id output) {
  if (listing_ != nullptr) listing_->outputs.emplace_back(graph_.node(output).name, shape(output));
  graph_.MarkOutput(output);
  return std::exchange(graph_, Graph());
}

}  // namespace tilesmith
