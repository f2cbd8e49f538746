// The fused multiply-add without instructions for it, against std::fma.
#ifdef __SSE2__
#define TILESMITH_ISA portable_fused
#define TILESMITH_FUSED 1
#include "layouts/base/simd.h"
#endif

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/random.h"

namespace tilesmith {
namespace {

#ifdef __SSE2__
using portable_fused::Vector;

bool Same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// x scaled to [2^(exponent - 1), 2^exponent), or as it is where it is no finite number.
float NearTo(float x, int exponent) {
  int own = 0;
  return std::ldexp(std::frexp(x, &own), exponent);
}

void ExpectFused(Vector<4> a, Vector<4> b, Vector<4> c) {
  const Vector<4> got = portable_fused::MultiplyAdd(a, b, c);
  for (int lane = 0; lane < 4; ++lane) {
    const float want = std::fma(a[lane], b[lane], c[lane]);
    ASSERT_TRUE(Same(got[lane], want))
        << a[lane] << " * " << b[lane] << " + " << c[lane] << " is " << want << ", not " << got[lane];
  }
}

TEST(MultiplyAdd, IsRoundedOnceOnAnyBits) {
  constexpr uint64_t kSeed = 68;
  TestRandom random(kSeed);
  for (int i = 0; i < 2'500'000; ++i) {
    Vector<4> v[3];
    for (Vector<4>& each : v) {
      for (int lane = 0; lane < 4; ++lane)
        each[lane] = std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
    }
    // Of random bits one term is nearly always lost. Here a sum is near a product, above, below or against
    // it, and in every fourth case among the denormal numbers.
    if (i % 2 == 0) {
      for (int lane = 0; lane < 4; ++lane) {
        if (i % 8 == 0) v[0][lane] = NearTo(v[0][lane], -70), v[1][lane] = NearTo(v[1][lane], -70);
        const float product = v[0][lane] * v[1][lane];
        v[2][lane] = std::ldexp(random.Integer(0, 1) == 0 ? product : -product,
                                static_cast<int>(random.Integer(-26, 26)));
      }
    }
    ExpectFused(v[0], v[1], v[2]);
    if (HasFatalFailure()) return;
  }
}

TEST(MultiplyAdd, TakesSpecialValues) {
  using Limits = std::numeric_limits<float>;
  const float values[] = {0.0f,
                          Limits::denorm_min(),
                          Limits::min(),
                          0x1.fffffep-127f,
                          1.0f,
                          1 + Limits::epsilon(),
                          1.5f,
                          16777215.0f,
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN()};
  for (const float a : values) {
    for (const float b : values) {
      for (const float c : values) {
        ExpectFused(Vector<4>{a, -a, a, -a}, Vector<4>{b, b, b, b}, Vector<4>{c, c, -c, -c});
        EXPECT_TRUE(Same(portable_fused::MultiplyAdd(a, b, -c), std::fma(a, b, -c)));
      }
    }
  }
}
#endif

}  // namespace
}  // namespace tilesmith
