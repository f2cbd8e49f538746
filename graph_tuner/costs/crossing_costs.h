// What crossing from one thread to another costs on this machine, by bytes, each size measured once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph_tuner/costs/costs_file.h"

namespace tilesmith {

class CrossingCosts {
 public:
  // Seconds for these bytes a thread (Device::TimeCrossing).
  using Measure = std::function<double(int64_t bytes)>;

  // `file` must outlive this.
  CrossingCosts(CostFile& file, Measure measure) : file_(file), measure_(std::move(measure)) {}

  // On the line between the two of kSizes around the bytes; below the first it begins at 0, beyond the last
  // it goes on in proportion. What noise makes fall with the size is levelled. Does not fall with the bytes.
  double Seconds(int64_t bytes);

  static constexpr int64_t kSizes[] = {int64_t{4} << 10,   int64_t{16} << 10, int64_t{64} << 10,
                                       int64_t{256} << 10, int64_t{1} << 20,  int64_t{4} << 20};

 private:
  CostFile& file_;
  Measure measure_;
  std::vector<double> seconds_;  // by size, once asked
};

}  // namespace tilesmith
