// Templates say which pairs of layouts their spaces hold, whatever their knobs are called.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "templates/base/conv_template.h"
#include "tests/templates/example_template.h"

namespace tilesmith {
namespace {

TEST(LayoutPairs, AreThoseThatConfigsCanBeMovedTo) {
  std::vector<const ConvTemplate*> templates = ConvTemplates();
  templates.push_back(&ExampleTemplate());
  Target cpu;
  cpu.isa = Isa::kAvx2;
  for (const char* text :
       {"ic64ih14oc64kh3ph1", "ic256ih14oc128kh1", "g32ic32ih14oc32kh3ph1", "g8ic64ih14oc64kh3ph1",
        "ic8ih14oc3kh3ph1", "g32ic32ih14oc32kh3ph1>ic32ih14oc64kh1"}) {
    const ConvWorkload w = ParseWorkload(text);
    for (const ConvTemplate* one : templates) {
      if (!one->Supports(w, cpu).ok) continue;
      SCOPED_TRACE(fmt::format("{} {}", one->Name(), text));
      const ConfigSpace space = one->Space(w, cpu);
      const Config preset = one->Default(w, cpu);
      const std::vector<LayoutPair> pairs = one->LayoutPairs(w, space);
      EXPECT_EQ(pairs.empty(), one->LayoutKnobs().empty());
      EXPECT_TRUE(std::is_sorted(pairs.begin(), pairs.end()));
      const LayoutPair now = one->Layouts(w, preset);
      EXPECT_EQ(std::count(pairs.begin(), pairs.end(), now), pairs.empty() ? 0 : 1);
      EXPECT_EQ(one->WithLayouts(w, space, preset, now),
                pairs.empty() ? std::nullopt : std::optional(preset));
      for (const LayoutPair& pair : pairs) {
        const std::optional<Config> moved = one->WithLayouts(w, space, preset, pair);
        ASSERT_TRUE(moved);
        EXPECT_EQ(one->Layouts(w, *moved), pair);
        EXPECT_TRUE(space.IndexOf(*moved));
      }
      EXPECT_FALSE(one->WithLayouts(w, space, preset, {Layout::Blocked(3), Layout::Blocked(3)}));
    }
  }
}

TEST(LayoutPairs, AreAllCombinationsOfTheValuesOfTheKnobs) {
  const ConvWorkload w = ParseWorkload("ic8ih4oc8kh1");
  const std::vector<LayoutPair> pairs = ExampleTemplate().LayoutPairs(w, ExampleTemplate().Space(w, {}));
  EXPECT_EQ(pairs.size(), 16U);
  EXPECT_EQ(pairs.front(), (LayoutPair{Layout::Nhwc(), Layout::Nhwc()}));
  EXPECT_EQ(pairs.back(), (LayoutPair{Layout::Blocked(16), Layout::Blocked(16)}));
}

}  // namespace
}  // namespace tilesmith
