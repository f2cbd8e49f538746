#include "graph_tuner/costs/crossing_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
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

constexpr int64_t kMeasuredBytes[] = {16 << 10, 128 << 10, 1 << 20};  // of each thread
constexpr std::string_view kNames[] = {"read", "write", "weights"};   // of crossings

// Nanoseconds of a barrier, a power of two.
int64_t DistanceOf(double barrier_seconds) {
  return int64_t{1} << std::clamp<int64_t>(std::lround(std::log2(std::max(1.0, barrier_seconds * 1e9))), 0,
                                           62);
}

CostKey CrossingKey(Crossing crossing, int64_t bytes, int64_t distance) {
  return {{"kind", "crossing"},
          {"access", std::string(kNames[static_cast<size_t>(crossing)])},
          {"bytes", fmt::format("{}", bytes)},
          {"distance", fmt::format("{}ns", distance)}};
}

// What "64ns" says; nothing of other texts.
std::optional<int64_t> ParseDistance(std::string_view text) {
  int64_t distance = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), distance);
  const bool ends = std::string_view(rest, text.data() + text.size()) == "ns";
  return error == std::errc() && ends && distance > 0 ? std::optional(distance) : std::nullopt;
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

CrossingMeasure CrossingMeasureOf(const Device& device) {
  if (device.threads() == 1 || !device.ReadsHostMemory()) return {};
  const int threads = device.threads();
  return {.barrier_seconds = [threads] { return SeePlacement(threads).barrier_seconds; },
          .time = [threads](int64_t bytes) { return MeasureCrossing(bytes, threads); }};
}

void CrossingCosts::TakeFromMachine() {
  if (std::exchange(taken_, true)) return;
  for (const auto& [key, seconds] : machine_.figures())
    if (key.contains("distance") && !file_.Find(key)) file_.Add(key, seconds);
}

void CrossingCosts::SeeDistance() {
  if (!measure_.time) return;
  TakeFromMachine();
  const int64_t distance = DistanceOf(measure_.barrier_seconds());
  for (const int64_t bytes : kMeasuredBytes) {
    const auto is_known = [&](Crossing one) {
      return file_.Find(CrossingKey(one, bytes, distance)).has_value();
    };
    if (std::ranges::all_of(kCrossings, is_known)) continue;
    const CrossingTiming timing = measure_.time(bytes);
    for (const Crossing one : kCrossings) {
      for (CostFile* const file : {&file_, &machine_})
        file->Add(CrossingKey(one, bytes, distance), timing.Of(one));
    }
    read_ = false;
  }
}

const CrossingPrices& CrossingCosts::Prices() {
  if (!measure_.time || read_) return prices_;
  TakeFromMachine();
  prices_ = PricesInFile();
  if (prices_.distances().empty()) {
    SeeDistance();
    prices_ = PricesInFile();
  }
  read_ = true;
  return prices_;
}

// The distances that have all figures.
CrossingPrices CrossingCosts::PricesInFile() const {
  std::set<int64_t> found;
  for (const auto& [key, seconds] : file_.figures()) {
    const auto distance = key.find("distance");
    if (distance == key.end()) continue;
    if (const std::optional<int64_t> one = ParseDistance(distance->second)) found.insert(*one);
  }
  std::vector<CrossingPrices::Distance> distances;
  for (const int64_t distance : found) {
    bool complete = true;
    const auto points_of = [&](Crossing crossing) {
      CrossingPrices::Points points;
      for (const int64_t bytes : kMeasuredBytes) {
        const std::optional<double> seconds = file_.Find(CrossingKey(crossing, bytes, distance));
        complete = complete && seconds;
        // More bytes take no less time; where they seemed to, noise did.
        points[bytes] = std::max(seconds.value_or(0), points.empty() ? 0 : points.rbegin()->second);
      }
      return points;
    };
    CrossingPrices::Distance prices{static_cast<double>(distance) * 1e-9, points_of(Crossing::kRead),
                                    points_of(Crossing::kWrite), points_of(Crossing::kWeights)};
    if (complete) distances.push_back(std::move(prices));
  }
  return CrossingPrices(std::move(distances));
}

}  // namespace tilesmith
