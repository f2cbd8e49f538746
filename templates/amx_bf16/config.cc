#include "templates/amx_bf16/config.h"

#include "templates/base/schedule_template.h"

namespace tilesmith {
namespace amx_bf16 {

Schedule MakeSchedule(const ConvWorkload& workload, const AmxBf16Config& config, const Target& cpu) {
  Schedule s{amx::MakeSchedule(workload, config.common, cpu, kBf16Bytes, config.types.in, config.types.out)};
  s.as_it_is = s.in.type() == DataType::kBf16 && !workload.pre.any() && amx::AreInPlace(s);
  return s;
}

namespace {

// Planes of floats are read as they are, where there are few, as of images.
bool ReadsPlanes(const ConvWorkload& w) {
  constexpr int64_t kMaxPlanes = 4;
  return w.ic <= kMaxPlanes && w.g == 1 && !w.pre.any();
}

// Blocks of a step's channels are read where they lie; of fewer, two are put together.
std::vector<int64_t> InputBlocks(const ConvWorkload& w) {
  if (w.g > 1) return {0};
  std::vector<int64_t> blocks;
  if (ReadsPlanes(w)) blocks.push_back(1);
  for (const int64_t block : {8, 16, 32, 64})
    if (block < 2 * w.ic || block == 8) blocks.push_back(block);
  blocks.push_back(0);
  return blocks;
}

WindowPlan PresetOf(const ConvWorkload& w, const Target& cpu) {
  return WindowPlan(w, amx::FormOf(kBf16Bytes), cpu.cores);
}

Support Supports(const ConvWorkload& w, const Target& cpu) { return amx::Supports(w, cpu, kBf16Bytes); }

ConfigSpace Space(const ConvWorkload& w, const Target& cpu) {
  const WindowPlan preset = PresetOf(w, cpu);
  std::vector<Knob> knobs = amx::Knobs(preset, InputBlocks(w), amx::OutputBlocks(w));
  for (Knob& knob : TypeKnobs()) knobs.push_back(std::move(knob));
  return ConfigSpace(std::move(knobs), [w, cpu, preset](const Config& config) -> std::string {
    const AmxBf16Config read = ReadConfig(config);
    if (read.common.ic_block == 1 && read.types.in != DataType::kF32) return "planes are read in f32";
    return amx::WhyInvalid(w, cpu, preset, read.common.cut);
  });
}

Config Default(const ConvWorkload& w, const Target& cpu) {
  Config config = amx::DefaultOf(PresetOf(w, cpu));
  if (ReadsPlanes(w)) config.Set("ic_block", 1);
  SetTypes({ReadsPlanes(w) ? DataType::kF32 : DataType::kBf16, DataType::kBf16}, config);
  return config;
}

Schedule ReadSchedule(const ConvWorkload& w, const Config& config, const Target& cpu) {
  return MakeSchedule(w, ReadConfig(config), cpu);
}

}  // namespace

AmxBf16Config ReadConfig(const Config& config) {
  return {.common = amx::ReadConfig(config), .types = ReadTypes(config)};
}

}  // namespace amx_bf16

const ConvTemplate& AmxBf16Template() {
  static const X86Template<amx_bf16::Schedule> instance(
      {.name = "amx_bf16",
       .type = DataType::kBf16,
       .fuses = true,
       .supports = amx_bf16::Supports,
       .space = amx_bf16::Space,
       .preset = amx_bf16::Default,
       .read = amx_bf16::ReadSchedule,
       .type_knobs = {"in_type", "out_type"},
       .factors = DataType::kBf16,
       .cycles = [](const amx_bf16::Schedule& s, const Target& cpu) { return amx::CyclesOf(s, cpu); }});
  return instance;
}

}  // namespace tilesmith
