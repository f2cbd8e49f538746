#include "templates/portable/kernels.h"

#include <algorithm>

#include "layouts/base/check.h"

namespace tilesmith::portable {
namespace {

std::vector<int64_t> ChannelOffsets(const Shape& shape, const Layout& layout) {
  const Dims4 dims = ToDims4(shape);
  std::vector<int64_t> offsets(dims.c);
  for (int64_t c = 0; c < dims.c; ++c) offsets[c] = ElementOffset(dims, layout, {0, c, 0, 0});
  return offsets;
}

PortableActivation KindOf(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return PortableActivation::kRelu;
    case ActivationKind::kClip:
      return PortableActivation::kClip;
    case ActivationKind::kLeakyRelu:
      return PortableActivation::kLeakyRelu;
    case ActivationKind::kHardSigmoid:
      return PortableActivation::kHardSigmoid;
    case ActivationKind::kHardSwish:
      return PortableActivation::kHardSwish;
    case ActivationKind::kNone:
      return PortableActivation::kNone;
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
    case ActivationKind::kSilu:
      break;
  }
  TILESMITH_CHECK(false, "no workload fuses activation {}", static_cast<int>(kind));
}

}  // namespace

Placement PlaceInMemory(const Schedule& schedule, const Target& cpu) {
  const ConvWorkload& workload = schedule.workload;
  Placement placement;
  placement.workload = workload;
  placement.cpu = cpu;
  placement.in_block = schedule.in.BlockFor(workload.ic);
  placement.out_block = schedule.out.BlockFor(workload.oc);
  placement.in_offsets = ChannelOffsets(workload.input_shape(), schedule.in);
  placement.out_offsets = ChannelOffsets(workload.output_shape(), schedule.out);
  placement.zero_channels = schedule.out.PaddedChannels(workload.oc) - workload.oc;
  placement.rows = schedule.config.rows;
  return placement;
}

Range TapsInside(int64_t first, int64_t step, int64_t taps, int64_t size) {
  const int64_t begin = first >= 0 ? 0 : (-first + step - 1) / step;
  const int64_t end = first >= size ? 0 : std::min(taps, (size - 1 - first) / step + 1);
  return {begin, end};
}

void SetActivation(const Activation& activation, PortableFinish& finish) {
  finish.activation = KindOf(activation.kind);
  finish.alpha = activation.alpha;
  finish.beta = activation.beta;
  if (activation.kind == ActivationKind::kHardSwish) {
    finish.alpha = 1.0f / 6;
    finish.beta = 0.5f;
  }
}

void ZeroPaddingChannels(const Placement& placement, float* row) {
  if (placement.zero_channels == 0) return;
  float* first = row + placement.out_offsets.back() + 1;
  for (int64_t x = 0; x < placement.workload.ow; ++x) {
    std::fill_n(first + x * placement.out_block, placement.zero_channels, 0.0f);
  }
}

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  TILESMITH_CHECK((weights.bias != nullptr) == schedule.workload.post.bias, "bias of {}",
                  WorkloadToString(schedule.workload));
  const Placement placement = PlaceInMemory(schedule, cpu);
  if (schedule.config.over_width) return MakePlaneKernel(schedule, placement, weights);
  return MakeChannelKernel(schedule, placement, weights);
}

}  // namespace tilesmith::portable
