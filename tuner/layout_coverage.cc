#include "tuner/layout_coverage.h"

#include <algorithm>
#include <cstdlib>

namespace tilesmith {
namespace {

const Knob* FindKnob(const ConfigSpace& space, std::string_view name) {
  for (const Knob& knob : space.knobs()) {
    if (knob.name == name) return &knob;
  }
  return nullptr;
}

// The knob's values but `current`, nearest in the knob's order first.
std::vector<int64_t> OtherValues(const Knob& knob, int64_t current) {
  const auto at = std::find(knob.values.begin(), knob.values.end(), current) - knob.values.begin();
  std::vector<ptrdiff_t> order;
  for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(knob.values.size()); ++i) {
    if (i != at) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [at](ptrdiff_t a, ptrdiff_t b) { return std::abs(a - at) < std::abs(b - at); });
  std::vector<int64_t> values;
  values.reserve(order.size());
  for (ptrdiff_t i : order) values.push_back(knob.values[i]);
  return values;
}

// Changes up to `changes` of the knobs from `first` on.
std::optional<Config> Repair(const ConfigSpace& space, const std::vector<const Knob*>& knobs, size_t first,
                             const Config& config, int changes) {
  for (size_t k = first; k < knobs.size(); ++k) {
    Config changed = config;
    for (int64_t value : OtherValues(*knobs[k], config.Get(knobs[k]->name))) {
      changed.Set(knobs[k]->name, value);
      if (changes == 1) {
        if (space.WhyInvalid(changed).empty()) return changed;
      } else if (auto repaired = Repair(space, knobs, k + 1, changed, changes - 1)) {
        return repaired;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<BlockPair> BlockPairs(const ConfigSpace& space) {
  std::vector<BlockPair> pairs;
  if (const Knob* both = FindKnob(space, "block")) {
    for (int64_t block : both->values) pairs.push_back({block, block});
  }
  const Knob* ic = FindKnob(space, "ic_block");
  const Knob* oc = FindKnob(space, "oc_block");
  if (ic != nullptr && oc != nullptr) {
    for (int64_t ic_block : ic->values) {
      for (int64_t oc_block : oc->values) pairs.push_back({ic_block, oc_block});
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

std::optional<Config> Transplant(const ConfigSpace& space, const Config& config, const BlockPair& pair) {
  if (!space.IndexOf(config)) return std::nullopt;
  Config moved = config;
  if (config.Find("block")) {
    if (pair.ic_block != pair.oc_block) return std::nullopt;
    moved.Set("block", pair.ic_block);
  } else {
    moved.Set("ic_block", pair.ic_block);
    moved.Set("oc_block", pair.oc_block);
  }
  if (!space.IndexOf(moved)) return std::nullopt;
  if (space.WhyInvalid(moved).empty()) return moved;
  std::vector<const Knob*> others;
  for (const Knob& knob : space.knobs()) {
    if (knob.name != "ic_block" && knob.name != "oc_block" && knob.name != "block") others.push_back(&knob);
  }
  for (int changes : {1, 2}) {
    if (auto repaired = Repair(space, others, 0, moved, changes)) return repaired;
  }
  return std::nullopt;
}

std::optional<BlockPair> BlocksOf(const Config& config) {
  if (const std::optional<int64_t> both = config.Find("block")) return BlockPair{*both, *both};
  const std::optional<int64_t> ic = config.Find("ic_block"), oc = config.Find("oc_block");
  if (!ic || !oc) return std::nullopt;
  return BlockPair{*ic, *oc};
}

}  // namespace tilesmith
