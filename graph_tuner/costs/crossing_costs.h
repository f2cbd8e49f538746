// What it costs that bytes change hands between threads, measured once for each distance of the cores.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "graph_tuner/costs/costs_file.h"
#include "layouts/measure/crossing.h"
#include "templates/device/device.h"

namespace tilesmith {

struct CrossingMeasure {
  // How far apart the cores are now, in words: a barrier of the team, to a power of two of nanoseconds
  // ("64ns"). Cores that a host moves have several, each with prices of its own.
  std::function<std::string()> distance;
  std::function<CrossingTiming(int64_t bytes)> time;  // empty: there is nothing to measure
};

// The device's team of threads; nothing where it has one thread, or memory of its own.
CrossingMeasure CrossingMeasureOf(const Device& device);

class CrossingCosts {
 public:
  // `file` must outlive this.
  CrossingCosts(CostFile& file, CrossingMeasure measure) : file_(file), measure_(std::move(measure)) {}

  // As CostSource::CrossingSeconds: on straight lines between no bytes and the amounts that were measured,
  // and beyond them. All prices are of the distance at which the first was asked for, which measures what the
  // file lacks of it.
  double Seconds(Crossing crossing, double bytes);

 private:
  using Points = std::map<int64_t, double>;  // bytes of each thread, seconds

  const Points& PointsOf(Crossing crossing);

  CostFile& file_;
  const CrossingMeasure measure_;
  std::optional<std::map<Crossing, Points>> points_;
};

}  // namespace tilesmith
