#include "templates/direct/prepared_input.h"

#include <algorithm>

#include "layouts/base/check.h"
#include "ops/elementwise/elementwise_loops.h"
#include "templates/base/image_strides.h"

namespace tilesmith::direct {
namespace {

std::vector<float> Padded(const float* values, float otherwise, int64_t count, int64_t padded) {
  std::vector<float> result(padded, 0.0F);
  values != nullptr ? std::copy_n(values, count, result.begin())
                    : std::fill_n(result.begin(), count, otherwise);
  return result;
}

}  // namespace

PreparedInput::PreparedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights)
    : schedule_(schedule), isa_(cpu.isa) {
  constexpr int64_t kLineFloats = 16;
  const ConvWorkload& w = schedule.workload;
  TILESMITH_CHECK((weights.scale != nullptr) == w.pre.scale_shift);
  block_ = schedule.in.BlockFor(w.ic);
  blocks_ = (w.ic + block_ - 1) / block_;
  most_rows_ = InputRowsOfTask(w, schedule.config);
  const int64_t floats = PreparedFloats(w, schedule.config);
  thread_floats_ = (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
  scale_ = Padded(weights.scale, 1, w.ic, blocks_ * block_);
  shift_ = Padded(weights.shift, 0, w.ic, blocks_ * block_);
}

InputRows PreparedInput::Prepare(const float* image, int64_t first, int64_t last, float* to) const {
  const ConvWorkload& w = schedule_.workload;
  const int64_t top = std::max<int64_t>(first * w.sh - w.ph, 0);
  const int64_t bottom = std::min(schedule_.ih, (last - 1) * w.sh - w.ph + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t row_floats = schedule_.iw * block_;
  const auto transform = TILESMITH_DISPATCH(isa_, ScaleShiftLanes);
  for (int64_t b = 0; b < blocks_ && top < bottom; ++b) {
    const float* from = BytesPast(image, b * schedule_.in_block_bytes + top * schedule_.in_row_bytes);
    transform({from, to + b * most_rows_ * row_floats, &scale_[b * block_], &shift_[b * block_], block_,
               (bottom - top) * schedule_.iw},
              w.pre.activation);
  }
  return {to, top, most_rows_ * schedule_.in_row_bytes};
}

}  // namespace tilesmith::direct
