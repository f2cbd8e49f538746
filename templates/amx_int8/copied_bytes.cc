#include "templates/amx_int8/copied_bytes.h"

namespace tilesmith::amx_int8 {
namespace {

// That of bytes which nothing flips, whatever their type, since they are multiplied as they are.
Quantization Unflipped(int32_t zero_point) {
  return {.type = DataType::kU8, .scales = {1.0F}, .zero_points = {static_cast<uint8_t>(zero_point)}};
}

}  // namespace

CopiedBytes::CopiedBytes(const Schedule& schedule, const Target& cpu, int32_t zero_point)
    : plan_(schedule.plan),
      rows_(plan_.conv, ByteImage(schedule.workload.input_shape(), schedule.in), Unflipped(zero_point), true,
            TILESMITH_DISPATCH_VNNI(cpu, WidenRow)) {}

void CopiedBytes::Copy(const std::byte* image, const WindowTile& tile, std::byte* to) const {
  const ElementRange channels{tile.group * plan_.group_in, plan_.group_in};
  plan_.ForEachWidenedPart(tile, [&](const WindowPlan::WidenedPart& part) {
    rows_.Widen(reinterpret_cast<const uint8_t*>(image), channels, part.y, part.left, plan_.column_step,
                part.columns, plan_.pixel_numbers, to + part.offset);
  });
}

}  // namespace tilesmith::amx_int8
