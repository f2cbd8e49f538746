#include "ops/qdq/calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/error.h"
#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

constexpr int kLevels = 256;

// The bin that 0 is in, or begins.
int ZeroBin(const ValueHistogram& histogram) {
  if (histogram.Width() == 0) return 0;
  const auto bin = static_cast<int>(-histogram.range().low / histogram.Width());
  return std::clamp(bin, 0, ValueHistogram::kBins - 1);
}

ValueRange RangeOfBins(const ValueHistogram& histogram, int begin, int end) {
  return {begin == 0 ? histogram.range().low : std::min(histogram.Edge(begin), 0.0),
          end == ValueHistogram::kBins ? histogram.range().high : std::max(histogram.Edge(end), 0.0)};
}

ValueRange PercentileRange(const ValueHistogram& histogram, double percentile) {
  std::vector<int64_t> counts = histogram.counts();
  counts[ZeroBin(histogram)] += histogram.zeros();
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  // As many at either end.
  const auto beyond = static_cast<int64_t>(static_cast<double>(total) * (1 - percentile / 100) / 2);
  int begin = 0, end = ValueHistogram::kBins;
  for (int64_t below = counts[0]; begin < end - 1 && below <= beyond; below += counts[++begin]) {
  }
  for (int64_t above = counts[end - 1]; end > begin + 1 && above <= beyond; above += counts[--end - 1]) {
  }
  return RangeOfBins(histogram, begin, end);
}

// How much is lost by taking the quantised distribution of the bins [begin, end) for the true one: the
// divergence of P, what is outside being counted at the ends, from Q, each of whose levels is spread evenly
// over those of its bins that hold anything.
double Divergence(const std::vector<int64_t>& counts, int begin, int end, int64_t total) {
  int64_t below = 0, above = 0;
  for (int i = 0; i < begin; ++i) below += counts[i];
  for (int i = end; i < std::ssize(counts); ++i) above += counts[i];
  const double inside = static_cast<double>(total - below - above);
  if (inside <= 0) return std::numeric_limits<double>::infinity();
  constexpr double kNothing = 1e-9;  // the share of Q where P has values and Q none
  double divergence = 0;
  for (int level = 0; level < kLevels; ++level) {
    const int first = begin + static_cast<int>(int64_t{end - begin} * level / kLevels);
    const int last = begin + static_cast<int>(int64_t{end - begin} * (level + 1) / kLevels);
    int64_t sum = 0, filled = 0;
    for (int i = first; i < last; ++i) sum += counts[i], filled += counts[i] > 0;
    for (int i = first; i < last; ++i) {
      const int64_t outside = (i == begin ? below : 0) + (i == end - 1 ? above : 0);
      const double p = static_cast<double>(counts[i] + outside) / static_cast<double>(total);
      if (p == 0) continue;
      const double q = counts[i] > 0 ? static_cast<double>(sum) / static_cast<double>(filled) / inside : 0;
      divergence += p * std::log(p / std::max(q, kNothing));
    }
  }
  return divergence;
}

ValueRange EntropyRange(const ValueHistogram& histogram) {
  const std::vector<int64_t>& counts = histogram.counts();
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  if (total == 0) return histogram.range();
  constexpr int kSteps = 128;
  const int zero = ZeroBin(histogram), bins = ValueHistogram::kBins;
  const int longest = std::max(bins - zero, zero);
  ValueRange best = histogram.range();
  double least = std::numeric_limits<double>::infinity();
  for (int step = 1; step <= kSteps; ++step) {
    const int reach = static_cast<int>(CeilDiv(int64_t{longest} * step, kSteps)) + 1;
    const int begin = std::max(zero - reach, 0), end = std::min(zero + reach, bins);
    if (end - begin < kLevels) continue;  // each level needs a bin
    const double divergence = Divergence(counts, begin, end, total);
    if (divergence <= least) least = divergence, best = RangeOfBins(histogram, begin, end);
  }
  return best;
}

// Sums over the bins before each edge: of counts, of values and of their squares.
struct Moments {
  std::vector<double> counts, values, squares;

  explicit Moments(const ValueHistogram& histogram) : counts{0}, values{0}, squares{0} {
    for (int i = 0; i < ValueHistogram::kBins; ++i) {
      const auto count = static_cast<double>(histogram.counts()[i]);
      const double center = (histogram.Edge(i) + histogram.Edge(i + 1)) / 2;
      counts.push_back(counts.back() + count);
      values.push_back(values.back() + count * center);
      squares.push_back(squares.back() + count * center * center);
    }
  }
  // The sum of the squared distances to `point` of what lies between two edges.
  double Distances(int begin, int end, double point) const {
    return squares[end] - squares[begin] - 2 * point * (values[end] - values[begin]) +
           point * point * (counts[end] - counts[begin]);
  }
};

ValueRange MseRange(const ValueHistogram& histogram) {
  const Moments moments(histogram);
  constexpr int kBins = ValueHistogram::kBins, kStep = 8;
  const int zero = ZeroBin(histogram);
  ValueRange best = histogram.range();
  double least = std::numeric_limits<double>::infinity();
  for (int begin = 0; begin <= zero; begin += kStep) {
    for (int end = kBins; end > zero; end -= kStep) {
      const ValueRange range = RangeOfBins(histogram, begin, end);
      const double scale = (range.high - range.low) / (kLevels - 1);
      const double error = (moments.counts[end] - moments.counts[begin]) * scale * scale / 12 +
                           moments.Distances(0, begin, range.low) + moments.Distances(end, kBins, range.high);
      if (error < least) least = error, best = range;
    }
  }
  return best;
}

}  // namespace

void ValueEnds::Add(std::span<const float> more) {
  double low = range.low, high = range.high;
  int64_t finite = 0;
  for (const float value : more) {
    if (!std::isfinite(value)) continue;
    ++finite;
    low = std::min<double>(low, value);
    high = std::max<double>(high, value);
  }
  range = {low, high};
  values += finite;
  not_numbers += std::ssize(more) - finite;
}

void ValueEnds::Add(const ValueEnds& more) {
  range = {std::min(range.low, more.range.low), std::max(range.high, more.range.high)};
  values += more.values;
  not_numbers += more.not_numbers;
}

void ValueHistogram::Add(std::span<const float> values) {
  const double width = Width();
  const double per_unit = width > 0 ? 1 / width : 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    if (value == 0) {
      ++zeros_;
      continue;
    }
    const double bin = (static_cast<double>(value) - range_.low) * per_unit;
    ++counts_[static_cast<size_t>(std::clamp<double>(bin, 0, kBins - 1))];
  }
}

const std::vector<std::string>& CalibrationMethodNames() {
  static const std::vector<std::string> names = {"minmax", "percentile", "entropy", "mse"};
  return names;
}

CalibrationMethod ParseCalibrationMethod(std::string_view text) {
  const std::vector<std::string>& names = CalibrationMethodNames();
  const auto found = std::ranges::find(names, text);
  if (found == names.end()) {
    throw Error(ErrorCode::kUsage, fmt::format("the method of calibration must be one of {}, got {}",
                                               fmt::join(names, ", "), text));
  }
  return static_cast<CalibrationMethod>(found - names.begin());
}

std::string_view CalibrationMethodName(CalibrationMethod method) {
  return CalibrationMethodNames()[static_cast<size_t>(method)];
}

ValueRange CalibratedRange(const ValueHistogram& histogram, const CalibrationSettings& settings) {
  if (histogram.Width() == 0) return histogram.range();
  switch (settings.method) {
    case CalibrationMethod::kMinMax:
      break;
    case CalibrationMethod::kPercentile:
      return PercentileRange(histogram, settings.percentile);
    case CalibrationMethod::kEntropy:
      return EntropyRange(histogram);
    case CalibrationMethod::kMse:
      return MseRange(histogram);
  }
  return histogram.range();
}

}  // namespace tilesmith
