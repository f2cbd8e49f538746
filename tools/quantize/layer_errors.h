// What quantising each layer of a network alone does to its outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/qdq/model_quantization.h"
#include "templates/device/device.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"

namespace tilesmith {

struct QuantizedLayerError {
  std::string layer;                // its node's title (QdqLayer::name)
  std::string output;               // the tensor it writes, its activation's where that is quantised with it
  std::vector<std::string> inputs;  // of its node: tensors
  bool weighted = false;
  double square = 0;  // of the output's error, as OutputDifference::error is
};

struct QuantizedLayers {
  std::vector<QuantizedLayerError> layers;    // in the model's order
  std::map<std::string, std::string> titles;  // of each tensor: of the layer that writes it, or of its node
  // Of each tensor that is quantised: the node of the quantised network that computes it in bytes. Both as
  // graphs call them.
  std::map<std::string, std::string> byte_nodes;
};

// Measured by injection: the network runs in floats up to the layer, whose output is then what it is with
// 8-bit weights, inputs and output, and goes on in floats. On the first `samples` of the options'
// calibration; with 0 of them the squares are 0. Every layer that the quantization has. Precondition: the
// options have a quantization. Throws as QuantizedBytes and CalibrationInputs do, and Error(kInterrupted)
// when it is stopped.
QuantizedLayers QuantizedLayerErrors(const ModelOptions& model, int64_t samples, const DevicePtr& machine,
                                     const WorkSinks& sinks);

}  // namespace tilesmith
