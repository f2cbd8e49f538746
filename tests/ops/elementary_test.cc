// Our functions in double against the C library's, which need not be the same bits on every machine.
#include "ops/base/elementary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>

#include "ops/base/order.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

constexpr uint64_t kSeed = 68;

using OfDouble = double (*)(double);
struct FunctionPair {
  const char* name;
  OfDouble ours, theirs;
};
constexpr FunctionPair kPairs[] = {
    {"exp", elementary::Exp, std::exp},       {"expm1", elementary::Expm1, std::expm1},
    {"log", elementary::Log, std::log},       {"log1p", elementary::Log1p, std::log1p},
    {"sin", elementary::Sin, std::sin},       {"cos", elementary::Cos, std::cos},
    {"tan", elementary::Tan, std::tan},       {"asin", elementary::Asin, std::asin},
    {"acos", elementary::Acos, std::acos},    {"atan", elementary::Atan, std::atan},
    {"sinh", elementary::Sinh, std::sinh},    {"cosh", elementary::Cosh, std::cosh},
    {"tanh", elementary::Tanh, std::tanh},    {"asinh", elementary::Asinh, std::asinh},
    {"acosh", elementary::Acosh, std::acosh}, {"atanh", elementary::Atanh, std::atanh},
    {"erf", elementary::Erf, std::erf},       {"erfc", elementary::Erfc, std::erfc},
};

// Up to rounding to float, that is.
void ExpectNear(double got, double want, const std::string& what) {
  if (std::isnan(want) || std::isinf(want) || want == 0) {
    ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
        << what << " is " << want << ", not " << got;
    return;
  }
  ASSERT_LE(std::abs(got - want), 1e-13 * std::abs(want) + 1e-300)
      << what << " is " << want << ", not " << got;
}

TEST(Elementary, IsNearTheLibrarysOnFloats) {
  TestRandom random(kSeed);
  for (const FunctionPair& pair : kPairs) {
    for (int i = 0; i < 20000; ++i) {
      float x = 0;
      if (i % 4 == 0) x = std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
      if (i % 4 == 1) x = random.Uniform(-2, 2);
      if (i % 4 == 2) x = random.Uniform(-30, 30);
      if (i % 4 == 3) x = random.Uniform(-1e5f, 1e5f);
      ExpectNear(pair.ours(x), pair.theirs(x), std::string(pair.name) + " of " + std::to_string(x));
      if (HasFatalFailure()) return;
    }
    for (const float x :
         {0.0f, 1.0f, -1.0f, 0.5f, INFINITY, -INFINITY, NAN, 1e-30f, -1e-30f, 3.4e38f, -3.4e38f}) {
      ExpectNear(pair.ours(x), pair.theirs(x), std::string(pair.name) + " of " + std::to_string(x));
    }
  }
}

TEST(Order, ThePageIsOfTheVersion) {
  std::ifstream file(std::string(TILESMITH_SOURCE_DIR) + "/ops/order.md");
  std::string title, blank, version;
  std::getline(file, title) && std::getline(file, blank) && std::getline(file, version);
  EXPECT_EQ(version.rfind("Version " + std::to_string(kOrderVersion) + " ", 0), 0u) << version;
}

TEST(Elementary, PowersAreNearTheLibrarys) {
  TestRandom random(kSeed + 1);
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 2.0f, -3.0f, INFINITY, -INFINITY, NAN, 1e30f};
  const auto expect = [](float x, float y) {
    ExpectNear(elementary::Pow(x, y), std::pow(double{x}, double{y}),
               std::to_string(x) + " to the " + std::to_string(y));
  };
  for (const float x : special)
    for (const float y : special) expect(x, y);
  for (int i = 0; i < 20000 && !::testing::Test::HasFatalFailure(); ++i) {
    expect(random.Uniform(0, 10), random.Uniform(-20, 20));
    expect(random.Uniform(-10, 10), static_cast<float>(random.Integer(-20, 20)));
  }
  EXPECT_EQ(elementary::Pow(10, 3), 1000);
}

}  // namespace
}  // namespace tilesmith
