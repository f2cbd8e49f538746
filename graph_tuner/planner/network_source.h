// Where the network that is planned is from, and what quantising its layers does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph_tuner/planner/type_choice.h"
#include "graph_tuner/planner/work.h"
#include "ops/onnx/onnx_import.h"
#include "ops/qdq/qdq_model.h"

namespace tilesmith {

// A model as a file says it, before it is imported.
struct ModelFile : ModelBytes {
  std::string source;
  ImportOptions import;
};

using QuantizationPtr = std::shared_ptr<const ModelQuantization>;

class NetworkSource {
 public:
  virtual ~NetworkSource() = default;
  // In floats without a quantization, else quantised so.
  virtual Graph Load(const QuantizationPtr& quantization) const = 0;
  // Inputs for such a graph, at most so many: those that it is calibrated on, or random ones.
  virtual std::vector<std::vector<Tensor>> Samples(const Graph& graph, int64_t most) const = 0;
  // Quantises all that pays. The network may have other sizes behind it, where it leaves them open: those of
  // the samples. Throws Error(kBadModel) where nothing can be quantised.
  virtual QuantizationPtr Calibrate(const WorkSinks& sinks) = 0;
  // In floats, as a file says it.
  virtual ModelFile File() const = 0;
};

// The model with the layers in bytes that the quantization says. Throws as QuantizedBytes does.
QdqFile QuantizedBy(const ModelQuantization& quantization, const ModelFile& file);

// What each layer that is quantised does to the outputs, measured by injection: the network runs in floats up
// to the layer, whose output is then what it is with 8-bit weights, inputs and output, and goes on in floats.
// On so many of the network's samples; with 0 of them the squares are 0. Throws as QuantizedBytes does, and
// Error(kInterrupted) when it is stopped.
QuantizedLayers QuantizedLayerErrors(const NetworkSource& network, const ModelQuantization& quantization,
                                     int64_t samples, const DevicePtr& machine, const WorkSinks& sinks);

}  // namespace tilesmith
