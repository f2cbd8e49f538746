#include "templates/amx_bf16/copied_input.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/convert_runs.h"
#include "layouts/transform_moves.h"
#include "ops/elementwise/elementwise_loops.h"
#include "templates/amx_bf16/planes.h"
#include "templates/base/image_strides.h"

namespace tilesmith::amx_bf16 {
namespace {

constexpr int64_t kLineBytes = 64;

}  // namespace

CopiedInput::CopiedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule),
      cpu_(cpu),
      block_(schedule.in.BlockFor(schedule.workload.ic)),
      line_at_(schedule.plan.ThreadBytes()) {
  const ConvWorkload& w = schedule.workload;
  if (!w.pre.any()) return;
  line_bytes_ = RoundUp(schedule.plan.conv.iw * block_ * schedule.in.element_bytes(), kLineBytes);
  const int64_t padded = RoundUp(w.ic, block_);
  scale_ = FloatsPart(weights.parts, weights.scale, w.ic, padded, 1);
  shift_ = FloatsPart(weights.parts, weights.shift, w.ic, padded);
}

void CopiedInput::Copy(const std::byte* image, const WindowTile& tile, std::byte* to) const {
  const WindowPlan& plan = schedule_.plan;
  plan.ForEachWidenedPart(tile, [&](const WindowPlan::WidenedPart& part) {
    CopyPart(image, part, tile.group, to + part.offset, to + line_at_);
  });
}

void CopiedInput::CopyPart(const std::byte* image, const WindowPlan::WidenedPart& part, int64_t group,
                           std::byte* to, std::byte* line) const {
  const WindowPlan& plan = schedule_.plan;
  const ConvWorkload& conv = plan.conv;
  const auto& [y, left, columns, offset] = part;
  auto* const out = reinterpret_cast<uint16_t*>(to);
  const int64_t first = left < 0 ? std::min(CeilDiv(-left, plan.column_step), columns) : 0;
  const int64_t inside = left >= conv.iw ? 0 : (conv.iw - 1 - left) / plan.column_step + 1;
  const int64_t last = std::clamp(inside, first, columns);
  const bool is_inside = y >= 0 && y < conv.ih && first < last;
  const int64_t begin = is_inside ? first : columns, end = is_inside ? last : columns;
  std::fill_n(out, begin * plan.pixel_numbers, uint16_t{0});
  std::fill_n(out + end * plan.pixel_numbers, (columns - end) * plan.pixel_numbers, uint16_t{0});
  if (!is_inside) return;
  Pixels pixels{.first = y * conv.iw + left + first * plan.column_step,
                .step = plan.column_step,
                .count = last - first};
  if (schedule_.config.ic_block == 1) return CopyPlanes(image, pixels, out + begin * plan.pixel_numbers);
  for (int64_t c = 0; c < plan.group_in; c += pixels.channels) {
    const int64_t channel = group * plan.group_in + c;
    pixels.block = channel / block_;
    pixels.channel = channel % block_;
    pixels.channels = std::min(block_ - pixels.channel, plan.group_in - c);
    const bool is_last = c + pixels.channels == plan.group_in;
    const int64_t padded = is_last ? plan.pixel_numbers - c : pixels.channels;
    CopyPixels(image, pixels, out + begin * plan.pixel_numbers + c, padded, line);
  }
}

void CopiedInput::CopyPlanes(const std::byte* image, const Pixels& p, uint16_t* to) const {
  const WindowPlan& plan = schedule_.plan;
  const PlaneRows rows{.in = reinterpret_cast<const float*>(image) + p.first,
                       .plane = plan.conv.ih * plan.conv.iw,
                       .step = p.step,
                       .channels = plan.conv.ic,
                       .out = to,
                       .padded = plan.pixel_numbers,
                       .columns = p.count};
  TILESMITH_DISPATCH(cpu_.isa, InterleavePlanes)(rows);
}

void CopiedInput::CopyPixels(const std::byte* image, const Pixels& p, uint16_t* to, int64_t padded,
                             std::byte* line) const {
  const WindowPlan& plan = schedule_.plan;
  const ConvWorkload& w = schedule_.workload;
  const int64_t block_start = (p.block * plan.conv.ih * plan.conv.iw + p.first) * block_;
  const auto copy = [&]<typename T>(const T* stored) {
    const T* from = stored + block_start;
    if (w.pre.any()) {
      const int64_t seen = (p.count - 1) * p.step + 1;
      TILESMITH_DISPATCH_STORED(T, cpu_, ScaleShiftLanes<T>)
      ({from, reinterpret_cast<T*>(line), scale_.floats() + p.block * block_,
        shift_.floats() + p.block * block_, block_, seen},
       w.pre.activation);
      from = reinterpret_cast<const T*>(line);
    }
    from += p.channel;
    const bool adjacent =
        p.step == 1 && p.channels == block_ && padded == block_ && plan.pixel_numbers == block_;
    const int64_t length = adjacent ? p.count * block_ : p.channels;
    const int64_t pixels = adjacent ? 1 : p.count;
    if constexpr (sizeof(T) == sizeof(float)) {
      TILESMITH_DISPATCH(cpu_.isa, ConvertRuns<float>)
      ({.in = from,
        .out = to,
        .in_pixel_stride = p.step * block_,
        .out_pixel_stride = plan.pixel_numbers,
        .pixels = pixels,
        .length = length,
        .padded = adjacent ? length : padded});
    } else {
      TILESMITH_DISPATCH(cpu_.isa, CopyRuns<uint16_t>)
      ({.in = from,
        .out = to,
        .in_pixel_stride = p.step * block_,
        .out_pixel_stride = plan.pixel_numbers,
        .pixels = pixels,
        .runs = 1,
        .length = length,
        .padded = adjacent ? length : padded});
    }
  };
  schedule_.in.type() == DataType::kBf16 ? copy(reinterpret_cast<const uint16_t*>(image))
                                         : copy(reinterpret_cast<const float*>(image));
}

}  // namespace tilesmith::amx_bf16
