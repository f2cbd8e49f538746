#include "graph_tuner/costs/crossing_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "layouts/measure/core_placement.h"

namespace tilesmith {
namespace {

constexpr int64_t kMeasuredBytes[] = {16 << 10, 128 << 10, 1 << 20};  // of each thread
constexpr Crossing kCrossings[] = {Crossing::kRead, Crossing::kWrite};

CostKey CrossingKey(Crossing crossing, int64_t bytes, const std::string& distance) {
  return {{"kind", "crossing"},
          {"access", crossing == Crossing::kRead ? "read" : "write"},
          {"bytes", fmt::format("{}", bytes)},
          {"distance", distance}};
}

}  // namespace

CrossingMeasure CrossingMeasureOf(const Device& device) {
  if (device.threads() == 1 || !device.ReadsHostMemory()) return {};
  const int threads = device.threads();
  return {.distance =
              [threads] {
                const double nanoseconds = std::max(1.0, SeePlacement(threads).barrier_seconds * 1e9);
                return fmt::format("{}ns", std::int64_t{1} << std::lround(std::log2(nanoseconds)));
              },
          .time = [threads](int64_t bytes) { return MeasureCrossing(bytes, threads); }};
}

const CrossingCosts::Points& CrossingCosts::PointsOf(Crossing crossing) {
  if (!points_) {
    std::map<Crossing, Points> found;
    const std::string distance = measure_.distance();
    for (const int64_t bytes : kMeasuredBytes) {
      const auto known = [&](Crossing one) { return file_.Find(CrossingKey(one, bytes, distance)); };
      if (!std::ranges::all_of(kCrossings, [&](Crossing one) { return known(one).has_value(); })) {
        const CrossingTiming timing = measure_.time(bytes);
        for (const Crossing one : kCrossings) file_.Add(CrossingKey(one, bytes, distance), timing.Of(one));
      }
      // More bytes take no less time; where they seemed to, noise did.
      for (const Crossing one : kCrossings) {
        Points& points = found[one];
        points[bytes] = std::max(*known(one), points.empty() ? 0 : points.rbegin()->second);
      }
    }
    points_ = std::move(found);
  }
  return points_->at(crossing);
}

double CrossingCosts::Seconds(Crossing crossing, double bytes) {
  if (!measure_.time) return 0;
  std::pair<double, double> before = {0, 0}, after = {0, 0};
  for (const auto& [measured_bytes, seconds] : PointsOf(crossing)) {
    before = after;
    after = {static_cast<double>(measured_bytes), seconds};
    if (bytes <= after.first) break;
  }
  return before.second +
         (bytes - before.first) * (after.second - before.second) / (after.first - before.first);
}

}  // namespace tilesmith
