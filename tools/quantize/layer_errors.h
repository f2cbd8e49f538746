// What quantising each layer of a network alone does to its outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph_tuner/planner/type_choice.h"
#include "ops/qdq/qdq_model.h"
#include "templates/device/device.h"
#include "tools/cli/model.h"
#include "tools/cli/progress.h"

namespace tilesmith {

// Measured by injection: the network runs in floats up to the layer, whose output is then what it is with
// 8-bit weights, inputs and output, and goes on in floats. On the first `samples` of the options'
// calibration; with 0 of them the squares are 0. Every layer that the quantization has. Precondition: the
// options have a quantization. Throws as QuantizedBytes and CalibrationInputs do, and Error(kInterrupted)
// when it is stopped.
QuantizedLayers QuantizedLayerErrors(const ModelOptions& model, int64_t samples, const DevicePtr& machine,
                                     const WorkSinks& sinks);

}  // namespace tilesmith
