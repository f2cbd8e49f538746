#include "tools/ort/regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tilesmith {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Nodes = std::vector<RegionNode>;

TEST(RegionsTest, ASupportedNetworkIsOneRegion) {
  EXPECT_THAT(FindRegions({{true, true, {}}, {true, false, {0}}, {true, false, {0, 1}}}),
              ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(FindRegions({}), IsEmpty());
}

TEST(RegionsTest, AnUnsupportedNodeInTheMiddleMakesTwo) {
  EXPECT_THAT(FindRegions({{true, true, {}}, {false, false, {0}}, {true, true, {1}}}),
              ElementsAre(ElementsAre(0), ElementsAre(2)));
}

TEST(RegionsTest, WhatIsReadOnBothSidesDoesNotCloseTheLoop) {
  // 0 -> 1 (not supported) -> 2, and 0 -> 2: one region of 0 and 2 would wait for itself.
  EXPECT_THAT(FindRegions({{true, true, {}}, {false, false, {0}}, {true, true, {0, 1}}}),
              ElementsAre(ElementsAre(0), ElementsAre(2)));
}

TEST(RegionsTest, RegionsWithoutAWorthwhileNodeAreLeft) {
  EXPECT_THAT(FindRegions({{true, false, {}}, {false, false, {0}}, {true, true, {1}}}),
              ElementsAre(ElementsAre(2)));
}

TEST(RegionsTest, PartsThatAreNotConnectedAreRegionsOfTheirOwn) {
  EXPECT_THAT(FindRegions({{true, true, {}}, {true, true, {}}, {true, false, {0}}}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

// The nodes that can be got to from `from`.
std::vector<bool> Reached(const Nodes& nodes, size_t from) {
  std::vector<bool> reached(nodes.size());
  reached[from] = true;
  for (size_t i = from + 1; i < nodes.size(); ++i)
    for (const size_t source : nodes[i].sources) reached[i] = reached[i] || reached[source];
  return reached;
}

TEST(RegionsTest, AreClosedAndDisjointWhateverTheNetwork) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Nodes nodes;
    for (size_t i = 0; i < 3 + random() % 20; ++i) {
      nodes.push_back({random() % 4 != 0, random() % 2 != 0, {}});
      for (size_t k = random() % 3; i > 0 && k > 0; --k) nodes[i].sources.push_back(random() % i);
    }
    const auto regions = FindRegions(nodes);
    std::vector<std::vector<bool>> reached;
    for (size_t i = 0; i < nodes.size(); ++i) reached.push_back(Reached(nodes, i));
    std::vector<int> owners(nodes.size(), -1);
    for (size_t r = 0; r < regions.size(); ++r) {
      for (const size_t i : regions[r]) {
        ASSERT_TRUE(nodes[i].supported);
        ASSERT_EQ(owners[i], -1);
        owners[i] = static_cast<int>(r);
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i)
      for (size_t k = 0; k < nodes.size(); ++k)
        for (size_t between = 0; between < nodes.size(); ++between)
          if (owners[i] >= 0 && owners[i] == owners[k] && reached[i][between] && reached[between][k]) {
            ASSERT_EQ(owners[between], owners[i]) << i << " " << between << " " << k;
          }
  }
}

}  // namespace
}  // namespace tilesmith
