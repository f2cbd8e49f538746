// Which range of a tensor's values its 8 bits should cover, from what was seen of them.
//
// Memory is bounded however many inputs are seen: a first pass finds the ends, a second one counts values in
// bins between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/qdq/tensor_quantizer.h"

namespace tilesmith {

// What a first pass knows.
struct ValueEnds {
  ValueRange range;         // of the finite values, and 0
  int64_t values = 0;       // that are finite
  int64_t not_numbers = 0;  // the others: NaN, infinite
  void Add(std::span<const float> more);
  void Add(const ValueEnds& more);
};

// What a second pass knows: how many values lie where. Values outside of the range count at its ends, those
// that are not finite nowhere.
class ValueHistogram {
 public:
  static constexpr int kBins = 2048;

  explicit ValueHistogram(const ValueRange& range) : range_(range), counts_(kBins) {}
  void Add(std::span<const float> values);

  const ValueRange& range() const { return range_; }
  // How often values other than 0 occurred; 0 is always exact, whatever the scale.
  const std::vector<int64_t>& counts() const { return counts_; }
  int64_t zeros() const { return zeros_; }
  // Where bin `index` begins; that of kBins is where the last one ends.
  double Edge(int index) const { return range_.low + Width() * index; }
  double Width() const { return (range_.high - range_.low) / kBins; }

 private:
  ValueRange range_;
  std::vector<int64_t> counts_;
  int64_t zeros_ = 0;
};

enum class CalibrationMethod {
  kMinMax,      // all that was seen
  kPercentile,  // without the smallest and the largest values, as many of them
  kEntropy,  // whose quantised distribution says most about the true one: least Kullback-Leibler divergence
  kMse,      // with the least mean squared error
};
// "minmax", "percentile", "entropy", "mse", in that order.
const std::vector<std::string>& CalibrationMethodNames();
// Throws Error(kUsage) naming the text and the names.
CalibrationMethod ParseCalibrationMethod(std::string_view text);
std::string_view CalibrationMethodName(CalibrationMethod method);

struct CalibrationSettings {
  CalibrationMethod method = CalibrationMethod::kMinMax;
  double percentile = 99.99;  // of the values, that are within the range; more than 50, at most 100
};

// Within the histogram's range, at edges of its bins; with 0. The two searches look at ranges [max(low, -t),
// min(high, t)] for entropy (Migacz, "8-bit inference with TensorRT", 2017), and at every pair of ends on a
// grid for mse, where a value in the range is wrong by scale / sqrt(12) and one outside by its distance.
ValueRange CalibratedRange(const ValueHistogram& histogram, const CalibrationSettings& settings);

}  // namespace tilesmith
