// ONNX out: a listed network becomes a model file that any ONNX tool reads.
#pragma once

#include <string>

#include "ops/networks/model_listing.h"

namespace tilesmith {

// Weights are part of the file. Throws Error(kUsage) when it would have 2 GiB or more, which protobuf cannot
// write.
std::string OnnxBytes(const ModelListing& listing);

}  // namespace tilesmith
