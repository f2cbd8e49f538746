#include "ops/base/elementary.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tilesmith::elementary {
namespace {

constexpr double kHighLn2 = 0x1.62e42feep-1, kLowLn2 = 0x1.a39ef35793c76p-33;
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kLowHalfPi = 0x1.1a62633145c07p-54;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A quarter turn holds what is left: x = quarters * pi / 2 + rest.
struct Reduced {
  int64_t quarters;
  double rest;
};

// Of a float of at least 8, by the 96 bits of 4 / pi that matter to it.
Reduced ReduceLarge(float x) {
  static constexpr uint32_t kFourOverPi[24] = {
      0xa2,       0xa2f9,     0xa2f983,   0xa2f9836e, 0xf9836e4e, 0x836e4e44, 0x6e4e4415, 0x4e441529,
      0x441529fc, 0x1529fc27, 0x29fc2757, 0xfc2757d1, 0x2757d1f5, 0x57d1f534, 0xd1f534dd, 0xf534ddc0,
      0x34ddc0db, 0xddc0db62, 0xc0db6295, 0xdb629599, 0x6295993c, 0x95993c43, 0x993c4390, 0x3c439041};
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t* const parts = &kFourOverPi[bits >> 26 & 15];
  const uint32_t mantissa = ((bits & 0xffffff) | 0x800000) << (bits >> 23 & 7);
  const uint64_t low = uint64_t{mantissa} * parts[8];
  uint64_t turn = (low >> 32 | uint64_t{mantissa * parts[0]} << 32) + uint64_t{mantissa} * parts[4];
  const uint64_t quarters = (turn + (uint64_t{1} << 61)) >> 62;
  turn -= quarters << 62;
  const double rest = static_cast<double>(static_cast<int64_t>(turn)) * (kHalfPi * 0x1p-62);
  const bool negative = bits >> 31 != 0;
  return {negative ? -static_cast<int64_t>(quarters) : static_cast<int64_t>(quarters),
          negative ? -rest : rest};
}

// Precondition: x is finite.
Reduced Reduce(double x) {
  if (std::abs(x) > 1e5) return ReduceLarge(static_cast<float>(x));
  // Of the parts of pi / 2 the first two have 33 bits, so that their products are exact.
  const double n = std::floor(x * (1 / kHalfPi) + 0.5);
  const double rest = ((x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2e037073p-69;
  return {static_cast<int64_t>(n), rest};
}

// first + x second + x^2 third ...
template <int kCount>
double Series(double x, const double (&c)[kCount]) {
  double sum = c[kCount - 1];
  for (int i = kCount - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

double SinOfRest(double x) {
  static constexpr double kSeries[] = {
      -1 / 6.0,        1 / 120.0,        -1 / 5040.0,          1 / 362880.0,
      -1 / 39916800.0, 1 / 6227020800.0, -1 / 1307674368000.0, 1 / 355687428096000.0};
  return x + x * (x * x) * Series(x * x, kSeries);
}
double CosOfRest(double x) {
  static constexpr double kSeries[] = {1,
                                       -1 / 2.0,
                                       1 / 24.0,
                                       -1 / 720.0,
                                       1 / 40320.0,
                                       -1 / 3628800.0,
                                       1 / 479001600.0,
                                       -1 / 87178291200.0,
                                       1 / 20922789888000.0};
  return Series(x * x, kSeries);
}

// sin(x + quarters * pi / 2)
double SinOfQuarters(Reduced x, int64_t more) {
  const int64_t quarters = x.quarters + more;
  const double value = (quarters & 1) == 0 ? SinOfRest(x.rest) : CosOfRest(x.rest);
  return (quarters & 2) == 0 ? value : -value;
}

// (e^x - 1 - x) / x^2 for |x| < 0.36
double ExpSeries(double x) {
  static constexpr double kSeries[] = {1 / 2.0,       1 / 6.0,        1 / 24.0,        1 / 120.0,
                                       1 / 720.0,     1 / 5040.0,     1 / 40320.0,     1 / 362880.0,
                                       1 / 3628800.0, 1 / 39916800.0, 1 / 479001600.0, 1 / 6227020800.0};
  return Series(x, kSeries);
}

// Whether y is an integer, and odd.
bool IsInteger(double y) { return std::floor(y) == y; }
bool IsOdd(double y) { return std::abs(y) < 0x1p53 && std::floor(y / 2) * 2 != y; }

// e^(x^2) erf(x) sqrt(pi) / (2 x), whose terms are all positive.
double ErfSeries(double x) {
  const double square = x * x;
  double term = 1, sum = 1;
  for (double n = 3; term > 1e-17 * sum; n += 2) {
    term = term * (2 * square) / n;
    sum += term;
  }
  return sum;
}
constexpr double kTwoOverRootPi = 0x1.20dd750429b6dp+0;

}  // namespace

double Exp(double x) {
  if (!(std::abs(x) < 745.2)) return x > 0 ? kInfinity : x < 0 ? 0 : x;
  const double n = std::floor(x * 0x1.71547652b82fep+0 + 0.5), r = (x - n * kHighLn2) - n * kLowLn2;
  return std::ldexp(1 + (r + r * r * ExpSeries(r)), static_cast<int>(n));
}

double Expm1(double x) { return std::abs(x) < 0.36 ? x + x * x * ExpSeries(x) : Exp(x) - 1; }

double Log(double x) {
  if (!(x > 0) || x == kInfinity)
    return x == 0 ? -kInfinity : x > 0 ? x : std::numeric_limits<double>::quiet_NaN();
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) m *= 2, --exponent;
  // log m = 2 artanh(s)
  static constexpr double kSeries[] = {1 / 3.0,  1 / 5.0,  1 / 7.0,  1 / 9.0,  1 / 11.0,
                                       1 / 13.0, 1 / 15.0, 1 / 17.0, 1 / 19.0, 1 / 21.0};
  const double s = (m - 1) / (m + 1), z = s * s;
  return exponent * kHighLn2 + (exponent * kLowLn2 + (2 * s + 2 * s * z * Series(z, kSeries)));
}

double Log1p(double x) {
  const double sum = 1 + x;
  if (sum == 1 || sum == kInfinity) return x;
  return sum > 0 ? Log(sum) + (x - (sum - 1)) / sum : Log(sum);
}

double Pow(double x, double y) {
  // Exact, and so alike everywhere.
  if (x == 0 || x == 1 || y == 0 || !std::isfinite(x) || !std::isfinite(y)) return std::pow(x, y);
  if (IsInteger(y) && std::abs(y) <= 1024) {
    double power = 1, square = x;
    for (auto n = static_cast<int64_t>(std::abs(y)); n > 0; n /= 2, square *= square)
      if (n % 2 != 0) power *= square;
    return y < 0 ? 1 / power : power;
  }
  if (x > 0 && (y == 0.5 || y == 0.75)) return std::sqrt(x) * (y == 0.5 ? 1 : std::sqrt(std::sqrt(x)));
  if (x < 0 && !IsInteger(y)) return std::numeric_limits<double>::quiet_NaN();
  const double power = Exp(y * Log(std::abs(x)));
  return x < 0 && IsOdd(y) ? -power : power;
}

double Sin(double x) { return std::isfinite(x) ? SinOfQuarters(Reduce(x), 0) : x - x; }
double Cos(double x) { return std::isfinite(x) ? SinOfQuarters(Reduce(x), 1) : x - x; }
double Tan(double x) { return Sin(x) / Cos(x); }

double Atan(double x) {
  static constexpr double kSeries[] = {-1 / 3.0,  1 / 5.0,  -1 / 7.0,  1 / 9.0,  -1 / 11.0, 1 / 13.0,
                                       -1 / 15.0, 1 / 17.0, -1 / 19.0, 1 / 21.0, -1 / 23.0, 1 / 25.0};
  const double size = std::abs(x);
  const bool inverse = size > 1;
  // Two halvings of the angle leave a tangent below 0.2.
  double t = inverse ? 1 / size : size;
  for (int i = 0; i < 2; ++i) t = t / (1 + std::sqrt(1 + t * t));
  const double angle = 4 * (t + t * (t * t) * Series(t * t, kSeries));
  return std::copysign(inverse ? kHalfPi - (angle - kLowHalfPi) : angle, x);
}
double Asin(double x) { return Atan(x / std::sqrt((1 - x) * (1 + x))); }
double Acos(double x) { return 2 * Atan(std::sqrt((1 - x) / (1 + x))); }

double Sinh(double x) {
  const double e = Expm1(std::abs(x));
  return std::copysign(e == kInfinity ? e : (e + e / (e + 1)) / 2, x);
}
double Cosh(double x) {
  const double e = Exp(std::abs(x));
  return (e + 1 / e) / 2;
}
double Tanh(double x) {
  const double size = std::abs(x), e = Expm1(2 * size);
  return std::copysign(size > 20 ? 1 : e / (e + 2), x);
}
double Asinh(double x) {
  const double a = std::abs(x);
  return std::copysign(
      a > 1e8 ? Log(a) + (kHighLn2 + kLowLn2) : Log1p(a + a * a / (1 + std::sqrt(a * a + 1))), x);
}
double Acosh(double x) {
  const double t = x - 1;
  return x > 1e8 ? Log(x) + (kHighLn2 + kLowLn2) : Log1p(t + std::sqrt(t) * std::sqrt(2 + t));
}
double Atanh(double x) {
  const double a = std::abs(x);
  return std::copysign(Log1p(2 * a / (1 - a)) / 2, x);
}

double Erf(double x) {
  if (std::abs(x) >= 6 || std::isnan(x)) return std::isnan(x) ? x : std::copysign(1.0, x);
  return x * kTwoOverRootPi * (Exp(-x * x) * ErfSeries(x));
}

double Erfc(double x) {
  if (!(x > 1)) return 1 - Erf(x);
  if (x > 28) return 0;
  // The continued fraction, from so far behind that its end does not matter.
  double fraction = x;
  for (int k = 300; k > 0; --k) fraction = x + k / 2.0 / fraction;
  return Exp(-x * x) * (kTwoOverRootPi / 2) / fraction;
}

}  // namespace tilesmith::elementary
