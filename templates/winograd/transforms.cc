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

struct Points {
  std::vector<double> pairs, single;  // beside 0 and infinity
};

// F(m, taps) of stride 1.
Transforms Derive(const Points& given, int taps) {
  std::vector<double> points = {0};
  for (double p : given.pairs) {
    points.push_back(p);
    points.push_back(-p);
  }
  points.insert(points.end(), given.single.begin(), given.single.end());
  Transforms t;
  t.pairs = given.pairs;
  const int infinity = static_cast<int>(points.size());
  t.window = infinity + 1;
  t.tile = t.window - taps + 1;
  t.input = Eigen::MatrixXd::Zero(t.window, t.window);
  t.weights = Eigen::MatrixXd::Zero(t.window, taps);
  t.output = Eigen::MatrixXd::Zero(t.tile, t.window);
  for (int i = 0; i < infinity; ++i) {
    std::vector<double> others = points;
    others.erase(others.begin() + i);
    double product = 1;
    for (double other : others) product *= points[i] - other;
    SetRow(t.input, i, Polynomial(others));
    for (int k = 0; k < taps; ++k) t.weights(i, k) = std::pow(points[i], k) / product;
    for (int k = 0; k < t.tile; ++k) t.output(k, i) = std::pow(points[i], k);
  }
  SetRow(t.input, infinity, Polynomial(points));
  t.weights(infinity, taps - 1) = 1;
  t.output(t.tile - 1, infinity) = 1;
  return t;
}

}  // namespace

std::vector<int> Transforms::unpaired() const {
  std::vector<int> rows = {0};
  for (int row = 1 + 2 * static_cast<int>(pairs.size()); row < window; ++row) rows.push_back(row);
  return rows;
}

Transforms DeriveTransforms(const std::vector<double>& pairs) { return Derive({pairs, {}}, kTaps); }

Transforms DeriveStrided(const std::vector<double>& pairs, const std::vector<double>& single) {
  const Transforms even = Derive({pairs, single}, 2);
  Transforms t;
  t.stride = 2;
  t.pairs = pairs;
  t.tile = even.tile;
  t.window = WindowOf(t.tile, t.stride);
  t.input = Eigen::MatrixXd::Zero(t.window, t.window);
  t.weights = Eigen::MatrixXd::Zero(t.window, kTaps);
  t.output = Eigen::MatrixXd::Zero(t.tile, t.window);
  t.output.leftCols(even.window) = even.output;
  for (int i = 0; i < even.window; ++i) {
    for (Eigen::Index k = 0; k < even.window; ++k) t.input(i, 2 * k) = even.input(i, k);
    for (Eigen::Index k = 0; k < 2; ++k) t.weights(i, 2 * k) = even.weights(i, k);
  }
  for (int k = 0; k < t.tile; ++k) {
    const int row = even.window + k;
    t.input(row, 2 * k + 1) = t.weights(row, 1) = t.output(k, row) = 1;
  }
  return t;
}

const Transforms& TransformsOf(int64_t tile, int64_t stride) {
  // For 4, half the error of the textbook's 1, 2; a search over sixteenths finds nothing better than 3%. For
  // 6 the textbook's points are within 3% of the best such pairs.
  static const Transforms two = DeriveTransforms({1});
  static const Transforms four = DeriveTransforms({0.625, 1.5});
  static const Transforms six = DeriveTransforms({0.5, 1, 2});
  // For 4, the best of sixteenths: errors of 0.6 times those of 4 with stride 1.
  static const Transforms strided_two = DeriveStrided({}, {1});
  static const Transforms strided_three = DeriveStrided({1}, {});
  static const Transforms strided_four = DeriveStrided({0.75}, {1.625});
  if (stride == 2) {
    TILESMITH_CHECK(tile >= 2 && tile <= 4, "tile {}", tile);
    return tile == 2 ? strided_two : tile == 3 ? strided_three : strided_four;
  }
  TILESMITH_CHECK(stride == 1 && (tile == 2 || tile == 4 || tile == 6), "tile {} stride {}", tile, stride);
  return tile == 2 ? two : tile == 4 ? four : six;
}

MergedProducts MergeProducts(const Transforms& transforms) {
  MergedProducts merged;
  std::vector<int> columns;  // the first of each kind
  for (int i = 0; i < transforms.window; ++i) {
    const auto same = std::find_if(columns.begin(), columns.end(), [&](int column) {
      return transforms.output.col(column) == transforms.output.col(i);
    });
    merged.sum_of.push_back(static_cast<int>(same - columns.begin()));
    if (same == columns.end()) columns.push_back(i);
  }
  merged.output.tile = transforms.tile;
  merged.output.stride = transforms.stride;
  merged.output.pairs = transforms.pairs;
  merged.output.window = static_cast<int>(columns.size());
  merged.output.output = Eigen::MatrixXd::Zero(transforms.tile, merged.output.window);
  for (int i = 0; i < merged.output.window; ++i)
    merged.output.output.col(i) = transforms.output.col(columns[i]);
  return merged;
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
