// Config spaces: what can be chosen when a conv is computed by a template.
//
// A knob is a name and its values; a config gives each knob one value; a space is all combinations that a
// validity predicate accepts. Configs are addressed by an index (mixed radix over the knobs, first knob
// fastest), but records store names and values, so that a log outlives changes to the space.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layouts/data_type.h"

namespace tilesmith {

// Knob name to value, sorted by name, so that configs are equal however they were put together.
class Config {
 public:
  void Set(std::string_view name, int64_t value);  // replaces a value set before
  void Reserve(size_t knobs) { knobs_.reserve(knobs); }
  int64_t Get(std::string_view name) const;  // a bug to ask for a missing knob
  std::optional<int64_t> Find(std::string_view name) const;
  const std::vector<std::pair<std::string, int64_t>>& knobs() const { return knobs_; }
  // "ic_block=16 oc_block=32 ..."; two configs of a space are equal exactly when their texts are.
  std::string ToString() const;
  bool operator==(const Config&) const = default;

 private:
  std::vector<std::pair<std::string, int64_t>> knobs_;
};

struct Knob {
  std::string name;
  std::vector<int64_t> values;  // distinct, in an order in which neighbours are similar
  std::string help;             // one line for `tilesmith space`
};

// UpTo returns those of `values` that are at most `most`.
std::vector<int64_t> UpTo(int64_t most, std::initializer_list<int64_t> values);
// The x of NCHW[x]c worth trying for `channels` channels that vectors of `vector` floats fill.
std::vector<int64_t> BlocksOfVectors(int64_t channels, int64_t vector);

class ConfigSpace {
 public:
  // Returns "" for a valid config, or why it is not.
  using Validity = std::function<std::string(const Config&)>;

  ConfigSpace() = default;
  // Preconditions: distinct knob names, every knob has values, all distinct, and less than 2^63 combinations.
  // Without a validity predicate every combination is valid.
  ConfigSpace(std::vector<Knob> knobs, Validity validity);

  const std::vector<Knob>& knobs() const { return knobs_; }
  uint64_t size() const { return size_; }  // all combinations, valid or not
  Config At(uint64_t index) const;         // precondition: index < size()
  // The inverse; nullopt when a knob is missing, unknown, or has a value the space does not list.
  std::optional<uint64_t> IndexOf(const Config& config) const;
  // "" when valid; otherwise the reason, also for configs outside the space.
  std::string WhyInvalid(const Config& config) const;
  bool IsValid(uint64_t index) const { return WhyInvalid(At(index)).empty(); }
  // Valid configs that differ in one knob by one step, ascending.
  std::vector<uint64_t> Neighbours(uint64_t index) const;
  // Number of valid configs: exact up to `limit` combinations, nullopt beyond.
  std::optional<uint64_t> CountValid(uint64_t limit = 1 << 20) const;

 private:
  std::vector<Knob> knobs_;
  Validity validity_;
  uint64_t size_ = 0;
};

// How templates that compute in bf16 store their input and output: knobs whose values are DataTypes.
struct StoredTypes {
  DataType in = DataType::kF32, out = DataType::kF32;
  bool narrow() const { return in != DataType::kF32 || out != DataType::kF32; }
};

// A knob with the values bf16 and f32; `meaning` says what is stored so.
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

// The types that a config with such knobs stores.
inline StoredTypes ReadTypes(const Config& config) {
  return {static_cast<DataType>(config.Get("in_type")), static_cast<DataType>(config.Get("out_type"))};
}

// Values of knobs that cut something into parts.
//
// The parts that `count` things are cut into evenly, by their sizes, and `given`; ascending.
std::vector<int64_t> PartSizes(int64_t count, int64_t given);

}  // namespace tilesmith
