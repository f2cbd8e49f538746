// ONNX out: a listed network becomes a model file that any ONNX tool reads.
#pragma once

#include <string>

#include "ops/networks/network_builder.h"
#include "ops/onnx/model_parts.h"

namespace tilesmith {

// Weights are part of the file unless the placement says otherwise. Throws Error(kUsage) when the rest would
// have 2 GiB or more, which protobuf cannot write.
ModelBytes OnnxBytes(const ModelListing& listing, const DataPlacement& placement = {});

}  // namespace tilesmith
