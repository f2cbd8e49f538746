#include "ops/qdq/qdq_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/base/stable_hash.h"
#include "ops/onnx/importer.h"
#include "ops/onnx/tensor_proto.h"
#include "ops/qdq/prepare_model.h"
#include "ops/qdq/qdq_plan.h"
#include "ops/qdq/qdq_writer.h"

namespace tilesmith {
namespace {

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

}  // namespace tilesmith
