// What calibrating a model has found: with it the quantised form can be written again, from the model alone.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ops/qdq/qdq_model.h"

namespace tilesmith {

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
