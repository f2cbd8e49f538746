#include "templates/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// a in {1, 2, 4}, b in {10, 20}, c in {0, 5, 7, 9}; a = 4 excludes b = 20.
ConfigSpace SmallSpace() {
  return ConfigSpace({{"c", {0, 5, 7, 9}, "first"}, {"a", {1, 2, 4}, "second"}, {"b", {10, 20}, "third"}},
                     [](const Config& config) {
                       return config.Get("a") == 4 && config.Get("b") == 20 ? "a too large for b" : "";
                     });
}

TEST(Config, IsIndependentOfTheOrderOfSetting) {
  Config one, other;
  one.Set("oc_block", 16);
  one.Set("ic_block", 8);
  other.Set("ic_block", 4);
  other.Set("oc_block", 16);
  EXPECT_NE(one, other);
  other.Set("ic_block", 8);
  EXPECT_EQ(one, other);
  EXPECT_EQ(one.ToString(), "ic_block=8 oc_block=16");
  EXPECT_EQ(one.Find("rows"), std::nullopt);
  EXPECT_EQ(one.Find("oc_block"), 16);
  EXPECT_THROW(one.Get("rows"), Error);
}

TEST(ConfigSpace, IndexAndConfigAreInverse) {
  const ConfigSpace space = SmallSpace();
  ASSERT_EQ(space.size(), 24u);
  for (uint64_t index = 0; index < space.size(); ++index) EXPECT_EQ(space.IndexOf(space.At(index)), index);
  EXPECT_EQ(space.At(1).ToString(), "a=1 b=10 c=5") << "the first knob is the fastest";
  EXPECT_EQ(space.At(4).ToString(), "a=2 b=10 c=0");
  EXPECT_THROW(space.At(24), Error);
}

TEST(ConfigSpace, SaysWhyAConfigIsInvalid) {
  const ConfigSpace space = SmallSpace();
  Config config = space.At(0);
  EXPECT_EQ(space.WhyInvalid(config), "");
  config.Set("a", 3);
  EXPECT_THAT(space.WhyInvalid(config), HasSubstr("\"a\" is 3 (allowed: 1, 2, 4)"));
  EXPECT_EQ(space.IndexOf(config), std::nullopt);
  config.Set("a", 4);
  config.Set("b", 20);
  EXPECT_EQ(space.WhyInvalid(config), "a too large for b");
  config.Set("d", 1);
  EXPECT_THAT(space.WhyInvalid(config), HasSubstr("unknown knob \"d\""));
  EXPECT_EQ(space.IndexOf(config), std::nullopt);
  Config partial;
  partial.Set("a", 1);
  EXPECT_THAT(space.WhyInvalid(partial), HasSubstr("\"c\" is missing"));
  EXPECT_EQ(ConfigSpace().WhyInvalid(partial), "the config space is empty");
}

TEST(ConfigSpace, NeighboursDifferByOneStepOfOneKnobAndAreValid) {
  const ConfigSpace space = SmallSpace();
  // c = 5, a = 4, b = 10: index 1 + 2 * 4; b = 20 would be invalid.
  EXPECT_THAT(space.Neighbours(9), ElementsAre(5, 8, 10));
  EXPECT_THAT(space.Neighbours(0), ElementsAre(1, 4, 12));
  for (uint64_t index = 0; index < space.size(); ++index) {
    for (uint64_t neighbour : space.Neighbours(index)) EXPECT_TRUE(space.IsValid(neighbour));
  }
}

TEST(ConfigSpace, CountsValidConfigsUpToALimit) {
  const ConfigSpace space = SmallSpace();
  EXPECT_EQ(space.CountValid(), 20u);
  EXPECT_EQ(space.CountValid(23), std::nullopt);
  EXPECT_EQ(ConfigSpace({}, nullptr).CountValid(), 1u) << "no knobs: one empty config";
  EXPECT_EQ(ConfigSpace().CountValid(), 0u);
}

TEST(ConfigSpace, HoldsHugeSpacesButNotOverflowingOnes) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 100; ++i) values.push_back(i);
  std::vector<Knob> knobs;
  for (char c = 'a'; c < 'j'; ++c) knobs.push_back({std::string(1, c), values, ""});
  const ConfigSpace space(knobs, nullptr);
  EXPECT_EQ(space.size(), 1000000000000000000u);
  EXPECT_EQ(space.IndexOf(space.At(987654321012345678u)), 987654321012345678u);
  knobs.push_back({"j", values, ""});
  EXPECT_THROW(ConfigSpace(knobs, nullptr), Error);
}

TEST(ConfigSpace, RefusesMalformedKnobs) {
  EXPECT_THROW(ConfigSpace({{"a", {}, ""}}, nullptr), Error);
  EXPECT_THROW(ConfigSpace({{"a", {1, 1}, ""}}, nullptr), Error);
  EXPECT_THROW(ConfigSpace({{"a", {1}, ""}, {"a", {2}, ""}}, nullptr), Error);
}

}  // namespace
}  // namespace tilesmith
