#include <gtest/gtest.h>

#include "tests/tuner/support/fake_template.h"
#include "tests/tuner/support/sample_records.h"
#include "tuner/layout_search.h"

namespace tilesmith {
namespace {

// Blocks of 16 and more need tile >= 4; oc_block 0 needs tile = 8 and rows = 4 at once; ic_block = oc_block =
// 0 is never valid.
ConfigSpace DependentSpace() {
  return ConfigSpace({{"ic_block", {8, 16, 0}, ""},
                      {"oc_block", {8, 16, 0}, ""},
                      {"tile", {1, 2, 4, 8}, ""},
                      {"rows", {1, 2, 4}, ""}},
                     [](const Config& c) -> std::string {
                       if (c.Get("ic_block") == 0 && c.Get("oc_block") == 0) return "both NHWC";
                       if (c.Get("ic_block") >= 16 && c.Get("tile") < 4) return "tile too small";
                       if (c.Get("oc_block") == 0 && (c.Get("tile") != 8 || c.Get("rows") != 4))
                         return "not 8 x 4";
                       return "";
                     });
}

TEST(Transplant, ChangesTheBlocksAndAsLittleElseAsItCan) {
  const FakeTemplate fake;
  const ConfigSpace space = DependentSpace();
  const Config source = ConfigOf({{"ic_block", 8}, {"oc_block", 8}, {"tile", 2}, {"rows", 2}});
  const auto moved = [&](int64_t ic, int64_t oc) {
    const std::optional<Config> config =
        Transplant(fake, {}, space, source, {LayoutOfBlockKnob(ic), LayoutOfBlockKnob(oc)});
    return config ? config->ToString() : "none";
  };
  EXPECT_EQ(moved(8, 16), "ic_block=8 oc_block=16 rows=2 tile=2") << "valid as it is";
  EXPECT_EQ(moved(16, 8), "ic_block=16 oc_block=8 rows=2 tile=4") << "one knob, one step";
  EXPECT_EQ(moved(8, 0), "ic_block=8 oc_block=0 rows=4 tile=8") << "two knobs";
  EXPECT_EQ(moved(0, 0), "none");
  EXPECT_EQ(moved(32, 8), "none") << "not a value of the space";
  EXPECT_EQ(Transplant(fake, {}, space, ConfigOf({{"x", 1}}), {}), std::nullopt) << "of another space";
}

}  // namespace
}  // namespace tilesmith
