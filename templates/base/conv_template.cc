#include "templates/base/conv_template.h"

#include <algorithm>

namespace tilesmith {
namespace {

// Every config that differs from `config` in nothing but `knobs`.
std::vector<Config> WithEveryValue(const ConfigSpace& space, const std::vector<std::string_view>& knobs,
                                   const Config& config) {
  std::vector<Config> configs = {config};
  for (const Knob& knob : space.knobs()) {
    if (std::find(knobs.begin(), knobs.end(), knob.name) == knobs.end()) continue;
    std::vector<Config> next;
    for (const Config& before : configs) {
      for (const int64_t value : knob.values) next.emplace_back(before).Set(knob.name, value);
    }
    configs = std::move(next);
  }
  return configs;
}

}  // namespace

std::vector<LayoutPair> ConvTemplate::LayoutPairs(const ConvWorkload& workload,
                                                  const ConfigSpace& space) const {
  const std::vector<std::string_view> knobs = LayoutKnobs();
  std::vector<LayoutPair> pairs;
  if (knobs.empty()) return pairs;
  for (const Config& config : WithEveryValue(space, knobs, space.At(0)))
    pairs.push_back(Layouts(workload, config));
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

std::optional<Config> ConvTemplate::WithLayouts(const ConvWorkload& workload, const ConfigSpace& space,
                                                const Config& config, const LayoutPair& pair) const {
  const std::vector<std::string_view> knobs = LayoutKnobs();
  if (knobs.empty()) return std::nullopt;
  std::vector<Config> configs = WithEveryValue(space, knobs, config);
  const auto found = std::find_if(configs.begin(), configs.end(),
                                  [&](const Config& moved) { return Layouts(workload, moved) == pair; });
  return found == configs.end() ? std::nullopt : std::optional(std::move(*found));
}

}  // namespace tilesmith
