// Two output rows of a stride-1 depthwise conv with fewer multiplications.
//
// With input rows d and kernel rows g, the two outputs of three taps
//     y0 = d0 g0 + d1 g1 + d2 g2          y1 = d1 g0 + d2 g1 + d3 g2
// need four products instead of six (F(2,3): Winograd, "Arithmetic Complexity of Computations", 1980):
//     p = (d0 - d2) g0    a = (d1 + d2) (g0 + g1 + g2) / 2    b = (d2 - d1) (g0 - g1 + g2) / 2    q = (d3 -
//     d1) g2 y0 = p + a + b      y1 = q + a - b
// and those of two taps need three instead of four. Longer kernels are cut into one piece of three if they
// are odd, and pieces of two. The columns of the kernel stay as they are. It pays where additions have units
// of their own beside the multipliers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tilesmith::depthwise {

// What a product is added to: y0 = kUpper + kBoth + kOpposed, y1 = kLower + kBoth - kOpposed.
enum class PairSum { kBoth, kOpposed, kUpper, kLower };

struct PairProduct {
  PairSum sum = PairSum::kBoth;
  // Input rows, from the first that y0 reads: first, or first + second, or first - second.
  int64_t first = 0;
  int64_t second = -1;
  bool subtract = false;
  // The weight: sum of coefficients[i] * kernel row tap + i.
  int64_t tap = 0;
  std::array<float, 3> coefficients = {};
};

// Products that may be computed together, one or two: the two read the same input rows or add to different
// sums.
using PairPass = std::vector<PairProduct>;

// All products, those of kBoth and kOpposed first. Precondition: kernel_rows >= 2.
std::vector<PairPass> PairPasses(int64_t kernel_rows);

// Products of three taps add up eight terms of their own and the neighbouring output instead of three.
constexpr double kPairErrorFactor = 8.0 / 3;

// Their number.
int64_t PairProducts(int64_t kernel_rows);

}  // namespace tilesmith::depthwise
