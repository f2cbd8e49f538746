#include "graph_tuner/check/output_errors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilesmith {
namespace {

Tensor Rows(std::vector<float> values, const Shape& shape) {
  Tensor tensor(shape);
  std::copy(values.begin(), values.end(), tensor.floats());
  return tensor;
}

std::vector<Tensor> One(Tensor tensor) {
  std::vector<Tensor> tensors;
  tensors.push_back(std::move(tensor));
  return tensors;
}

TEST(OutputSumsTest, ErrorsAreOfAllSamplesTogether) {
  OutputSums sums;
  sums.Add(One(Rows({3, 4}, {1, 2})), One(Rows({3, 4}, {1, 2})));
  EXPECT_EQ(sums.Difference().error, 0);
  sums.Add(One(Rows({1, 0}, {1, 2})), One(Rows({0, 0}, {1, 2})));
  EXPECT_DOUBLE_EQ(sums.Difference().error, 1.0 / 5);
  EXPECT_EQ(sums.Difference().rows, 2);
  EXPECT_EQ(sums.Difference().agreeing, 2);
  sums.Add(One(Rows({7, 8}, {1, 2})), One(Rows({8, 7}, {1, 2})));
  EXPECT_EQ(sums.Difference().rows, 3);
  EXPECT_EQ(sums.Difference().agreeing, 2);
}

TEST(OutputSumsTest, TheWorstOutputCounts) {
  OutputSums sums;
  std::vector<Tensor> values, expected;
  for (const float value : {1.0f, 1.5f}) {
    values.push_back(Rows({value}, {1, 1}));
    expected.push_back(Rows({1}, {1, 1}));
  }
  sums.Add(values, expected);
  EXPECT_DOUBLE_EQ(sums.Difference().error, 0.5);
  EXPECT_EQ(sums.Difference().rows, 0);  // one class is none
}

TEST(OutputSumsTest, WhatIsNoNumberIsInfinitelyFar) {
  OutputSums sums;
  sums.Add(One(Rows({std::nanf(""), 1}, {2})), One(Rows({1, 1}, {2})));
  EXPECT_EQ(sums.Difference().error, std::numeric_limits<double>::infinity());
  // What is none in f32 either says nothing.
  OutputSums other;
  other.Add(One(Rows({5, 1}, {2})), One(Rows({std::nanf(""), 1}, {2})));
  EXPECT_EQ(other.Difference().error, 0);
}

TEST(OutputSumsTest, RowsOfAClassifierMayHavePixels) {
  int64_t rows = 0, agreeing = 0;
  CountAgreement(Rows({1, 2, 3, 0}, {2, 2, 1, 1}), Rows({0, 2, 0, 3}, {2, 2, 1, 1}), &rows, &agreeing);
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(agreeing, 1);
  CountAgreement(Rows({1, 2, 3, 0}, {1, 2, 2, 1}), Rows({0, 2, 0, 3}, {1, 2, 2, 1}), &rows, &agreeing);
  EXPECT_EQ(rows, 2);  // an image is no row of classes
}

}  // namespace
}  // namespace tilesmith
