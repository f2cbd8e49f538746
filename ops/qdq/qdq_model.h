// A model with 8-bit integers where they pay: QuantizeLinear and DequantizeLinear around its nodes, the form
// (QDQ) that runtimes turn into integer arithmetic.
//
// The edit is one of the file: nodes, names, open sizes, bodies of loops and branches stay as they are, and
// what is added stands between them. A tensor that a quantised node writes keeps its name behind its
// DequantizeLinear, so that the same names can be compared in both models; what its node computed is
// NAME_float. Of one that a float node writes only quantised nodes read what is behind its
// DequantizeLinear, NAME_dequantized.
//
// Which nodes: Conv, ConvTranspose, Gemm and MatMul with constant weights, per output channel. Their inputs
// are quantised; so are the outputs of the convolutions, or of the Relu or Clip behind one, which shares its
// quantiser. From those inputs backwards, so that integers are read as integers were written: Add, Mul,
// pooling, LeakyRelu, Sigmoid and the like, with their inputs; and Concat, MaxPool, Resize, views and copies,
// whose inputs and outputs share one quantiser. What no quantised node reads stays float: it would lose
// precision and gain nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/onnx/model_parts.h"
#include "ops/qdq/calibration.h"
#include "ops/qdq/tensor_quantizer.h"

namespace tilesmith {

struct QdqOptions {
  IntegerForm activations = {};
  int largest_weight = kLargestWeight;  // see WeightForm
  std::vector<std::string> keep = {};  // nodes that stay float: their names or, where they have none, outputs
  std::vector<std::string> op_types = {};  // none others are quantised; empty: all of the above
  bool keep_first = false;                 // convolutions and products that no other one is in front of
  bool keep_last = false;                  // and those that none is behind
};

// A tensor to be quantised. Those of one group share a quantiser.
struct QdqTensor {
  std::string name;
  int group = 0;
};

// A node that could be quantised and stays float.
struct KeptNode {
  std::string name, op_type, reason;
};

// A node that computes with integers, and the Relu or Clip behind it.
struct QdqLayer {
  std::string name, op_type;
  std::string output;               // the tensor
  std::string own_output;           // of WriteAlone: the same, computed from exact inputs
  std::vector<std::string> inputs;  // of its node: tensors
  int group = -1;                   // of the output; -1: it stays float
  // What its weights were quantised with; 0 channels: it has none.
  int64_t channels = 0;
  float smallest_scale = 0, largest_scale = 0;
  int64_t raised = 0;  // scales, for the bias
};

struct QdqFile : ModelBytes {
  std::vector<QdqLayer> layers;
  // The node that quantises a tensor, by the tensor; both as graphs call them (VisibleLine). What computes
  // the tensor in bytes takes that along, and is called so.
  std::map<std::string, std::string> byte_nodes;
};

// The model whose tensors a QdqModel of `given` names: one of 16-bit floats as its twin of f32, whose inputs
// and outputs are Cast (prepare_model.h); nullopt for any other, which is that itself. Throws
// Error(kBadModel) starting with `source`.
std::optional<ModelBytes> WidenedModel(const ModelView& given, const std::string& source);
// It becomes that model.
void Widen(ModelBytes& model, const std::string& source);

class QdqModel {
 public:
  // Throws Error(kBadModel) starting with `source` when it is no model that can be quantised, also when
  // nothing in it can be; Error(kUsage) when an option names a node or operator it does not have.
  QdqModel(const ModelView& model, const std::string& source, const QdqOptions& options);
  ~QdqModel();

  // Nodes that need these tensors, whose values cannot be had, stay float. Throws Error(kBadModel) when none
  // are left.
  void KeepReadersOf(const std::set<std::string>& tensors, const std::string& reason);

  // A hash of the model as it was given: nodes and constants, wherever their data lies, not the sizes of its
  // inputs.
  const std::string& hash() const;
  int64_t bytes() const;  // of the model as it was given, with all its data
  // For each tensor the name that people know its node by: its own or, where it has none, its output's.
  std::map<std::string, std::string> Titles() const;
  const std::vector<QdqTensor>& tensors() const;
  // What the constants of each group hold.
  const std::vector<ValueEnds>& groups() const;
  const std::vector<KeptNode>& kept() const;
  // All that KeepReadersOf was told.
  const std::set<std::string>& unknown() const;

  // The model, with a quantiser for each group. These throw Error(kUsage) when it would be 2 GiB or more
  // without the data of its weights.
  QdqFile Write(std::span<const TensorQuantizer> quantizers,
                const std::map<std::string, std::string>& metadata,
                const DataPlacement& placement = {}) const;
  // The same in arithmetic of floats, whose values are those that integers can have: errors are measured with
  // it.
  QdqFile WriteSimulated(std::span<const TensorQuantizer> quantizers) const;
  // The float model and, beside it, every layer once more, simulated, on the float model's inputs to it: what
  // each does alone.
  QdqFile WriteAlone(std::span<const TensorQuantizer> quantizers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What calibrating a model has found: with it the quantised form can be written again, from the model alone.

struct ModelQuantization {
  std::string model_hash;  // QdqModel::hash of the calibrated model
  QdqOptions options;
  std::set<std::string> unknown;                   // tensors without values: QdqModel::unknown
  std::map<std::string, TensorQuantizer> tensors;  // by name
  std::string calibration;                         // "minmax, 8 samples of random inputs (seed 1)"
  bool random_inputs = false;
};

// A quantiser for each group of a model that was made with the quantization's options, once the readers of
// its unknown tensors are kept. Throws as QuantizedBytes does.
std::vector<TensorQuantizer> QuantizersOf(const ModelQuantization& quantization, const std::string& source,
                                          QdqModel& model);

// The model in 8-bit integers, as QdqModel writes it. With more nodes in `options.keep` than it was
// calibrated with, the others are quantised as they were. Throws as QdqModel does, and Error(kUsage) when the
// model is another than the calibrated one: its scales would be wrong for it.
ModelBytes QuantizedBytes(const ModelView& given, const std::string& source,
                          const ModelQuantization& quantization);

}  // namespace tilesmith
