// The matrices of Winograd's minimal filtering, F(m x m, 3 x 3), derived from interpolation points.
//
//   Y = A^T [ (G g G^T) . (B^T d B) ] A        d: T x T input window, g: 3 x 3, Y: m x m outputs, T = m + 2
//
// With a stride of 2, T = 2 m + 1: the outer taps see even elements of the window only, as a filter of two
// taps and stride 1, F(m, 2); the middle tap sees the odd ones, each multiplied as it is. That takes 2 m + 1
// multiplications instead of 3 m, along either axis. (Huang et al., "DWM: A Decomposable Winograd Method for
// Convolution Acceleration", arXiv 2002.00552, splits kernels of larger strides so.)
//
// Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks" (2015); the points as in Barabasz et al.,
// "Error Analysis and Improving the Accuracy of Winograd Convolution" (2020): they decide how much rounding
// errors grow. Ours come in pairs +-p, so that the two rows of B^T of a pair are e + o and e - o, and are
// short binary fractions, so that A^T and B^T are exact in float.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

namespace tilesmith::winograd {

constexpr int kTaps = 3;

// Rows of B^T and G and columns of A^T: 0 belongs to the point 0, 1 + 2q and 2 + 2q to the points +p and -p
// of pair q; then come single points, infinity and, with stride 2, the odd elements of the window.
struct Transforms {
  int tile = 0;    // m
  int window = 0;  // T
  int stride = 1;
  std::vector<double> pairs;  // the p of each pair
  Eigen::MatrixXd input;      // B^T, T x T
  Eigen::MatrixXd weights;    // G, T x 3
  Eigen::MatrixXd output;     // A^T, m x T

  std::vector<int> unpaired() const;  // rows of B^T that belong to no pair, ascending
};

// T.
constexpr int WindowOf(int64_t tile, int64_t stride) { return static_cast<int>((tile - 1) * stride) + kTaps; }

// The matrices for the points 0, +-p for p in `pairs`, and infinity: tile = 2 * pairs.size().
Transforms DeriveTransforms(const std::vector<double>& pairs);
// Those of stride 2, with single points beside the pairs: tile = 1 + 2 * pairs.size() + single.size().
Transforms DeriveStrided(const std::vector<double>& pairs, const std::vector<double>& single);

// With the points this template uses. Precondition: tile is 2, 4 or 6; with stride 2, it is 2, 3 or 4.
const Transforms& TransformsOf(int64_t tile, int64_t stride = 1);

// Where columns of A^T are equal, as with stride 2, their products may be added up before the output
// transform, which is then that of fewer columns.
struct MergedProducts {
  Transforms output;        // window: the number of sums; output: A^T, m x window; no other matrices
  std::vector<int> sum_of;  // for each row of B^T: the column of output.output that its products belong to
};

MergedProducts MergeProducts(const Transforms& transforms);

// How many times larger than in a plain sum rounding errors come out, for data without structure: the root
// mean square over the products of an output of what the transforms multiply them with (squared: both axes).
// Original, along the lines of Barabasz et al., section 4.
double ErrorAmplification(const Transforms& transforms);

}  // namespace tilesmith::winograd
