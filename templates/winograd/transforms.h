// The matrices of Winograd's minimal filtering, F(m x m, 3 x 3), derived from interpolation points.
//
//   Y = A^T [ (G g G^T) . (B^T d B) ] A        d: T x T input window, g: 3 x 3, Y: m x m outputs, T = m + 2
//
// Lavin & Gray, "Fast Algorithms for Convolutional Neural Networks" (2015); the points as in Barabasz et al.,
// "Error Analysis and Improving the Accuracy of Winograd Convolution" (2020): they decide how much rounding
// errors grow. Ours come in pairs +-p, so that the two rows of B^T of a pair are e + o and e - o, and are
// short binary fractions, so that A^T and B^T are exact in float.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace tilesmith::winograd {

constexpr int kTaps = 3;

// Rows of B^T and G and columns of A^T: 0 belongs to the point 0, 1 + 2q and 2 + 2q to the points +p and -p
// of pair q, the last to infinity.
struct Transforms {
  int tile = 0;               // m
  int window = 0;             // T
  std::vector<double> pairs;  // the p of each pair
  Eigen::MatrixXd input;      // B^T, T x T
  Eigen::MatrixXd weights;    // G, T x 3
  Eigen::MatrixXd output;     // A^T, m x T
};

// The matrices for the points 0, +-p for p in `pairs`, and infinity: tile = 2 * pairs.size().
Transforms DeriveTransforms(const std::vector<double>& pairs);

// With the points this template uses. Precondition: tile is 2, 4 or 6.
const Transforms& TransformsOf(int tile);

// How many times larger than in a plain sum rounding errors come out, for data without structure: the root
// mean square over the products of an output of what the transforms multiply them with (squared: both axes).
// Original, along the lines of Barabasz et al., section 4.
double ErrorAmplification(const Transforms& transforms);

}  // namespace tilesmith::winograd
