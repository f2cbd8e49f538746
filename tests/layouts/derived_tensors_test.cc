#include "layouts/derived_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tilesmith {
namespace {

TensorPtr FilledTensor(int64_t floats, float value) {
  auto tensor = std::make_shared<Tensor>(Shape{floats});
  std::fill_n(tensor->floats(), floats, value);
  return tensor;
}

constexpr int64_t kLarge = 1 << 14, kSmall = 8;

class DerivedTensorsTest : public testing::Test {
 protected:
  // source + number, which counts how often it is made.
  TensorPtr Plus(const TensorPtr& source, float number) {
    Derivation derivation("plus");
    derivation.Add(source).Add(std::vector<float>{number});
    return Derived(std::move(derivation), [&] {
      ++made_;
      return FilledTensor(source->size(), source->floats()[0] + number);
    });
  }

  DerivedTensors kept_;
  int made_ = 0;
};

TEST_F(DerivedTensorsTest, AreMadeOncePerPreparationsInARow) {
  const TensorPtr large = FilledTensor(kLarge, 1);
  TensorPtr first;
  for (int i = 0; i < 3; ++i) {
    const DerivedTensors::Preparation preparation(kept_);
    const TensorPtr sum = Plus(large, 2);
    EXPECT_EQ(sum->floats()[kLarge - 1], 3);
    if (i == 0) first = sum;
    EXPECT_EQ(sum, first);
  }
  EXPECT_EQ(made_, 1);
}

TEST_F(DerivedTensorsTest, AreNotKeptOutsideOfPreparations) {
  const TensorPtr large = FilledTensor(kLarge, 1);
  EXPECT_NE(Plus(large, 2), Plus(large, 2));
  EXPECT_EQ(made_, 2);
}

TEST_F(DerivedTensorsTest, DependOnEveryPartOfTheKey) {
  const DerivedTensors::Preparation preparation(kept_);
  const TensorPtr large = FilledTensor(kLarge, 1), equal = FilledTensor(kLarge, 1);
  const TensorPtr sums[] = {
      Plus(large, 2), Plus(large, 3), Plus(equal, 2),
      Derived(std::move(Derivation("other").Add(large)), [] { return FilledTensor(1, 0); })};
  for (const TensorPtr& one : sums) EXPECT_EQ(std::ranges::count(sums, one), 1);
}

TEST_F(DerivedTensorsTest, OfSmallTensorsAreThoseOfEqualOnes) {
  const DerivedTensors::Preparation preparation(kept_);
  EXPECT_EQ(Plus(FilledTensor(kSmall, 1), 2), Plus(FilledTensor(kSmall, 1), 2));
  EXPECT_NE(Plus(FilledTensor(kSmall, 1), 2), Plus(FilledTensor(kSmall, 2), 2));
  EXPECT_NE(Plus(FilledTensor(kSmall, 1), 2), Plus(FilledTensor(kSmall + 1, 1), 2));
}

TEST_F(DerivedTensorsTest, GoWhenAPreparationDoesWithoutThem) {
  const TensorPtr large = FilledTensor(kLarge, 1);
  std::weak_ptr<const Tensor> kept;
  {
    const DerivedTensors::Preparation preparation(kept_);
    kept = Plus(large, 2);
    EXPECT_FALSE(kept.expired());
  }
  EXPECT_FALSE(kept.expired());
  { const DerivedTensors::Preparation preparation(kept_); }
  EXPECT_TRUE(kept.expired());
}

TEST_F(DerivedTensorsTest, ThatFailAreMadeAgain) {
  const DerivedTensors::Preparation preparation(kept_);
  const auto fail = []() -> TensorPtr { throw std::runtime_error("no"); };
  EXPECT_THROW(Derived(Derivation("failing"), fail), std::runtime_error);
  EXPECT_EQ(Derived(Derivation("failing"), [] { return FilledTensor(1, 5); })->floats()[0], 5);
}

}  // namespace
}  // namespace tilesmith
