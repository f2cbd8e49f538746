#include "ops/quantize/quantized_conv_plan.h"

namespace tilesmith {

bool IsByteDepthwise(const ConvWorkload& w) { return w.g > 1 && w.g == w.ic && w.g == w.oc; }

bool MultipliesBytes(const ConvWorkload& w, const Target& cpu) {
  return cpu.vnni && w.bytes->weights == DataType::kI8 && !IsByteDepthwise(w);
}

WindowForm QuantizedConvForm(const ConvWorkload& w, const Target& cpu) {
  const bool bytes = MultipliesBytes(w, cpu), amx = bytes && cpu.amx;
  return {.number_bytes = bytes ? 1 : 2,
          .lanes = QuantizedConvLanes(cpu.isa),
          .pixels = amx ? kMaxTilePositions : QuantizedConvTilePixels(cpu.isa, bytes),
          .depthwise = IsByteDepthwise(w),
          .amx = amx};
}

WindowPlan QuantizedConvPlan(const ConvWorkload& w, const Target& cpu, const WindowCut& cut) {
  return {w, QuantizedConvForm(w, cpu), cpu.cores, cut};
}

double WidenedWindowBytes(const ConvWorkload& w) {
  constexpr int64_t kDepthwiseChannels = 64;
  return WidenedWindowBytes(w, IsByteDepthwise(w) ? kDepthwiseChannels : w.ic / w.g);
}

}  // namespace tilesmith
