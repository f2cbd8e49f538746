#include <gtest/gtest.h>

#include "tests/tuner/support/sample_records.h"
#include "tuner/search/config_sampling.h"

namespace tilesmith {
namespace {

ConfigSpace Space() {
  return ConfigSpace(
      {{"block", {1, 8, 16, 32, 0}, ""}, {"width", {1, 2, 4, 7, 14}, ""}, {"rows", {1, 2, 4}, ""}},
      [](const Config& c) { return c.Get("width") * c.Get("rows") > 14 ? "too large" : ""; });
}

const Config kBase = ConfigOf({{"block", 16}, {"width", 4}, {"rows", 2}});

TEST(NearestConfig, TakesWhatIsValidAsItIs) {
  const Config wanted = ConfigOf({{"block", 0}, {"width", 7}});
  EXPECT_EQ(NearestConfig(Space(), kBase, wanted), ConfigOf({{"block", 0}, {"width", 7}, {"rows", 2}}));
  EXPECT_EQ(NearestConfig(Space(), kBase, {}), kBase);
  EXPECT_EQ(NearestConfig(Space(), kBase, ConfigOf({{"unknown", 7}})), kBase);
}

TEST(NearestConfig, TakesTheNearestValueByRatio) {
  const auto nearest = [](int64_t block) {
    return NearestConfig(Space(), kBase, ConfigOf({{"block", block}}))->Get("block");
  };
  EXPECT_EQ(nearest(3), 8);
  EXPECT_EQ(nearest(2), 1);
  EXPECT_EQ(nearest(24), 32);
  EXPECT_EQ(nearest(1000), 32);
}

TEST(NearestConfig, GivesWayWhereNobodyAskedForAnything) {
  // 14 wide leaves room for one row: the knob that was not asked for yields.
  EXPECT_EQ(NearestConfig(Space(), kBase, ConfigOf({{"width", 14}})),
            ConfigOf({{"block", 16}, {"width", 14}, {"rows", 1}}));
  // Both asked for: one step of either.
  const auto both = NearestConfig(Space(), kBase, ConfigOf({{"width", 14}, {"rows", 2}}));
  ASSERT_TRUE(both);
  EXPECT_TRUE(Space().WhyInvalid(*both).empty());
  EXPECT_TRUE(both->Get("width") == 7 || both->Get("rows") == 1);
}

TEST(NearestConfig, RefusesAForeignBase) {
  EXPECT_FALSE(NearestConfig(Space(), ConfigOf({{"block", 16}}), {}));
  const ConfigSpace nothing({{"block", {1}, ""}}, [](const Config&) { return "never"; });
  EXPECT_FALSE(NearestConfig(nothing, ConfigOf({{"block", 1}}), {}));
}

}  // namespace
}  // namespace tilesmith
