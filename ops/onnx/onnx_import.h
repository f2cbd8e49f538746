// ONNX in: a model file becomes a Graph. Only protobuf parsing decides what a file is; the ONNX checker is
// not asked, since real models often fail it.
//
// Accepted: the default domain at opset 6 to 25 (6 with its broadcast attributes translated), float
// activations of any rank, weights in any numeric type. Whatever depends on constants and static shapes only
// is computed while importing, so shape arithmetic leaves no nodes behind.
//
// Tensors of f16 and bf16 are f32 inside: constants are widened, Casts to them mean f32, and graph inputs and
// outputs of these types are converted by Casts of their own.
//
// Names: a graph input and a graph output keep their tensor's name, any other node has the name the file
// gives it, or else that of its output tensor. What a terminal would act on and what is no UTF-8 is replaced
// (layouts/base/visible.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ops/graph/graph.h"
#include "ops/onnx/model_parts.h"

namespace tilesmith {

struct ImportOptions {
  std::map<std::string, int64_t> dims = {};        // values of symbolic dimensions, and of inputs of rank 1
  std::map<std::string, Shape> input_shapes = {};  // whole shapes of inputs; these win over everything else
  // Shapes of inputs, "" being any, for sizes that neither the file nor the above give.
  std::map<std::string, Shape> open_shapes = {};
  std::optional<int64_t> batch = {};             // first size of every input; a dynamic one is 1 when unset
  std::map<std::string, Tensor> constants = {};  // inputs to treat as weights
  // Any of its tensors, instead of the file's outputs; those of f16 and bf16 as f32.
  std::vector<std::string> outputs = {};
  SizeLimits limits = {};  // what is larger is an Error(kBadModel) naming the limit
};

// A model file's bytes. Throws Error(kEnvironment) when there is no such file or it cannot be opened,
// Error(kUsage) for a directory, Error(kBadModel) when it has 2 GiB or more.
std::string ReadModelFile(const std::string& path);

struct ModelEnds {
  struct Input {
    std::string name;
    Shape shape;  // -1: neither the file nor the options say
    DataType type;
  };
  std::vector<Input> inputs;
  std::vector<std::string> outputs;
  bool sizes_open = false;  // more than a batch
};

// A model as its file says it, read once and imported for any sizes of its inputs; no file is looked at
// behind that. Immutable and thread-safe; copies share all of it.
class OnnxFile {
 public:
  // `path` is read whole, and what the model keeps in other files (model_parts.h) up to the limits. Throws as
  // ReadModelFile and Parse do.
  static OnnxFile Read(const std::string& path, const SizeLimits& limits = {});
  // From memory, of which nothing is kept; `source` stands for the path in messages and names the graphs.
  // Throws Error(kBadModel) when it is not a readable ONNX model (empty, truncated, text).
  static OnnxFile Parse(const ModelView& model, const std::string& source, const SizeLimits& limits = {});

  // Throws Error(kUsage) when an option names an input, a symbolic dimension or a constant the model does not
  // have; Error(kBadModel) when sizes are open and no option gives them, naming usual ones, and when tensors
  // could not be read or nodes are unsupported: then the message has a line for every reason and `Op (node
  // "name"): reason` for every operator. Of what nobody shares, constants are given away.
  Graph Import(const ImportOptions& options = {}) const&;
  Graph Import(const ImportOptions& options = {}) &&;

  // Without importing. Throws Error(kBadModel) for an input without a type of ours, or whose rank nobody
  // gives.
  ModelEnds Ends(const ImportOptions& options = {}) const;

  struct Content;
  explicit OnnxFile(std::shared_ptr<Content> content) : content_(std::move(content)) {}

 private:
  std::shared_ptr<Content> content_;
};

// Both at once.
Graph ImportOnnx(const std::string& path, const ImportOptions& options = {});
Graph ImportOnnxBytes(const ModelView& model, const std::string& source, const ImportOptions& options = {});

// The bytes of a file that holds all of the model. Throws Error(kBadModel) naming all data that cannot be
// had, Error(kUsage) when it would be 2 GiB or more.
std::string InOneFile(const ModelView& model, const std::string& source);

// What a model file says about itself, without importing it.
struct OnnxSummary {
  int64_t opset = 0;
  std::vector<std::string> inputs;  // weights excepted
  std::vector<std::string> outputs;
  std::vector<std::string> op_types;  // of each node, in order; "domain::Type" outside the default domain
  std::set<std::string> parts;        // locations of data that is not in its own file
};
OnnxSummary SummarizeOnnx(std::string_view bytes, const std::string& source);
// The summary of a file, of whose weights nothing is read. Throws as ReadModelFile does, too.
OnnxSummary SummarizeOnnxFile(const std::string& path);

// The version of the library that parses models: "3.21.12".
std::string ProtobufVersion();

// A serialized TensorProto (a .pb file of test data), in its type; doubles become floats. Throws
// Error(kBadModel) when it is malformed, of another type, or its data cannot be had.
Tensor ParseOnnxTensor(const ModelView& tensor, const std::string& source);

}  // namespace tilesmith
