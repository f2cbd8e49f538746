#include "ops/onnx/node_tail.h"

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

// What outlives the importer that reads it.
std::shared_ptr<const Tensor> Borrowed(const Tensor* tensor) { return {std::shared_ptr<void>(), tensor}; }

class NodeTail : public Tail {
 public:
  explicit NodeTail(NodeTailParts parts) : parts_(std::move(parts)) {
    // What a run may spend has another measure than loading: the sizes of its tensors are limited.
    parts_.limits.folded_operations = int64_t{1} << 60;
  }

  const std::vector<std::string>& outputs() const override { return parts_.outputs; }
  size_t nodes() const override { return parts_.nodes.size(); }

  std::vector<Tensor> Run(std::span<const Tensor* const> values, const OpMachine* machine) const override {
    TILESMITH_CHECK(values.size() == parts_.inputs.size(), "{} values for {} inputs", values.size(),
                    parts_.inputs.size());
    NodeImporter importer(Graph(parts_.name, parts_.limits),
                          {parts_.name, parts_.opset, parts_.functions, machine, parts_.narrow_outputs});
    for (const auto& [name, value] : parts_.constants) importer.AddConstant(name, value, false);
    for (size_t i = 0; i < values.size(); ++i) {
      importer.AddConstant(parts_.inputs[i], Borrowed(values[i]), false);
    }
    for (const ModelNode& node : parts_.nodes) importer.AddReader(node);
    for (const std::string& output : parts_.outputs) importer.AddReader(output);
    for (const ModelNode& node : parts_.nodes) importer.Add(node);
    return importer.Values(parts_.outputs);
  }

 private:
  NodeTailParts parts_;
};

}  // namespace

std::shared_ptr<const Tail> MakeNodeTail(NodeTailParts parts) {
  return std::make_shared<NodeTail>(std::move(parts));
}

}  // namespace tilesmith
