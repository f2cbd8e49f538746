#include "templates/cuda_winograd/config.h"

#include "templates/base/support_checks.h"
#include "templates/cuda/limits.h"
#include "templates/cuda_winograd/schedule.h"

namespace tilesmith::cuda_winograd {

Support Supports(const ConvWorkload& w, const Target& target) {
  if (w.g != 1) return Support::No("groups");
  if (w.kh != 3 || w.kw != 3) return Support::No(fmt::format("a {}x{} kernel, not 3x3", w.kh, w.kw));
  if (w.sh != w.sw || w.sh > 2) return Support::No(fmt::format("strides {} and {}, not 1 or 2", w.sh, w.sw));
  if (w.dh != 0 || w.dw != 0) return Support::No("dilation");
  if (target.compute < 80) return Support::No("needs compute capability 8.0");
  return FitsDisplacements(w);
}

ConfigSpace Space(const ConvWorkload& w, const Target& target) {
  std::vector<Knob> knobs = {
      {"ic_block", cuda::BlockKnob(w.ic), "channels per block of the input's layout; 0 is NHWC"},
      {"oc_block", cuda::BlockKnob(w.oc), "channels per block of the output's layout; 0 is NHWC"},
      {"tile", {2, 4}, "m of F(m x m, 3 x 3): fewer multiplications, larger rounding errors"},
      {"threads", {64, 128, 256}, "threads of a block of the transforms"},
      {"tile_f", {16, 32, 64, 128}, "filters of a block of threads"},
      {"tile_x", {32, 64, 128}, "tiles of a block of threads"},
      {"tile_rc", {8, 16}, "channels in shared memory at a time"},
      {"part_f", {4, 8}, "filters of a thread"},
      {"part_x", {4, 8}, "tiles of a thread"},
      {"stages", {2, 3}, "tiles in shared memory, copied ahead"}};
  return ConfigSpace(std::move(knobs), [w, target](const Config& config) -> std::string {
    const Schedule s = ReadSchedule(w, config, target);
    if (s.tiles() > cuda::kMaxPositions) return "more than 2^31 - 1 tiles";
    if (s.scratch_bytes() > cuda::kMaxScratch)
      return fmt::format("{} bytes of scratch (allowed: {})", s.scratch_bytes(), cuda::kMaxScratch);
    if (s.product.tile.tile_f > 16 && s.product.tile.tile_f >= 2 * w.oc)
      return fmt::format("tile_f is {} for {} filters", s.product.tile.tile_f, w.oc);
    return cuda_gemm::WhyInvalid(s.product, target);
  });
}

Config Default(const ConvWorkload& w, const Target&) {
  Config config;
  config.Set("ic_block", w.ic % 4 == 0 ? 0 : 1);
  config.Set("oc_block", w.oc % 4 == 0 ? 0 : 1);
  config.Set("tile", 2);
  config.Set("threads", 128);
  config.Set("tile_f", w.oc >= 64 ? 64 : w.oc >= 32 ? 32 : 16);
  config.Set("tile_x", 64);
  config.Set("tile_rc", 16);
  config.Set("part_f", 4);
  config.Set("part_x", 4);
  config.Set("stages", 2);
  return config;
}

double ErrorFactor(const ConvWorkload& w, const Config& config) {
  const auto terms = static_cast<double>(w.ic * w.kh * w.kw);
  return 1 + 4 * winograd::ErrorAmplification(winograd::TransformsOf(config.Get("tile"), w.sh)) / terms;
}

}  // namespace tilesmith::cuda_winograd
