#include "tuner/layout_coverage.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace tilesmith {
namespace {

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

std::optional<Config> Transplant(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                 const ConfigSpace& space, const Config& config, const LayoutPair& pair) {
  if (!space.IndexOf(config)) return std::nullopt;
  std::optional<Config> moved = conv_template.WithLayouts(workload, space, config, pair);
  if (!moved || space.WhyInvalid(*moved).empty()) return moved;
  const std::vector<std::string_view> layout_knobs = conv_template.LayoutKnobs();
  std::vector<const Knob*> others;
  for (const Knob& knob : space.knobs()) {
    if (std::find(layout_knobs.begin(), layout_knobs.end(), knob.name) == layout_knobs.end())
      others.push_back(&knob);
  }
  for (int changes : {1, 2}) {
    if (auto repaired = Repair(space, others, 0, *moved, changes)) return repaired;
  }
  return std::nullopt;
}

}  // namespace tilesmith
