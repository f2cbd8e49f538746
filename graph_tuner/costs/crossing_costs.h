// The prices of crossing (crossing_prices.h), measured once for each distance of the cores.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph_tuner/costs/costs_file.h"
#include "graph_tuner/costs/crossing_prices.h"
#include "layouts/measure/crossing.h"
#include "templates/device/device.h"

namespace tilesmith {

struct CrossingMeasure {
  // A barrier of the team now, in seconds. Distances are told apart to powers of two of nanoseconds.
  std::function<double()> barrier_seconds;
  std::function<CrossingTiming(int64_t bytes)> time;  // empty: there is nothing to measure
};

// The device's team of threads; nothing where it has one thread, or memory of its own.
CrossingMeasure CrossingMeasureOf(const Device& device);

class CrossingCosts {
 public:
  // `file` is a network's, `machine` all networks' on this machine: what either has of crossings counts, and
  // is added to the network's; what is measured is added to both. They must outlive this.
  CrossingCosts(CostFile& file, CostFile& machine, CrossingMeasure measure)
      : file_(file), machine_(machine), measure_(std::move(measure)) {}

  // Measures what the file lacks of the distance that the cores have now.
  void SeeDistance();
  // Of all distances in the file, nearest first. Where it has none the first call measures.
  const CrossingPrices& Prices();

 private:
  void TakeFromMachine();
  CrossingPrices PricesInFile() const;

  CostFile& file_;
  CostFile& machine_;
  const CrossingMeasure measure_;
  CrossingPrices prices_;
  bool taken_ = false;  // from the machine's file
  bool read_ = false;   // from the network's
};

}  // namespace tilesmith
