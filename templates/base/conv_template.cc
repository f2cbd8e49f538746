#include "templates/base/conv_template.h"

#include <algorithm>

namespace tilesmith {
namespace {

// Every config of nothing but `knobs`.
std::vector<Config> ConfigsOf(const ConfigSpace& space, const std::vector<std::string_view>& knobs) {
  std::vector<Config> configs = {Config()};
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
  for (const Config& config : ConfigsOf(space, knobs)) pairs.push_back(Layouts(workload, config));
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

std::optional<Config> ConvTemplate::WithLayouts(const ConvWorkload& workload, const ConfigSpace& space,
                                                const Config& config, const LayoutPair& pair) const {
  const std::vector<std::string_view> knobs = LayoutKnobs();
  if (knobs.empty()) return std::nullopt;
  const std::vector<Config> configs = ConfigsOf(space, knobs);
  const auto found = std::find_if(configs.begin(), configs.end(),
                                  [&](const Config& layouts) { return Layouts(workload, layouts) == pair; });
  if (found == configs.end()) return std::nullopt;
  Config moved = config;
  for (const auto& [knob, value] : found->knobs()) moved.Set(knob, value);
  return moved;
}

}  // namespace tilesmith
