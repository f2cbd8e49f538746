#include "templates/winograd/transforms.h"

#include <algorithm>
#include <cmath>

#include "layouts/base/check.h"

namespace tilesmith::winograd {
namespace {

// Coefficients, constant term first, of the product of (x - root) over `roots`.
std::vector<double> Polynomial(const std::vector<double>& roots) {
  std::vector<double> coefficients = {1};
  for (double root : roots) {
    coefficients.push_back(0);
    for (size_t i = coefficients.size() - 1; i > 0; --i) {
      coefficients[i] = coefficients[i - 1] - root * coefficients[i];
    }
    coefficients[0] *= -root;
  }
  return coefficients;
}

void SetRow(Eigen::MatrixXd& matrix, int row, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) matrix(row, static_cast<int>(i)) = values[i];
}

}  // namespace

Transforms DeriveTransforms(const std::vector<double>& pairs) {
  std::vector<double> points = {0};
  for (double p : pairs) {
    points.push_back(p);
    points.push_back(-p);
  }
  Transforms t;
  t.pairs = pairs;
  t.tile = static_cast<int>(points.size()) - 1;
  t.window = t.tile + kTaps - 1;
  const int infinity = t.window - 1;
  t.input = Eigen::MatrixXd::Zero(t.window, t.window);
  t.weights = Eigen::MatrixXd::Zero(t.window, kTaps);
  t.output = Eigen::MatrixXd::Zero(t.tile, t.window);
  for (int i = 0; i < infinity; ++i) {
    std::vector<double> others = points;
    others.erase(others.begin() + i);
    double product = 1;
    for (double other : others) product *= points[i] - other;
    SetRow(t.input, i, Polynomial(others));
    for (int k = 0; k < kTaps; ++k) t.weights(i, k) = std::pow(points[i], k) / product;
    for (int k = 0; k < t.tile; ++k) t.output(k, i) = std::pow(points[i], k);
  }
  SetRow(t.input, infinity, Polynomial(points));
  t.weights(infinity, kTaps - 1) = 1;
  t.output(t.tile - 1, infinity) = 1;
  return t;
}

const Transforms& TransformsOf(int tile) {
  // For 4, half the error of the textbook's 1, 2; a search over sixteenths finds nothing better than 3%. For
  // 6 the textbook's points are within 3% of the best such pairs.
  static const Transforms two = DeriveTransforms({1});
  static const Transforms four = DeriveTransforms({0.625, 1.5});
  static const Transforms six = DeriveTransforms({0.5, 1, 2});
  TILESMITH_CHECK(tile == 2 || tile == 4 || tile == 6, "tile {}", tile);
  return tile == 2 ? two : tile == 4 ? four : six;
}

double ErrorAmplification(const Transforms& t) {
  double most = 0;
  for (int k = 0; k < t.tile; ++k) {
    double sum = 0;
    for (int i = 0; i < t.window; ++i) {
      sum += t.output(k, i) * t.output(k, i) * t.weights.row(i).squaredNorm() * t.input.row(i).squaredNorm();
    }
    most = std::max(most, sum / kTaps);
  }
  return most;
}

}  // namespace tilesmith::winograd
