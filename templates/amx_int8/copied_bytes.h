// The input that a tile of pixels sees, as the amx_int8 template multiplies it: bytes as they are stored,
// with or without a sign, zero points where padding is.
#pragma once

#include "ops/quantize/byte_image.h"
#include "templates/amx/strips.h"
#include "templates/amx_int8/schedule.h"

namespace tilesmith::amx_int8 {

class CopiedBytes final : public amx::InputCopy {
 public:
  // zero_point: of the input's bytes.
  CopiedBytes(const Schedule& schedule, const Target& cpu, int32_t zero_point);

  int64_t ThreadBytes() const override { return plan_.ThreadBytes(); }
  void Copy(const std::byte* image, const WindowTile& tile, std::byte* to) const override;

 private:
  const WindowPlan plan_;
  const RowWidener rows_;
};

}  // namespace tilesmith::amx_int8
