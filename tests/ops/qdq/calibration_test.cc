// Ranges against plain definitions.
#include "ops/qdq/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "layouts/base/error.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

std::vector<float> Normals(int count, uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) {  // Box and Muller
    const float radius = std::sqrt(-2 * std::log(1 - random.Uniform(0, 1)));
    value = radius * std::cos(random.Uniform(0, 6.2831853F));
  }
  return values;
}

ValueHistogram HistogramOf(const std::vector<float>& values) {
  ValueEnds ends;
  ends.Add(values);
  ValueHistogram histogram(ends.range);
  histogram.Add(values);
  return histogram;
}

double SquaredError(const std::vector<float>& values, const ValueRange& range) {
  const TensorQuantizer quantizer = QuantizerFor(range, {});
  double error = 0;
  for (const float value : values) {
    const double restored =
        static_cast<double>(quantizer.scale) * (StoredValue(value, quantizer) - quantizer.zero_point);
    error += (restored - static_cast<double>(value)) * (restored - static_cast<double>(value));
  }
  return error;
}

TEST(ValueEndsTest, FindsTheEndsOfFiniteValuesAndZero) {
  ValueEnds ends;
  ends.Add(std::vector<float>{3, 7, NAN, INFINITY, -INFINITY});
  EXPECT_EQ(ends.range, (ValueRange{0, 7}));
  EXPECT_EQ(ends.values, 2);
  EXPECT_EQ(ends.not_numbers, 3);
  ends.Add(std::vector<float>{-2});
  ValueEnds more;
  more.Add(std::vector<float>{9});
  ends.Add(more);
  EXPECT_EQ(ends.range, (ValueRange{-2, 9}));
  EXPECT_EQ(ends.values, 4);
}

TEST(ValueHistogramTest, CountsEveryFiniteValueInItsBin) {
  const std::vector<float> values = Normals(10000, 3);
  const ValueHistogram histogram = HistogramOf(values);
  std::vector<int64_t> expected(ValueHistogram::kBins);
  for (const float value : values) {
    int bin = 0;
    while (bin + 1 < ValueHistogram::kBins && histogram.Edge(bin + 1) <= static_cast<double>(value)) ++bin;
    ++expected[bin];
  }
  int64_t different = 0;  // values at an edge, up to rounding
  for (int i = 0; i < ValueHistogram::kBins; ++i) different += std::abs(expected[i] - histogram.counts()[i]);
  EXPECT_LE(different, 4);
  ValueHistogram narrow({-1, 1});
  narrow.Add(std::vector<float>{-5, 5, 0, 0, NAN, INFINITY});
  EXPECT_EQ(narrow.counts().front(), 1);
  EXPECT_EQ(narrow.counts().back(), 1);
  EXPECT_EQ(narrow.zeros(), 2);
}

TEST(CalibratedRangeTest, MinMaxIsAll) {
  const ValueHistogram histogram = HistogramOf({-3, 5, 1});
  EXPECT_EQ(CalibratedRange(histogram, {}), (ValueRange{-3, 5}));
}

TEST(CalibratedRangeTest, PercentilesAreThoseOfTheSortedValues) {
  std::vector<float> values = Normals(100000, 8);
  values.push_back(60);  // far out
  const ValueHistogram histogram = HistogramOf(values);
  std::ranges::sort(values);
  for (const double percentile : {90.0, 99.0, 99.9}) {
    const ValueRange range =
        CalibratedRange(histogram, {.method = CalibrationMethod::kPercentile, .percentile = percentile});
    const auto beyond = static_cast<size_t>(static_cast<double>(values.size()) * (1 - percentile / 100) / 2);
    EXPECT_NEAR(range.low, values[beyond], histogram.Width()) << percentile;
    EXPECT_NEAR(range.high, values[values.size() - 1 - beyond], histogram.Width()) << percentile;
  }
  const ValueRange all =
      CalibratedRange(histogram, {.method = CalibrationMethod::kPercentile, .percentile = 100});
  EXPECT_EQ(all, histogram.range());
}

// As good as the best of a fine grid of ranges, by the error that quantising the values really makes.
TEST(CalibratedRangeTest, MseIsNearlyTheLeastThereIs) {
  for (const bool rectified : {false, true}) {
    std::vector<float> values = Normals(20000, 21);
    for (float& value : values) value = value * value * value;  // long tails
    if (rectified) {
      for (float& value : values) value = std::max(value, 0.0F);
    }
    const ValueHistogram histogram = HistogramOf(values);
    const ValueRange range = CalibratedRange(histogram, {.method = CalibrationMethod::kMse});
    const double found = SquaredError(values, range);
    EXPECT_LT(found, SquaredError(values, histogram.range()));
    double best = found;
    for (double low = 0.1; low <= 1; low += 0.05) {
      for (double high = 0.1; high <= 1; high += 0.05) {
        best = std::min(best,
                        SquaredError(values, {histogram.range().low * low, histogram.range().high * high}));
      }
    }
    EXPECT_LT(found, best * 1.03) << rectified;
  }
}

TEST(CalibratedRangeTest, EntropyLeavesOutWhatIsRareAndKeepsWhatIsEven) {
  std::vector<float> values = Normals(100000, 4);
  values.push_back(50);
  const ValueRange range = CalibratedRange(HistogramOf(values), {.method = CalibrationMethod::kEntropy});
  EXPECT_LT(range.high, 20);
  EXPECT_GT(range.high, 2);
  EXPECT_LT(range.low, -2);
  std::vector<float> even;
  for (int i = -1000; i <= 1000; ++i) even.push_back(static_cast<float>(i) / 100);
  const ValueRange all = CalibratedRange(HistogramOf(even), {.method = CalibrationMethod::kEntropy});
  EXPECT_LT(all.low, -9);
  EXPECT_GT(all.high, 9);
}

TEST(CalibratedRangeTest, RangesHoldZeroAndLieWithinWhatWasSeen) {
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<float> values = Normals(1 + trial * 7, trial);
    const float shift = static_cast<float>(trial % 5 - 2) * 3;
    for (float& value : values) value = trial % 7 == 0 ? shift : value + shift;
    const ValueHistogram histogram = HistogramOf(values);
    for (const std::string& name : CalibrationMethodNames()) {
      const ValueRange range = CalibratedRange(histogram, {.method = ParseCalibrationMethod(name)});
      SCOPED_TRACE(testing::Message() << name << ", trial " << trial);
      EXPECT_LE(range.low, 0);
      EXPECT_GE(range.high, 0);
      EXPECT_GE(range.low, histogram.range().low);
      EXPECT_LE(range.high, histogram.range().high);
    }
  }
}

TEST(CalibrationMethodTest, NamesAreThoseOfTheEnum) {
  for (const std::string& name : CalibrationMethodNames())
    EXPECT_EQ(CalibrationMethodName(ParseCalibrationMethod(name)), name);
  EXPECT_THROW(ParseCalibrationMethod("kl"), Error);
}

}  // namespace
}  // namespace tilesmith
