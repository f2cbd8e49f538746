#include "templates/base/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <ranges>
#include <set>
#include <span>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

bool NameBefore(const std::pair<std::string, int64_t>& knob, std::string_view name) {
  return knob.first < name;
}

// Spaces are made for every workload that a network is planned for, so that this takes no memory: few knobs
// have more than 20 values.
void CheckKnobs(std::span<const Knob> knobs) {
  for (size_t i = 0; i < knobs.size(); ++i) {
    const auto& [name, values, help] = knobs[i];
    TILESMITH_CHECK(std::ranges::find(knobs.first(i), name, &Knob::name) == knobs.begin() + i,
                    "two knobs are named {}", name);
    TILESMITH_CHECK(!values.empty(), "knob {} has no values", name);
    for (auto value = values.begin(); value != values.end(); ++value) {
      TILESMITH_CHECK(std::find(values.begin(), value, *value) == value, "knob {} lists a value twice", name);
    }
  }
}

// Position of `value` in the knob's list, or nullopt.
std::optional<uint64_t> PositionOf(const Knob& knob, int64_t value) {
  const auto found = std::find(knob.values.begin(), knob.values.end(), value);
  if (found == knob.values.end()) return std::nullopt;
  return static_cast<uint64_t>(found - knob.values.begin());
}

}  // namespace

void Config::Set(std::string_view name, int64_t value) {
  const auto place = std::lower_bound(knobs_.begin(), knobs_.end(), name, NameBefore);
  if (place != knobs_.end() && place->first == name) {
    place->second = value;
  } else {
    knobs_.emplace(place, name, value);
  }
}

std::optional<int64_t> Config::Find(std::string_view name) const {
  const auto place = std::lower_bound(knobs_.begin(), knobs_.end(), name, NameBefore);
  if (place == knobs_.end() || place->first != name) return std::nullopt;
  return place->second;
}

int64_t Config::Get(std::string_view name) const {
  const std::optional<int64_t> value = Find(name);
  TILESMITH_CHECK(value.has_value(), "no knob \"{}\" in \"{}\"", name, ToString());
  return *value;
}

std::string Config::ToString() const {
  std::string text;
  for (const auto& [name, value] : knobs_) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}={}", name, value);
  }
  return text;
}

std::vector<int64_t> UpTo(int64_t most, std::initializer_list<int64_t> values) {
  std::vector<int64_t> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), [&](int64_t v) { return v <= most; });
  return kept;
}

std::vector<int64_t> BlocksOfVectors(int64_t channels, int64_t vector) {
  std::vector<int64_t> blocks;
  for (int64_t block : {4, 8, 16, 32, 64}) {
    if (block % vector == 0 && (block < 2 * channels || block <= vector)) blocks.push_back(block);
  }
  return blocks;
}

ConfigSpace::ConfigSpace(std::vector<Knob> knobs, Validity validity)
    : knobs_(std::move(knobs)), validity_(std::move(validity)), size_(1) {
  CheckKnobs(knobs_);
  for (const Knob& knob : knobs_) {
    const uint64_t count = knob.values.size();
    TILESMITH_CHECK(size_ <= std::numeric_limits<int64_t>::max() / count, "too many combinations");
    size_ *= count;
  }
}

Config ConfigSpace::At(uint64_t index) const {
  TILESMITH_CHECK(index < size_, "index {} in a space of {}", index, size_);
  Config config;
  for (const Knob& knob : knobs_) {
    config.Set(knob.name, knob.values[index % knob.values.size()]);
    index /= knob.values.size();
  }
  return config;
}

std::optional<uint64_t> ConfigSpace::IndexOf(const Config& config) const {
  if (size_ == 0 || config.knobs().size() != knobs_.size()) return std::nullopt;
  uint64_t index = 0;
  uint64_t radix = 1;
  for (const Knob& knob : knobs_) {
    const std::optional<int64_t> value = config.Find(knob.name);
    if (!value) return std::nullopt;
    const std::optional<uint64_t> position = PositionOf(knob, *value);
    if (!position) return std::nullopt;
    index += radix * *position;
    radix *= knob.values.size();
  }
  return index;
}

std::string ConfigSpace::WhyInvalid(const Config& config) const {
  if (size_ == 0) return "the config space is empty";
  for (const Knob& knob : knobs_) {
    const std::optional<int64_t> value = config.Find(knob.name);
    if (!value) return fmt::format("knob \"{}\" is missing", knob.name);
    if (!PositionOf(knob, *value)) {
      return fmt::format("knob \"{}\" is {} (allowed: {})", knob.name, *value, fmt::join(knob.values, ", "));
    }
  }
  for (const auto& [name, value] : config.knobs()) {
    if (std::ranges::find(knobs_, name, &Knob::name) == knobs_.end())
      return fmt::format("unknown knob \"{}\" (known: {})", name,
                         fmt::join(std::views::transform(knobs_, &Knob::name), ", "));
  }
  return validity_ ? validity_(config) : std::string();
}

std::vector<uint64_t> ConfigSpace::Neighbours(uint64_t index) const {
  TILESMITH_CHECK(index < size_, "index {} in a space of {}", index, size_);
  std::vector<uint64_t> neighbours;
  uint64_t radix = 1;
  for (const Knob& knob : knobs_) {
    const uint64_t position = index / radix % knob.values.size();
    if (position > 0 && IsValid(index - radix)) neighbours.push_back(index - radix);
    if (position + 1 < knob.values.size() && IsValid(index + radix)) neighbours.push_back(index + radix);
    radix *= knob.values.size();
  }
  std::sort(neighbours.begin(), neighbours.end());
  return neighbours;
}

std::optional<uint64_t> ConfigSpace::CountValid(uint64_t limit) const {
  if (size_ > limit) return std::nullopt;
  uint64_t count = 0;
  for (uint64_t index = 0; index < size_; ++index) count += IsValid(index);
  return count;
}

std::vector<int64_t> PartSizes(int64_t count, int64_t given) {
  std::set<int64_t> sizes = {given};
  for (const int64_t parts : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 56, 64})
    if (parts <= count) sizes.insert(CeilDiv(count, parts));
  return {sizes.begin(), sizes.end()};
}

}  // namespace tilesmith
