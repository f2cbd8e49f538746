#include "tuner/cost_model/evaluation.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tilesmith {

double PairAccuracy(std::span<const float> predicted, std::span<const float> truth) {
  int64_t pairs = 0;
  double right = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    for (size_t j = i + 1; j < truth.size(); ++j) {
      if (truth[i] == truth[j]) continue;
      ++pairs;
      if (predicted[i] == predicted[j]) {
        right += 0.5;
      } else if ((predicted[i] > predicted[j]) == (truth[i] > truth[j])) {
        right += 1;
      }
    }
  }
  return pairs == 0 ? 0.5 : right / static_cast<double>(pairs);
}

double RecallOfBest(std::span<const float> predicted, std::span<const float> truth, size_t n) {
  std::vector<size_t> order(predicted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return predicted[a] > predicted[b]; });
  float best = 0;
  for (size_t i = 0; i < std::min(n, order.size()); ++i) best = std::max(best, truth[order[i]]);
  return best / *std::max_element(truth.begin(), truth.end());
}

}  // namespace tilesmith
