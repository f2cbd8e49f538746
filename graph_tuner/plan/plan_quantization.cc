#include "graph_tuner/plan/plan_quantization.h"

#include <cmath>

#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

using nlohmann::json;

template <typename Texts>
Texts TextsIn(const json& object, const char* field) {
  Texts texts;
  if (!object.contains(field)) return texts;
  for (const json& text : object[field]) texts.insert(texts.end(), JsonValue<std::string>(text, field));
  return texts;
}

TensorQuantizer QuantizerFromJson(const json& pair, const std::string& tensor, DataType type) {
  TensorQuantizer quantizer = {.scale = 0, .type = type};
  if (pair.is_array() && pair.size() == 2)
    quantizer = {JsonValue<float>(pair[0], "tensors"), JsonValue<int32_t>(pair[1], "tensors"), type};
  const int32_t lowest = type == DataType::kU8 ? 0 : -128;
  if (std::isnormal(quantizer.scale) && quantizer.scale > 0 && quantizer.zero_point >= lowest &&
      quantizer.zero_point <= lowest + 255)
    return quantizer;
  throw Error(ErrorCode::kUsage,
              fmt::format("tensor \"{}\" is {} (allowed: a scale above 0 and a zero point of {})", tensor,
                          JsonLine(pair), DataTypeName(type)));
}

int LargestWeightIn(const json& object) {
  const int largest = JsonGetOr<int>(object, "largest_weight", kLargestWeight);
  if (largest >= 1 && largest <= kLargestWeight) return largest;
  throw Error(ErrorCode::kUsage,
              fmt::format("field \"largest_weight\" is {} (allowed: 1 to {})", largest, kLargestWeight));
}

}  // namespace

json QuantizationToJson(const ModelQuantization& quantization) {
  const QdqOptions& options = quantization.options;
  json object = {{"model_hash", quantization.model_hash},
                 {"activations", ActivationName(options.activations)},
                 {"calibration", quantization.calibration},
                 {"random_inputs", quantization.random_inputs},
                 {"tensors", json::object()}};
  for (const auto& [name, quantizer] : quantization.tensors)
    object["tensors"][name] = {quantizer.scale, quantizer.zero_point};
  if (options.largest_weight != kLargestWeight) object["largest_weight"] = options.largest_weight;
  if (!options.keep.empty()) object["keep"] = options.keep;
  if (!options.op_types.empty()) object["operators"] = options.op_types;
  if (options.keep_first) object["keep_first"] = true;
  if (options.keep_last) object["keep_last"] = true;
  if (!quantization.unknown.empty()) object["unknown"] = quantization.unknown;
  return object;
}

ModelQuantization QuantizationFromJson(const json& object) {
  ModelQuantization quantization;
  quantization.model_hash = JsonGet<std::string>(object, "model_hash");
  quantization.calibration = JsonGet<std::string>(object, "calibration");
  quantization.random_inputs = JsonGet<bool>(object, "random_inputs");
  quantization.unknown = TextsIn<std::set<std::string>>(object, "unknown");
  QdqOptions& options = quantization.options;
  options.activations = ParseActivations(JsonGet<std::string>(object, "activations"));
  options.largest_weight = LargestWeightIn(object);
  options.keep = TextsIn<std::vector<std::string>>(object, "keep");
  options.op_types = TextsIn<std::vector<std::string>>(object, "operators");
  options.keep_first = JsonGetOr<bool>(object, "keep_first", false);
  options.keep_last = JsonGetOr<bool>(object, "keep_last", false);
  for (const auto& [name, pair] : JsonField(object, "tensors").items())
    quantization.tensors[name] = QuantizerFromJson(pair, name, options.activations.type);
  return quantization;
}

}  // namespace tilesmith
