#include <algorithm>

#include "layouts/base/check.h"
#include "templates/portable/portable_conv.h"

namespace tilesmith {
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

PortableGeometry MakePortableGeometry(const ConvWorkload& workload, const LayoutPair& layouts, int64_t rows,
                                      const CpuInfo& cpu) {
  PortableGeometry geometry;
  geometry.workload = workload;
  geometry.cpu = cpu;
  geometry.in_block = layouts.in.BlockFor(workload.ic);
  geometry.out_block = layouts.out.BlockFor(workload.oc);
  geometry.in_offsets = ChannelOffsets(workload.input_shape(), layouts.in);
  geometry.out_offsets = ChannelOffsets(workload.output_shape(), layouts.out);
  geometry.zero_channels = layouts.out.PaddedChannels(workload.oc) - workload.oc;
  geometry.rows = rows;
  return geometry;
}

PortableRange TapsInside(int64_t first, int64_t step, int64_t taps, int64_t size) {
  const int64_t begin = first >= 0 ? 0 : (-first + step - 1) / step;
  const int64_t end = first >= size ? 0 : std::min(taps, (size - 1 - first) / step + 1);
  return {begin, end};
}

void SetPortableActivation(const Activation& activation, PortableFinish& finish) {
  finish.activation = KindOf(activation.kind);
  finish.alpha = activation.alpha;
  finish.beta = activation.beta;
  if (activation.kind == ActivationKind::kHardSwish) {
    finish.alpha = 1.0f / 6;
    finish.beta = 0.5f;
  }
}

void ZeroPaddingChannels(const PortableGeometry& geometry, float* row) {
  if (geometry.zero_channels == 0) return;
  float* first = row + geometry.out_offsets.back() + 1;
  for (int64_t x = 0; x < geometry.workload.ow; ++x) {
    std::fill_n(first + x * geometry.out_block, geometry.zero_channels, 0.0f);
  }
}

}  // namespace tilesmith
