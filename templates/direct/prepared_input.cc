#include "templates/direct/prepared_input.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "layouts/convert_runs.h"
#include "ops/elementwise/elementwise_loops.h"
#include "templates/base/image_strides.h"
#include "templates/base/padded_channels.h"

namespace tilesmith::direct {

PreparedInput::PreparedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule), isa_(cpu.isa) {
  constexpr int64_t kLineBytes = 64;
  const ConvWorkload& w = schedule.workload;
  TILESMITH_CHECK((weights.scale != nullptr) == w.pre.scale_shift);
  block_ = schedule.in.BlockFor(w.ic);
  blocks_ = (w.ic + block_ - 1) / block_;
  most_rows_ = InputRowsOfTask(w, schedule.config);
  const auto whole_lines = [](int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; };
  rows_bytes_ = whole_lines(PreparedBytes(w, schedule.config));
  const bool by_way_of_floats = schedule.config.factors == Factors::kBf16 && w.pre.any();
  line_bytes_ = by_way_of_floats ? whole_lines(schedule.iw * block_ * kFloatBytes) : 0;
  scale_ = PaddedChannels(weights.scale, 1, w.ic, blocks_ * block_);
  shift_ = PaddedChannels(weights.shift, 0, w.ic, blocks_ * block_);
}

InputRows PreparedInput::Prepare(const std::byte* image, int64_t first, int64_t last, std::byte* to) const {
  const ConvWorkload& w = schedule_.workload;
  const int64_t top = std::max<int64_t>(first * w.sh - w.ph, 0);
  const int64_t bottom = std::min(schedule_.ih, (last - 1) * w.sh - w.ph + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t stored_row_bytes = schedule_.iw * block_ * schedule_.in.element_bytes();
  for (int64_t b = 0; b < blocks_ && top < bottom; ++b) {
    const std::byte* from = image + (b * schedule_.ih + top) * stored_row_bytes;
    std::byte* rows = to + b * most_rows_ * schedule_.in_row_bytes;
    if (schedule_.config.factors == Factors::kF32) {
      PrepareFloats(from, reinterpret_cast<float*>(rows), b, (bottom - top) * schedule_.iw);
      continue;
    }
    auto* line = reinterpret_cast<float*>(to + rows_bytes_);
    for (int64_t row = top; row < bottom; ++row) {
      PrepareBf16(from, rows, line, b, schedule_.iw);
      from += stored_row_bytes;
      rows += schedule_.in_row_bytes;
    }
  }
  return {reinterpret_cast<const float*>(to), top, most_rows_ * schedule_.in_row_bytes};
}

void PreparedInput::PrepareFloats(const std::byte* from, float* to, int64_t block, int64_t pixels) const {
  const ConvWorkload& w = schedule_.workload;
  const int64_t elements = pixels * block_;
  const auto* floats = reinterpret_cast<const float*>(from);
  if (schedule_.in.type() == DataType::kBf16) {
    TILESMITH_DISPATCH(isa_, ConvertRuns<uint16_t>)
    ({.in = reinterpret_cast<const uint16_t*>(from), .out = to, .length = elements, .padded = elements});
    floats = to;
  }
  if (!w.pre.any()) return;
  TILESMITH_DISPATCH(isa_, ScaleShiftLanes<float>)
  ({floats, to, &scale_[block * block_], &shift_[block * block_], block_, pixels}, w.pre.activation);
}

void PreparedInput::PrepareBf16(const std::byte* from, std::byte* to, float* line, int64_t block,
                                int64_t pixels) const {
  const int64_t elements = pixels * block_;
  const auto* floats = reinterpret_cast<const float*>(from);
  if (schedule_.workload.pre.any()) {
    PrepareFloats(from, line, block, pixels);
    floats = line;
  }
  TILESMITH_DISPATCH(isa_, ConvertRuns<float>)
  ({.in = floats, .out = reinterpret_cast<uint16_t*>(to), .length = elements, .padded = elements});
}

}  // namespace tilesmith::direct
