#include "ops/qdq/model_quantization.h"

#include <fmt/format.h>

#include "layouts/base/error.h"

namespace tilesmith {

std::vector<TensorQuantizer> QuantizersOf(const ModelQuantization& quantization, const std::string& source,
                                          QdqModel& model) {
  if (model.hash() != quantization.model_hash) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: scales and zero points are of another model (calibrated: {}, this one: {})",
                            source, quantization.model_hash, model.hash()));
  }
  model.KeepReadersOf(quantization.unknown, "");
  std::vector<TensorQuantizer> quantizers(model.groups().size());
  for (const QdqTensor& tensor : model.tensors()) {
    const auto found = quantization.tensors.find(tensor.name);
    if (found == quantization.tensors.end())
      throw Error(ErrorCode::kUsage, fmt::format("{}: no scale for the tensor \"{}\"", source, tensor.name));
    quantizers[static_cast<size_t>(tensor.group)] = found->second;
  }
  return quantizers;
}

ModelBytes QuantizedBytes(const ModelView& given, const std::string& source,
                          const ModelQuantization& quantization) {
  QdqModel model(given, source, quantization.options);
  const std::vector<TensorQuantizer> quantizers = QuantizersOf(quantization, source, model);
  std::map<std::string, std::string> metadata;
  metadata["tilesmith.calibration"] = quantization.calibration;
  return model.Write(quantizers, metadata);
}

}  // namespace tilesmith
