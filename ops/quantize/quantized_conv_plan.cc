#include "ops/quantize/quantized_conv_plan.h"

#include <algorithm>

namespace tilesmith {
namespace {

// How many groups are computed as one, whose weights between them are zeros: such that their output channels
// have room in 16 lanes, a vector or two of them.
int64_t MergedGroups(const ConvWorkload& w, const WindowForm& form) {
  constexpr int64_t kMostChannels = 16;
  constexpr double kMostWindowBytes = 1 << 20;  // of the widened input
  if (form.depthwise || form.dots) return 1;
  int64_t merged = std::min(kMostChannels, form.lanes) / (w.oc / w.g);
  const auto fits = [&](int64_t groups) {
    return w.g % groups == 0 && WidenedWindowBytes(w, groups * (w.ic / w.g)) <= kMostWindowBytes;
  };
  while (merged > 1 && !fits(merged)) --merged;
  return std::max<int64_t>(merged, 1);
}

// At most as many as the form's, such that the last ones that are computed at once are hardly fewer.
int64_t EvenPixels(const WindowPlan& plan) {
  const bool whole_rows = plan.tile_columns == plan.conv.ow;
  const int64_t count = plan.tile_columns * (whole_rows ? plan.tile_rows : 1);
  return CeilDiv(count, CeilDiv(count, plan.pixels));
}

}  // namespace

bool IsByteDepthwise(const ConvWorkload& w) { return w.g > 1 && w.g == w.ic && w.g == w.oc; }

bool MultipliesBytes(const ConvWorkload& w, const Target& cpu) {
  return cpu.vnni && w.bytes->weights == DataType::kI8 && !IsByteDepthwise(w);
}

WindowForm QuantizedConvForm(const ConvWorkload& w, const Target& cpu) {
  constexpr int64_t kLeastTerms = 64;  // fewer cost less than their sum at the end
  const bool bytes = MultipliesBytes(w, cpu), amx = bytes && cpu.amx;
  const int64_t in = w.ic / w.g, out = w.oc / w.g;
  // What four sums of a pixel cost at the end a single tap does not earn.
  const bool is_small = in == 4 || in == 8 || (in == 16 && w.kh * w.kw > 1);
  const bool small = is_small && in == out && w.g % (kGroupedPixelBytes / in) == 0;
  const bool dots = bytes && !amx && w.oc / w.g <= kMostDots && w.ic / w.g * w.kh * w.kw >= kLeastTerms;
  const bool grouped = bytes && !amx && !dots && small;
  return {.number_bytes = bytes ? 1 : 2,
          .lanes = QuantizedConvLanes(cpu.isa),
          .pixels = amx       ? kMaxTilePositions
                    : dots    ? kDotPixels
                    : grouped ? GroupedPixels(in / 4)
                              : QuantizedConvTilePixels(cpu.isa, bytes),
          .depthwise = IsByteDepthwise(w),
          .amx = amx,
          .dots = dots,
          .group_words = grouped ? in / 4 : 0};
}

WindowPlan QuantizedConvPlan(const ConvWorkload& w, const Target& cpu, const WindowCut& cut) {
  const WindowForm form = QuantizedConvForm(w, cpu);
  ConvWorkload merged = w;
  merged.g /= MergedGroups(w, form);
  WindowPlan plan(merged, form, cpu.cores, cut);
  if (cut.pixels == 0 && form.chooses_pixels()) plan.pixels = EvenPixels(plan);
  return plan;
}

double WidenedWindowBytes(const ConvWorkload& w) {
  constexpr int64_t kDepthwiseChannels = 64;
  return WidenedWindowBytes(w, IsByteDepthwise(w) ? kDepthwiseChannels : w.ic / w.g);
}

}  // namespace tilesmith
