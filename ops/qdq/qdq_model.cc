#include "ops/qdq/qdq_model.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/stable_hash.h"
#include "layouts/base/visible.h"
#include "ops/onnx/importer.h"
#include "ops/onnx/tensor_proto.h"
#include "ops/qdq/prepare_model.h"
#include "ops/qdq/qdq_plan.h"

namespace tilesmith {
namespace {

// How a plan is carried out on the model. The plan is the graph's; a quantiser for each of its groups.
// `source` is for messages.
struct QdqJob {
  const onnx::GraphProto& graph;
  const QdqPlan& plan;
  std::span<const TensorQuantizer> quantizers;
  int largest_weight;
  const std::string& source;
};

struct WrittenQdq {
  onnx::GraphProto graph;
  std::vector<QdqLayer> layers;                   // of each unit, in order
  std::map<std::string, std::string> byte_nodes;  // as QdqFile has them
};

template <typename T>
Tensor VectorOf(const std::vector<T>& values) {
  Tensor tensor({std::ssize(values)}, Layout::Nchw(kDataTypeOf<T>));
  std::ranges::copy(values, tensor.data<T>());
  return tensor;
}

Tensor ZeroPointOf(const TensorQuantizer& quantizer) {
  Tensor tensor(Shape{}, Layout::Nchw(quantizer.type));
  VisitType(quantizer.type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    *tensor.data<T>() = static_cast<T>(quantizer.zero_point);
  });
  return tensor;
}

class QdqWriter {
 public:
  QdqWriter(const QdqJob& job, bool simulated)
      : job_(job),
        simulated_(simulated),
        index_(job.graph),
        names_(job.graph),
        shared_(job.quantizers.size()) {
    for (const QdqTensor& tensor : job.plan.tensors) groups_.emplace(tensor.name, tensor.group);
    written_.graph = job.graph;
    written_.graph.clear_node();
  }

  WrittenQdq WriteModel() {
    std::unordered_map<int, const QdqUnit*> units;
    for (const QdqUnit& unit : job_.plan.units) units.emplace(unit.node, &unit);
    std::set<int> quantized(job_.plan.movers.begin(), job_.plan.movers.end());
    for (const QdqUnit& unit : job_.plan.units) quantized.insert({unit.node, unit.activation});
    for (const onnx::ValueInfoProto& input : job_.graph.input()) AddPairForReaders(input.name());
    for (int i = 0; i < job_.graph.node_size(); ++i) {
      onnx::NodeProto node = job_.graph.node(i);
      if (!quantized.contains(i)) {
        Add(std::move(node));
        for (const std::string& output : job_.graph.node(i).output()) AddPairForReaders(output);
        continue;
      }
      if (const auto unit = units.find(i); unit != units.end()) {
        written_.layers.push_back(LayerOf(*unit->second));
        QuantizeConstants(*unit->second, node, written_.layers.back());
      } else {
        QuantizeMoved(node);
      }
      for (std::string& input : *node.mutable_input()) {
        if (const auto renamed = renamed_.find(input); renamed != renamed_.end()) input = renamed->second;
      }
      AddWithQuantizedOutputs(std::move(node));
    }
    DropUnreadConstants(written_.graph);
    return std::move(written_);
  }

  WrittenQdq WriteAlone() {
    *written_.graph.mutable_node() = job_.graph.node();
    for (const QdqUnit& unit : job_.plan.units) {
      written_.layers.push_back(LayerOf(unit));
      QdqLayer& layer = written_.layers.back();
      onnx::NodeProto node = Copy(unit.node);
      QuantizeConstants(unit, node, layer);
      for (int slot = 0; slot < (unit.weighted ? 1 : node.input_size()); ++slot) {
        if (groups_.contains(node.input(slot))) node.set_input(slot, AloneInput(node.input(slot)));
      }
      std::string result = node.output(0);
      Add(std::move(node));
      if (unit.activation >= 0) {
        onnx::NodeProto activation = Copy(unit.activation);
        activation.set_input(0, result);
        result = activation.output(0);
        Add(std::move(activation));
      }
      layer.own_output = result;
      if (layer.group < 0) continue;
      layer.own_output = names_.New(unit.output + "_own");
      AddPair(result, layer.own_output, layer.group);
    }
    return std::move(written_);
  }

 private:
  struct SharedNames {  // of a group's scale and zero point
    std::string scale, zero_point;
  };

  void Add(onnx::NodeProto node) { *written_.graph.add_node() = std::move(node); }
  std::string AddConstant(const std::string& wanted, const Tensor& value) {
    const std::string name = names_.New(wanted);
    SetTensor(name, value, *written_.graph.add_initializer());
    return name;
  }
  int Quantizer(const std::string& tensor) const { return groups_.at(tensor); }

  // Returns the node's name.
  std::string AddLinear(const std::string& type, const std::string& from, const std::string& to,
                        const SharedNames& names, int axis = -1) {
    onnx::NodeProto node;
    const std::string name = names_.New(fmt::format("{}_{}", to, type));
    node.set_op_type(type);
    node.set_name(name);
    node.add_input(from);
    node.add_input(names.scale);
    if (!names.zero_point.empty()) node.add_input(names.zero_point);
    node.add_output(to);
    if (axis >= 0) {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name("axis");
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(axis);
    }
    Add(std::move(node));
    return name;
  }

  const SharedNames& NamesOf(int group, const std::string& like) {
    SharedNames& names = shared_[group];
    if (names.scale.empty()) names = ParametersOf(like, job_.quantizers[group]);
    return names;
  }
  SharedNames ParametersOf(const std::string& like, const TensorQuantizer& quantizer) {
    return {AddScalar(like + "_scale", quantizer.scale),
            AddConstant(like + "_zero_point", ZeroPointOf(quantizer))};
  }

  void AddPair(const std::string& from, const std::string& to, int group) {
    if (simulated_) return AddRounding(from, to, job_.quantizers[group]);
    const SharedNames& names = NamesOf(group, from);
    const std::string stored = names_.New(to + "_quantized");
    written_.byte_nodes[VisibleLine(to)] = VisibleLine(AddLinear("QuantizeLinear", from, stored, names));
    AddLinear("DequantizeLinear", stored, to, names);
  }

  // clip(round(x / scale)) * scale, the ends of the clip being those of the integers.
  void AddRounding(const std::string& from, const std::string& to, const TensorQuantizer& quantizer) {
    const std::string scale = AddScalar(to + "_scale", quantizer.scale);
    const auto end = [&](double infinite) {
      return static_cast<float>(StoredValue(infinite, quantizer) - quantizer.zero_point);
    };
    const std::string low = AddScalar(to + "_low", end(-INFINITY)),
                      high = AddScalar(to + "_high", end(INFINITY));
    const std::string divided = names_.New(to + "_divided"), rounded = names_.New(to + "_rounded"),
                      clipped = names_.New(to + "_clipped");
    AddPlain("Div", {from, scale}, divided);
    AddPlain("Round", {divided}, rounded);
    AddPlain("Clip", {rounded, low, high}, clipped);
    AddPlain("Mul", {clipped, scale}, to);
  }
  std::string AddScalar(const std::string& wanted, float value) {
    Tensor tensor(Shape{});
    tensor.floats()[0] = value;
    return AddConstant(wanted, tensor);
  }
  void AddPlain(const std::string& type, const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto node;
    node.set_op_type(type);
    node.set_name(names_.New(fmt::format("{}_{}", output, type)));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    Add(std::move(node));
  }

  // Where a tensor is written in floats, what is quantised reads it behind Q and DQ, others as it is.
  void AddPairForReaders(const std::string& tensor) {
    if (!groups_.contains(tensor)) return;
    renamed_[tensor] = names_.New(tensor + "_dequantized");
    AddPair(tensor, renamed_[tensor], Quantizer(tensor));
  }

  // The node, and Q and DQ behind each of its outputs that are quantised.
  void AddWithQuantizedOutputs(onnx::NodeProto node) {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (std::string& output : *node.mutable_output()) {
      if (!groups_.contains(output)) continue;
      pairs.emplace_back(names_.New(output + "_float"), output);
      output = pairs.back().first;
    }
    Add(std::move(node));
    for (const auto& [from, to] : pairs) AddPair(from, to, Quantizer(to));
  }

  QdqLayer LayerOf(const QdqUnit& unit) const {
    const onnx::NodeProto& node = job_.graph.node(unit.node);
    const auto group = groups_.find(unit.output);
    return {.name = NodeTitle(node),
            .op_type = node.op_type(),
            .output = unit.output,
            .own_output = {},
            .inputs = {node.input().begin(), node.input().end()},
            .group = group == groups_.end() ? -1 : group->second};
  }

  onnx::NodeProto Copy(int index) {
    onnx::NodeProto node = job_.graph.node(index);
    node.set_name(names_.New(NodeTitle(node) + "_alone"));
    for (std::string& output : *node.mutable_output()) {
      if (!output.empty()) output = names_.New(fmt::format("{}_alone", output));
    }
    return node;
  }

  std::string AloneInput(const std::string& tensor) {
    std::string& name = renamed_[tensor];
    if (name.empty()) {
      name = names_.New(tensor + "_dequantized");
      AddPair(tensor, name, Quantizer(tensor));
    }
    return name;
  }

  Tensor Floats(const std::string& tensor) const {
    return TensorFromProto(*index_.Constant(tensor), fmt::format("{}: \"{}\"", job_.source, tensor));
  }

  // A constant operand, quantised by its own range or, if there is one, its group's.
  std::string QuantizedConstant(const std::string& tensor, int group) {
    const Tensor values = Floats(tensor);
    ValueEnds ends;
    ends.Add(std::span(values.floats(), static_cast<size_t>(values.size())));
    const TensorQuantizer quantizer =
        group >= 0 ? job_.quantizers[group] : QuantizerFor(ends.range, FormOfActivations());
    const Tensor integers = StoredTensor(values, quantizer);
    if (simulated_) {
      return AddFloats(tensor, integers, [&](int64_t, double value) {
        return (value - quantizer.zero_point) * static_cast<double>(quantizer.scale);
      });
    }
    const SharedNames names = group >= 0 ? NamesOf(group, tensor) : ParametersOf(tensor, quantizer);
    const std::string stored = AddConstant(tensor + "_quantized", integers);
    const std::string result = names_.New(tensor + "_dequantized");
    AddLinear("DequantizeLinear", stored, result, names);
    return result;
  }
  // The floats that integers stand for: `dequantized(element, integer)`.
  template <typename Dequantized>
  std::string AddFloats(const std::string& like, const Tensor& integers, const Dequantized& dequantized) {
    Tensor floats(integers.shape());
    VisitType(integers.type(), [&](auto tag) {
      const auto* const stored = integers.data<typename decltype(tag)::Type>();
      for (int64_t i = 0; i < integers.size(); ++i)
        floats.floats()[i] = static_cast<float>(dequantized(i, static_cast<double>(stored[i])));
    });
    return AddConstant(like + "_dequantized", floats);
  }

  // Constants have the type of activations: integer kernels want both operands alike.
  IntegerForm FormOfActivations() const { return {.type = job_.quantizers.front().type}; }

  void QuantizeConstants(const QdqUnit& unit, onnx::NodeProto& node, QdqLayer& layer) {
    if (unit.weighted) return QuantizeWeightsOf(unit, node, layer);
    const bool elementwise = node.op_type() == "Add" || node.op_type() == "Mul";
    for (int slot = 0; elementwise && slot < node.input_size(); ++slot) {
      if (index_.Constant(node.input(slot)) != nullptr)
        node.set_input(slot, QuantizedConstant(node.input(slot), -1));
    }
  }

  // Constants among what is put together, and copied.
  void QuantizeMoved(onnx::NodeProto& node) {
    if (node.op_type() != "Concat") return;
    for (std::string& input : *node.mutable_input()) {
      if (index_.Constant(input) != nullptr) input = QuantizedConstant(input, Quantizer(node.output(0)));
    }
  }

  void QuantizeWeightsOf(const QdqUnit& unit, onnx::NodeProto& node, QdqLayer& layer) {
    const Tensor weights = Floats(node.input(1));
    const float input_scale = job_.quantizers[Quantizer(node.input(0))].scale;
    const std::string bias_name = node.op_type() == "MatMul" ? "" : InputOf(node, 2);
    Tensor bias;
    WeightForm form{.axis = unit.axis, .largest = job_.largest_weight, .input_scale = input_scale};
    if (!bias_name.empty()) {
      bias = Floats(bias_name);
      bias = bias.Reshaped({bias.size()});
      if (node.op_type() == "Gemm") form.input_scale *= TakeFactors(node, bias);
      form.bias = &bias;
    }
    const QuantizedWeights quantized = QuantizeWeights(weights, form);
    layer.channels = std::ssize(quantized.scales);
    layer.smallest_scale = std::ranges::min(quantized.scales);
    layer.largest_scale = std::ranges::max(quantized.scales);
    layer.raised = quantized.raised;
    node.set_input(1, WeightsInput(node.input(1), unit.axis, quantized));
    if (!bias_name.empty()) node.set_input(2, BiasInput(bias_name, quantized));
  }

  // A bias is as exact as alpha times the products it is added to; what multiplies it goes into it.
  static float TakeFactors(onnx::NodeProto& node, Tensor& bias) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.name() != "beta") continue;
      for (int64_t i = 0; i < bias.size(); ++i) bias.floats()[i] *= attribute.f();
      attribute.set_f(1);
    }
    return FloatAttribute(node, "alpha", 1);
  }

  // The dequantised weights; those of another node where they are the same.
  std::string WeightsInput(const std::string& tensor, int axis, const QuantizedWeights& quantized) {
    std::string& result = weights_[{tensor, axis, quantized.scales}];
    if (!result.empty()) return result;
    if (simulated_) {
      const ChannelOrder order(quantized.values.shape(), axis);
      return result = AddFloats(tensor, quantized.values, [&](int64_t element, double value) {
               return value * static_cast<double>(quantized.scales[order.Of(element)]);
             });
    }
    const bool per_channel = axis >= 0;
    Tensor scales = VectorOf(quantized.scales);
    Tensor zeros = VectorOf(std::vector<int8_t>(quantized.scales.size(), 0));
    if (!per_channel) scales = scales.Reshaped({}), zeros = zeros.Reshaped({});
    const SharedNames names = {AddConstant(tensor + "_scale", scales),
                               AddConstant(tensor + "_zero_point", zeros)};
    const std::string stored = AddConstant(tensor + "_quantized", quantized.values);
    result = names_.New(tensor + "_dequantized");
    AddLinear("DequantizeLinear", stored, result, names, axis);
    return result;
  }
  std::string BiasInput(const std::string& tensor, const QuantizedWeights& quantized) {
    if (simulated_) {
      return AddFloats(tensor, quantized.bias, [&](int64_t element, double value) {
        return value * static_cast<double>(quantized.bias_scales[element]);
      });
    }
    const SharedNames names = {AddConstant(tensor + "_scale", VectorOf(quantized.bias_scales)), ""};
    const std::string stored = AddConstant(tensor + "_quantized", quantized.bias);
    const std::string result = names_.New(tensor + "_dequantized");
    AddLinear("DequantizeLinear", stored, result, names, 0);
    return result;
  }

  const QdqJob& job_;
  const bool simulated_;
  const ProtoIndex index_;
  FreshNames names_;
  std::unordered_map<std::string, int> groups_;
  std::vector<SharedNames> shared_;                       // by group
  std::unordered_map<std::string, std::string> renamed_;  // tensors that are read under another name
  std::map<std::tuple<std::string, int, std::vector<float>>, std::string> weights_;
  WrittenQdq written_;
};

// As QdqModel::Write, WriteSimulated and WriteAlone say.
WrittenQdq WriteQdqGraph(const QdqJob& job) { return QdqWriter(job, false).WriteModel(); }
WrittenQdq WriteSimulatedGraph(const QdqJob& job) { return QdqWriter(job, true).WriteModel(); }
WrittenQdq WriteLayersAlone(const QdqJob& job) { return QdqWriter(job, true).WriteAlone(); }

void SetMetadata(const std::string& key, const std::string& value, onnx::ModelProto& model) {
  for (onnx::StringStringEntryProto& entry : *model.mutable_metadata_props()) {
    if (entry.key() == key) return entry.set_value(value);
  }
  onnx::StringStringEntryProto& entry = *model.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

std::string HashOf(const onnx::GraphProto& graph) {
  StableHash hash;
  for (const onnx::NodeProto& node : graph.node()) hash.Add(node.SerializeAsString());
  for (const onnx::TensorProto& tensor : graph.initializer()) hash.Add(tensor.SerializeAsString());
  return fmt::format("{:016x}", hash.value());
}

}  // namespace

std::optional<ModelBytes> WidenedModel(const ModelView& given, const std::string& source) {
  if (!CanBeWidened(ParseApart(given.bytes, source).proto)) return std::nullopt;
  onnx::ModelProto model = ParseModel(given.bytes, source);
  EmbedParts(model, source, TensorReader(given.parts));
  WidenModel(model, source);
  return SerializeWithData(std::move(model), {});
}

void Widen(ModelBytes& model, const std::string& source) {
  if (std::optional<ModelBytes> widened = WidenedModel(model, source)) model = *std::move(widened);
}

struct QdqModel::Impl {
  std::string source, hash;
  int64_t bytes = 0;
  QdqOptions options;
  onnx::ModelProto model;
  QdqPlan plan;
  std::set<std::string> unknown;

  QdqFile File(WrittenQdq written, const std::map<std::string, std::string>& metadata = {},
               const DataPlacement& placement = {}) const {
    onnx::ModelProto out;
    // All but the graph, which is the large part.
    for (const auto& import : model.opset_import()) *out.add_opset_import() = import;
    for (const auto& entry : model.metadata_props()) *out.add_metadata_props() = entry;
    for (const auto& function : model.functions()) *out.add_functions() = function;
    out.set_ir_version(model.ir_version());
    out.set_producer_name(model.producer_name());
    out.set_producer_version(model.producer_version());
    out.set_domain(model.domain());
    out.set_model_version(model.model_version());
    out.set_doc_string(model.doc_string());
    out.mutable_graph()->Swap(&written.graph);
    for (const auto& [key, value] : metadata) SetMetadata(key, value, out);
    return {SerializeWithData(std::move(out), placement), std::move(written.layers),
            std::move(written.byte_nodes)};
  }
  QdqJob Job(std::span<const TensorQuantizer> quantizers) const {
    TILESMITH_CHECK(quantizers.size() == plan.groups.size());
    return {model.graph(), plan, quantizers, options.largest_weight, source};
  }
};

QdqModel::QdqModel(const ModelView& model, const std::string& source, const QdqOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->source = source;
  impl_->options = options;
  impl_->model = ParseModel(model.bytes, source);
  EmbedParts(impl_->model, source, TensorReader(model.parts));
  impl_->bytes = static_cast<int64_t>(impl_->model.ByteSizeLong());
  WidenModel(impl_->model, source);
  impl_->hash = HashOf(impl_->model.graph());
  RaiseOpset(impl_->model, source);
  FoldBatchNorms(*impl_->model.mutable_graph(), source);
  KeepReadersOf({}, "");
}

QdqModel::~QdqModel() = default;

void QdqModel::KeepReadersOf(const std::set<std::string>& tensors, const std::string& reason) {
  impl_->unknown.insert(tensors.begin(), tensors.end());
  impl_->plan = MakeQdqPlan(impl_->model.graph(), impl_->source, impl_->options, impl_->unknown, reason);
}

const std::string& QdqModel::hash() const { return impl_->hash; }
int64_t QdqModel::bytes() const { return impl_->bytes; }
std::map<std::string, std::string> QdqModel::Titles() const {
  std::map<std::string, std::string> titles;
  for (const onnx::NodeProto& node : impl_->model.graph().node())
    for (const std::string& output : node.output()) titles[output] = NodeTitle(node);
  return titles;
}
const std::vector<QdqTensor>& QdqModel::tensors() const { return impl_->plan.tensors; }
const std::vector<ValueEnds>& QdqModel::groups() const { return impl_->plan.groups; }
const std::vector<KeptNode>& QdqModel::kept() const { return impl_->plan.kept; }
const std::set<std::string>& QdqModel::unknown() const { return impl_->unknown; }

QdqFile QdqModel::Write(std::span<const TensorQuantizer> quantizers,
                        const std::map<std::string, std::string>& metadata,
                        const DataPlacement& placement) const {
  return impl_->File(WriteQdqGraph(impl_->Job(quantizers)), metadata, placement);
}

QdqFile QdqModel::WriteSimulated(std::span<const TensorQuantizer> quantizers) const {
  return impl_->File(WriteSimulatedGraph(impl_->Job(quantizers)));
}

QdqFile QdqModel::WriteAlone(std::span<const TensorQuantizer> quantizers) const {
  return impl_->File(WriteLayersAlone(impl_->Job(quantizers)));
}

std::vector<TensorQuantizer> QuantizersOf(const ModelQuantization& quantization, const std::string& source,
                                          QdqModel& model) {
  if (model.hash() != quantization.model_hash) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: scales and zero points are of another model (calibrated: {}, this one: {})",
                            source, quantization.model_hash, model.hash()));
  }
  model.KeepReadersOf(quantization.unknown, "");
  std::vector<TensorQuantizer> quantizers(model.groups().size());
  for (const QdqTensor& tensor : model.tensors()) {
    const auto found = quantization.tensors.find(tensor.name);
    if (found == quantization.tensors.end())
      throw Error(ErrorCode::kUsage, fmt::format("{}: no scale for the tensor \"{}\"", source, tensor.name));
    quantizers[static_cast<size_t>(tensor.group)] = found->second;
  }
  return quantizers;
}

ModelBytes QuantizedBytes(const ModelView& given, const std::string& source,
                          const ModelQuantization& quantization) {
  QdqModel model(given, source, quantization.options);
  const std::vector<TensorQuantizer> quantizers = QuantizersOf(quantization, source, model);
  std::map<std::string, std::string> metadata;
  metadata["tilesmith.calibration"] = quantization.calibration;
  return model.Write(quantizers, metadata);
}

}  // namespace tilesmith
