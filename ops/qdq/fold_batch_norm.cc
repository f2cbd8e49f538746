#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "ops/onnx/tensor_proto.h"
#include "ops/qdq/prepare_model.h"
#include "ops/qdq/proto_index.h"

namespace tilesmith {
namespace {

// Factor and offset of each channel.
struct ChannelAffine {
  std::vector<double> factors, offsets;
};

class BatchNormFolder {
 public:
  BatchNormFolder(onnx::GraphProto& graph, const std::string& source)
      : graph_(graph), source_(source), index_(graph), names_(graph) {}

  void Fold() {
    std::set<int> folded;
    std::vector<onnx::TensorProto> constants;
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& norm = graph_.node(i);
      if (norm.op_type() != "BatchNormalization" || !IsDefaultDomain(norm) || norm.output_size() == 0)
        continue;
      const int conv = index_.Producer(InputOf(norm, 0));
      if (conv < 0 || folded.contains(conv) || !FoldInto(*graph_.mutable_node(conv), norm, constants))
        continue;
      folded.insert(i);
    }
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Swap(graph_.mutable_node());
    for (int i = 0; i < nodes.size(); ++i) {
      if (!folded.contains(i)) *graph_.add_node() = std::move(nodes[i]);
    }
    for (onnx::TensorProto& constant : constants) *graph_.add_initializer() = std::move(constant);
    if (!folded.empty()) DropUnreadConstants(graph_);
  }

 private:
  std::optional<Tensor> Floats(const std::string& name) const {
    const onnx::TensorProto* proto = index_.Constant(name);
    if (proto == nullptr || proto->data_type() != onnx::TensorProto::FLOAT) return std::nullopt;
    return TensorFromProto(*proto, fmt::format("{}: \"{}\"", source_, name));
  }

  std::optional<ChannelAffine> AffineOf(const onnx::NodeProto& norm, int64_t channels) const {
    std::vector<Tensor> parameters;
    for (int slot = 1; slot < 5; ++slot) {
      std::optional<Tensor> values = Floats(InputOf(norm, slot));
      if (!values || values->size() != channels) return std::nullopt;
      parameters.push_back(*std::move(values));
    }
    const double epsilon = FloatAttribute(norm, "epsilon", 1e-5f);
    ChannelAffine affine;
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = [&](int parameter) { return static_cast<double>(parameters[parameter].floats()[c]); };
      const double factor = at(0) / std::sqrt(at(3) + epsilon);
      affine.factors.push_back(factor);
      affine.offsets.push_back(at(1) - at(2) * factor);
    }
    return affine;
  }

  bool FoldInto(onnx::NodeProto& conv, const onnx::NodeProto& norm,
                std::vector<onnx::TensorProto>& constants) {
    if (conv.op_type() != "Conv" || !IsDefaultDomain(conv) || conv.output_size() != 1) return false;
    if (index_.OnlyReader(InputOf(norm, 0)) < 0 || IntAttribute(norm, "training_mode", 0) != 0) return false;
    for (int i = 1; i < norm.output_size(); ++i) {
      if (!index_.Readers(norm.output(i)).empty() || index_.IsReadElsewhere(norm.output(i))) return false;
    }
    std::optional<Tensor> weights = Floats(InputOf(conv, 1));
    if (!weights || weights->shape().empty() || weights->size() == 0) return false;
    const int64_t channels = weights->shape()[0];
    std::optional<Tensor> bias = InputOf(conv, 2).empty() ? Tensor({channels}) : Floats(InputOf(conv, 2));
    const std::optional<ChannelAffine> affine = AffineOf(norm, channels);
    if (!affine || !bias || bias->size() != channels) return false;
    const int64_t per_channel = weights->size() / channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double factor = affine->factors[c];
      float* const of_channel = weights->floats() + c * per_channel;
      for (int64_t i = 0; i < per_channel; ++i) of_channel[i] = static_cast<float>(of_channel[i] * factor);
      bias->floats()[c] = static_cast<float>(bias->floats()[c] * factor + affine->offsets[c]);
    }
    SetConstant(conv, 1, "weights", *weights, constants);
    SetConstant(conv, 2, "bias", *bias, constants);
    conv.set_output(0, norm.output(0));
    return true;
  }

  void SetConstant(onnx::NodeProto& conv, int slot, const std::string& what, const Tensor& value,
                   std::vector<onnx::TensorProto>& constants) {
    const std::string name = names_.New(fmt::format("{}_{}", conv.output(0), what));
    while (conv.input_size() <= slot) conv.add_input("");
    conv.set_input(slot, name);
    SetTensor(name, value, constants.emplace_back());
  }

  onnx::GraphProto& graph_;
  const std::string& source_;
  const ProtoIndex index_;  // of the graph as it was: constants are read from it while nodes change
  FreshNames names_;
};

}  // namespace

void FoldBatchNorms(onnx::GraphProto& graph, const std::string& source) {
  BatchNormFolder(graph, source).Fold();
}

}  // namespace tilesmith
