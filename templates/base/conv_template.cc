#include "templates/base/conv_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>

#include "layouts/base/fork_gate.h"
#include "layouts/base/sizes.h"
#include "layouts/base/stable_hash.h"

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

Support ConvTemplate::RunsOn(const Target& target) const {
  if (target.device == DeviceKind()) return Support::Yes();
  return Support::No("is for devices of kind " + std::string(DeviceKind()) + ", not " + target.device);
}

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

std::optional<Config> ConvTemplate::InBands(const ConvWorkload& workload, const Config& config, int64_t rows,
                                            const Target& cpu) const {
  const ConfigSpace space = Space(workload, cpu);
  const auto fits = [&](const Config& banded) {
    if (!space.WhyInvalid(banded).empty()) return false;
    const TaskGrid grid = Grid(workload, banded, cpu);
    return grid.GivesRows(workload.mb, workload.oh) &&
           CeilDiv(grid.part_units, grid.row_units) <= std::max(rows, grid.row_group);
  };
  Config banded = config;
  for (const std::string_view knob : {"stream", "partition"})
    if (banded.Find(knob)) banded.Set(knob, 0);
  if (fits(banded)) return banded;
  for (const std::string_view name : {"flat_width", "rows", "tile_rows", "tile_columns"}) {
    const auto knob = std::ranges::find(space.knobs(), name, &Knob::name);
    if (knob == space.knobs().end()) continue;
    std::vector<int64_t> values = knob->values;
    std::ranges::sort(values, std::greater());
    for (const int64_t value : values) {
      banded.Set(name, value);
      if (fits(banded)) return banded;
    }
  }
  return std::nullopt;
}

Support FitsDisplacements(const ConvWorkload& w, int64_t padding_channels) {
  constexpr double kMaxImageBytes = 1 << 30;
  // How far an axis of the input is stepped over at once; in floating point, where it cannot overflow.
  const auto reach = [](int64_t size, int64_t kernel, int64_t dilation, int64_t stride) {
    const double extent = static_cast<double>(kernel - 1) * static_cast<double>(dilation + 1) + 1;
    return std::max({static_cast<double>(size), extent, static_cast<double>(stride)});
  };
  const double input = reach(w.ih, w.kh, w.dh, w.sh) * reach(w.iw, w.kw, w.dw, w.sw) *
                       static_cast<double>(w.ic + padding_channels);
  const double output =
      static_cast<double>(w.oh) * static_cast<double>(w.ow) * static_cast<double>(w.oc + padding_channels);
  if (std::max(input, output) * sizeof(float) > kMaxImageBytes) {
    return Support::No(fmt::format("an image, or a kernel's reach over one, larger than {:.0f} MiB",
                                   kMaxImageBytes / (1 << 20)));
  }
  return w.before.empty() ? Support::Yes() : FitsDisplacements(w.before[0], padding_channels);
}

Support HasValidDefault(const ConfigSpace& space, const Config& preset) {
  const std::string reason = space.WhyInvalid(preset);
  return reason.empty() ? Support::Yes() : Support::No("even its default would need " + reason);
}

namespace {

// At least one for every template, on every ISA that it generates code for.
constexpr std::string_view kWorkloads[] = {
    "ic3ih224oc64kh7sh2ph3+bias+relu",
    "ic64ih56oc64kh3ph1+bias+sum+relu",
    "ic128ih28oc256kh3sh2ph1+bias+relu",
    "ic256ih14oc512kh1+bias+relu",
    "mb8ic1024ih7oc1000kh1+bias",
    "scale_shift+relu>ic128ih14oc128kh1",
    "g96ic96ih28oc96kh3ph1+bias+relu",
    "g64ic64ih56oc64kh5sh2ph2+bias",
    "g32ic32ih56oc32kh3ph1+bias+relu>ic32ih56oc64kh1+bias+relu",
    "ic32ih28oc96kh1+bias+relu>g96ic96ih28oc96kh3ph1+bias+relu",
    "g32ic128ih28oc128kh3ph1+bias+relu",
    "ic64ih128oc3kh3ph1+bias",
};

// No machine in particular, but for the ISA.
Target PlainCpu(Isa isa) {
  Target cpu;
  cpu.isa = isa;
  cpu.cores = 4;
  cpu.l1d_bytes = 32 << 10;
  cpu.l2_bytes = 1 << 20;
  cpu.l3_bytes = 16 << 20;
  if (isa == Isa::kSve) cpu.sve_bytes = 32;
  return cpu;
}

std::string Computed(Isa isa) {
  const Target cpu = PlainCpu(isa);
  StableHash hash;
  for (const ConvTemplate* conv_template : ConvTemplates(cpu.device)) {
    hash.Add(conv_template->Name());
    for (const std::string_view text : kWorkloads) {
      const ConvWorkload workload = ParseWorkload(text);
      hash.Add(text);
      if (!conv_template->Supports(workload, cpu).ok) continue;
      const ConfigSpace space = conv_template->Space(workload, cpu);
      for (const Knob& knob : space.knobs()) {
        hash.Add(knob.name);
        for (const int64_t value : knob.values) hash.Add(std::to_string(value));
      }
      hash.Add(conv_template->Default(workload, cpu).ToString());
    }
  }
  return fmt::format("{:08x}", (hash.value() ^ hash.value() >> 32) & 0xFFFFFFFFU);
}

}  // namespace

std::string SpaceFingerprint(Isa isa) {
  static std::mutex mutex;
  static std::map<Isa, std::string> known;
  const AwayFromForks away;
  const std::scoped_lock lock(mutex);
  std::string& fingerprint = known[isa];
  if (fingerprint.empty()) fingerprint = Computed(isa);
  return fingerprint;
}

}  // namespace tilesmith
