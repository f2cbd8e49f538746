// How a model is quantised, in a plan's header.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "ops/qdq/model_quantization.h"

namespace tilesmith {

// {"activations":"u8","calibration":"minmax, 8 samples of random inputs (seed
// 1)","model_hash":"0123456789abcdef",
//  "random_inputs":true,"tensors":{"x":[0.02,128]}}, scale and zero point of each tensor, and what of
// "keep", "keep_first", "keep_last", "largest_weight", "operators" and "unknown" is not as it is by default.
nlohmann::json QuantizationToJson(const ModelQuantization& quantization);
// Throws Error(kUsage) naming the field that is missing or makes no sense.
ModelQuantization QuantizationFromJson(const nlohmann::json& object);

}  // namespace tilesmith
