#include "tuner/search/valid_sampler.h"

#include <utility>

namespace tilesmith {
namespace {

constexpr uint64_t kListedSize = 1 << 14;
constexpr int kMissesInARow = 200'000;

}  // namespace

void ValidSampler::List(RandomSource& random) {
  listed_ = true;
  for (uint64_t index = 0; index < space_.size(); ++index) {
    if (space_.IsValid(index)) left_.push_back(index);
  }
  for (size_t i = left_.size(); i > 1; --i) std::swap(left_[i - 1], left_[random.Below(i)]);
}

std::optional<uint64_t> ValidSampler::Draw(const std::unordered_set<uint64_t>& taken, RandomSource& random) {
  if (space_.size() <= kListedSize) {
    if (!listed_) List(random);
    while (!left_.empty()) {
      const uint64_t index = left_.back();
      left_.pop_back();
      if (!taken.contains(index)) return index;
    }
    return std::nullopt;
  }
  for (int misses = 0; misses < kMissesInARow; ++misses) {
    const uint64_t index = random.Below(space_.size());
    if (!taken.contains(index) && space_.IsValid(index)) return index;
  }
  return std::nullopt;
}

}  // namespace tilesmith
