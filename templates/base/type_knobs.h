// How templates that compute in bf16 store their input and output: knobs whose values are DataTypes.
#pragma once

#include <string>
#include <vector>

#include "layouts/data_type.h"
#include "templates/base/config.h"

namespace tilesmith {

struct StoredTypes {
  DataType in = DataType::kF32, out = DataType::kF32;
  bool narrow() const { return in != DataType::kF32 || out != DataType::kF32; }
};

// Whose values are bf16 and f32; `meaning` says of what.
inline Knob TypeKnob(const std::string& name, const std::string& meaning) {
  const auto value = [](DataType type) { return static_cast<int64_t>(type); };
  return {name, {value(DataType::kBf16), value(DataType::kF32)}, meaning + ": 3 is bf16, 0 f32"};
}

// "in_type" and "out_type".
inline std::vector<Knob> TypeKnobs() {
  return {TypeKnob("in_type", "how the input is stored"), TypeKnob("out_type", "how the output is stored")};
}

inline void SetTypes(const StoredTypes& types, Config& config) {
  config.Set("in_type", static_cast<int64_t>(types.in));
  config.Set("out_type", static_cast<int64_t>(types.out));
}

// Those of a config that has such knobs.
inline StoredTypes ReadTypes(const Config& config) {
  return {static_cast<DataType>(config.Get("in_type")), static_cast<DataType>(config.Get("out_type"))};
}

}  // namespace tilesmith
