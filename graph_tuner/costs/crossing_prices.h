// What it costs that bytes change hands between threads, at each distance that a machine's cores were seen
// at: hosts move virtual cores (layouts/measure/core_placement.h), and a plan has to be good wherever they
// are. Source: original.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "layouts/measure/core_placement.h"
#include "layouts/measure/crossing.h"

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
  // Those of every distance count alike.
  explicit CrossingPrices(std::vector<Distance> distances) : distances_(std::move(distances)) {}

  const std::vector<Distance>& distances() const { return distances_; }
  // How much longer a thread takes for `bytes` bytes of what it reads, or writes over, when they are another
  // thread's, or of weights that others read as well (MeasureCrossing), in the mean of the distances: for
  // each on straight lines between no bytes and the amounts that were measured, and beyond them. 0 for none,
  // and not less for more.
  double Seconds(Crossing crossing, double bytes) const;
  // Of cores placed like that: those of the nearest distance. All of them if `placement` is unknown.
  CrossingPrices At(const CorePlacement& placement) const;
  // Of the nearest that the cores were seen.
  CrossingPrices Nearest() const;

 private:
  std::vector<Distance> distances_;
};

}  // namespace tilesmith
