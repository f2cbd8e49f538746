#include "graph_tuner/costs/crossing_prices.h"

#include <algorithm>
#include <utility>

namespace tilesmith {
namespace {

double SecondsOn(const CrossingPrices::Points& points, double bytes) {
  if (points.empty()) return 0;
  std::pair<double, double> before = {0, 0}, after = {0, 0};
  for (const auto& [measured_bytes, seconds] : points) {
    before = after;
    after = {static_cast<double>(measured_bytes), seconds};
    if (bytes <= after.first) break;
  }
  return before.second +
         (bytes - before.first) * (after.second - before.second) / (after.first - before.first);
}

}  // namespace

double CrossingPrices::Seconds(Crossing crossing, double bytes) const {
  double seconds = 0;
  for (const Distance& distance : distances_) seconds += SecondsOn(distance.Of(crossing), bytes);
  return distances_.empty() ? 0 : seconds / static_cast<double>(distances_.size());
}

CrossingPrices CrossingPrices::At(const CorePlacement& placement) const {
  if (!(placement.barrier_seconds > 0) || distances_.size() <= 1) return *this;
  const auto off = [&](const Distance& distance) {
    return DistanceGap(distance.barrier_seconds, placement.barrier_seconds);
  };
  return CrossingPrices({*std::ranges::min_element(distances_, {}, off)});
}

CrossingPrices CrossingPrices::Nearest() const {
  if (distances_.size() <= 1) return *this;
  return CrossingPrices({*std::ranges::min_element(distances_, {}, &Distance::barrier_seconds)});
}

}  // namespace tilesmith
