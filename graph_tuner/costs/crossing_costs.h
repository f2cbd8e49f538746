// What it costs that bytes change hands between threads, at each distance that a machine's cores were seen
// at: it is measured once for each, since hosts move virtual cores (layouts/measure/core_placement.h), and a
// plan has to be good wherever they are. Source: original.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph_tuner/costs/costs_file.h"
#include "layouts/measure/core_placement.h"
#include "layouts/measure/crossing.h"
#include "templates/device/device.h"

namespace tilesmith {

// A plain value; without distances nothing has a price.
class CrossingPrices {
 public:
  using Points = std::map<int64_t, double>;  // bytes of each thread, seconds
  // No points: no price. Seconds do not fall with bytes.
  struct Distance {
    double barrier_seconds = 0;  // of the team (CorePlacement)
    Points read, write, weights;
    const Points& Of(Crossing crossing) const {
      return crossing == Crossing::kRead ? read : crossing == Crossing::kWrite ? write : weights;
    }
  };

  CrossingPrices() = default;
  // The prices of every distance count alike.
  explicit CrossingPrices(std::vector<Distance> distances) : distances_(std::move(distances)) {}

  const std::vector<Distance>& distances() const { return distances_; }
  // How much longer a thread takes for `bytes` bytes of what it reads, or writes over, when they are another
  // thread's, or of weights that others read as well (MeasureCrossing), in the mean of the distances: for
  // each on straight lines between no bytes and the amounts that were measured, and beyond them. 0 for none,
  // and not less for more.
  double Seconds(Crossing crossing, double bytes) const;
  // The prices of the distance nearest to cores placed like that; all of them if `placement` is unknown.
  CrossingPrices At(const CorePlacement& placement) const;
  // The prices of the nearest distance at which the cores were seen.
  CrossingPrices Nearest() const;

 private:
  std::vector<Distance> distances_;
};

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
  // The prices of all distances in the file, nearest first. Where it has none the first call measures.
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
