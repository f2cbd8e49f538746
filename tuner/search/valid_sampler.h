// Random valid configs of a space, each at most once.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "templates/base/config.h"
#include "tuner/search/random_source.h"

namespace tilesmith {

// Small spaces are listed and shuffled, so that every valid config comes up in the end. Large ones are
// sampled by rejection, which is quick even where one config in a hundred is valid, and given up after many
// misses in a row. `space` must outlive the sampler.
class ValidSampler {
 public:
  explicit ValidSampler(const ConfigSpace& space) : space_(space) {}

  // A valid index that is not in `taken`, or nullopt when none is found.
  std::optional<uint64_t> Draw(const std::unordered_set<uint64_t>& taken, RandomSource& random);

 private:
  void List(RandomSource& random);

  const ConfigSpace& space_;
  bool listed_ = false;
  std::vector<uint64_t> left_;  // of a small space, shuffled
};

}  // namespace tilesmith
