// From a node as a model file states it to an Op. The importer, the built-in networks and the tests all
// create ops this way.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "layouts/base/error.h"
#include "ops/base/op.h"
#include "ops/base/quantization.h"

namespace tilesmith {

class ByteReader;
class ByteWriter;

// The tensor of an attribute, which copies share.
class TensorAttribute {
 public:
  TensorAttribute() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  TensorAttribute(Tensor value) : value_(std::make_shared<const Tensor>(std::move(value))) {}

  const std::shared_ptr<const Tensor>& value() const { return value_; }

 private:
  std::shared_ptr<const Tensor> value_;
};
void Put(ByteWriter& writer, const TensorAttribute& attribute);
void Get(ByteReader& reader, TensorAttribute& attribute);

using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, TensorAttribute>;

using Attributes = std::map<std::string, Attribute, std::less<>>;

// A node as a model file states it, or as an importer writes it in the place of another.
struct ModelNode {
  std::string name = "";
  std::string op_type;  // ONNX's; outside the default domain with it in front: "com.microsoft.FusedConv"
  std::vector<std::string> inputs = {}, outputs = {};  // tensors by name, "" where one is absent
  Attributes attributes = {};
  // Attributes that are those of the call of the function in which the node stands, by their names there.
  std::map<std::string, std::string> references = {};
  std::map<std::string, std::shared_ptr<const struct NodeList>, std::less<>> bodies =
      {};                // of If, Loop, Scan
  int64_t opset = 0;     // 0: the model's
  bool written = false;  // in the place of another: its constants are no part of the file
  OpPtr op = nullptr;    // of a written node that no operator stands for; all of its inputs are edges
};

// The body of a function, a loop or a branch. What is no input and computed by no node of it is a tensor
// around it (never of a function's).
struct NodeList {
  std::vector<std::string> inputs, outputs;
  std::vector<ModelNode> nodes;
  // What the model declares of a body's outputs, sizes that it leaves open being 0; none where that is no
  // type of ours.
  struct Declared {
    Shape shape;
    DataType type;
  };
  std::vector<std::optional<Declared>> declared = {};
};

// One input of a node: absent (""), an activation, or a constant known at load time.
struct NodeInput {
  bool present = true;
  Shape shape;
  DataType type = DataType::kF32;
  std::shared_ptr<const Tensor> constant;                   // null for activations
  std::shared_ptr<const QuantizedTensor> stored = nullptr;  // what the constant was dequantised from
  int64_t narrow = 0;  // of a constant that was unpacked (NarrowType), ONNX's number of what it was
};

struct NodeSpec {
  std::string name;
  std::string op_type;  // ONNX's
  int64_t opset = 13;
  Attributes attributes;
  std::vector<NodeInput> inputs;
  std::vector<std::string> input_names, output_names;  // as ModelNode's
  std::map<std::string, std::shared_ptr<const NodeList>, std::less<>> bodies;
  int64_t scope = 0;            // tells nodes apart that were written and may have one name
  int output = 0, outputs = 1;  // which of the node's outputs is to be built, of how many
  SizeLimits limits = {};       // of the graph; folded_operations is what is left of them
  // What may compute constants; null: a single thread without special instructions.
  const OpMachine* machine = nullptr;

  // Typed access with a default; throws Error(kBadModel) naming node and attribute when the type is another.
  int64_t Int(std::string_view name, int64_t fallback) const;
  float Float(std::string_view name, float fallback) const;
  std::string String(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> fallback) const;
  std::vector<float> Floats(std::string_view name, std::vector<float> fallback) const;
  std::vector<std::string> Strings(std::string_view name, std::vector<std::string> fallback) const;
  bool Has(std::string_view name) const { return attributes.find(name) != attributes.end(); }
  bool HasInput(size_t index) const { return index < inputs.size() && inputs[index].present; }
  // The constant at an input; throws NeedsConstant when it is not.
  const Tensor& Constant(size_t index) const;
};

// An input that should be known at load time depends on the network's inputs. Such a node, and what depends
// on it, is left to the network's tail (graph.h), which looks at it when the values are known.
class NeedsConstant : public Error {
 public:
  explicit NeedsConstant(const std::string& message) : Error(ErrorCode::kBadModel, message) {}
};

// An op, or nodes that stand for the node: all of its outputs are among theirs.
struct BuiltOp {
  OpPtr op;
  std::vector<int> data_inputs;  // which of the node's inputs remain edges, in the op's order
  std::vector<ModelNode> nodes = {};
  double operations = 0;  // what building has already cost, of SizeLimits::folded_operations
};

struct OpImporter {
  std::string_view op_type;
  std::function<BuiltOp(const NodeSpec&)> build;  // throws Error(kBadModel) with the reason it cannot
  // build is called for every output that is read, not just for the first; the others' names are "" to it.
  bool many_outputs = false;
};

// Every importer, sorted by op_type; assembled in op_list.cc.
const std::vector<OpImporter>& OpImporters();
// nullptr when unknown.
const OpImporter* FindOpImporter(std::string_view op_type);

}  // namespace tilesmith
