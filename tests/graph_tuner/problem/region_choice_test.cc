#include "graph_tuner/problem/region_choice.h"

#include <gtest/gtest.h>

#include <random>

namespace tilesmith {
namespace {

constexpr int kSolved = 400;

struct RandomChoice {
  std::vector<RegionCandidate> nodes;
  std::vector<RegionEdge> edges;
};

// A network of a few nodes, most of them behind the one before.
RandomChoice Draw(std::mt19937_64& random, size_t nodes, size_t classes) {
  const auto upto = [&](int most) { return static_cast<int>(random() % static_cast<uint64_t>(most + 1)); };
  RandomChoice drawn;
  for (size_t i = 0; i < nodes; ++i) {
    RegionCandidate node{.name = "n" + std::to_string(i), .planned_seconds = 10.0 + upto(10), .inside = {}};
    for (size_t c = 0; c < classes; ++c) {
      if (upto(4) == 0)
        node.inside.emplace_back();
      else
        node.inside.push_back(RegionCandidate::Inside{4.0 + upto(14), upto(kRegionLevels + 1)});
    }
    node.must_exist = upto(5) == 0;
    drawn.nodes.push_back(std::move(node));
    if (i == 0) continue;
    const auto edge = [&](size_t from) {
      drawn.edges.push_back({.producer = from,
                             .reader = i,
                             .planned_seconds = 1.0 * upto(2),
                             .enter_seconds = 1.0 * upto(4),
                             .leave_seconds = 1.0 * upto(4),
                             .between_seconds = 1.0 * upto(6),
                             .streams = upto(6) != 0});
    };
    edge(i - 1);
    if (i > 1 && upto(2) == 0) edge(static_cast<size_t>(upto(static_cast<int>(i) - 2)));
  }
  return drawn;
}

// The buffers on every way through a region take no more than there is room for.
void ExpectRoom(const RandomChoice& drawn, const std::vector<RegionMember>& members) {
  std::vector<int> used(members.size(), 0);
  for (size_t i = 0; i < members.size(); ++i) {
    const RegionMember& member = members[i];
    if (member.role == RegionRole::kPlanned) continue;
    for (const RegionEdge& edge : drawn.edges) {
      const RegionMember& from = members[edge.producer];
      const bool buffered = from.role == RegionRole::kRoll || from.role == RegionRole::kKeep;
      if (edge.reader == i && edge.streams && buffered && from.region == member.region)
        used[i] = std::max(used[i], used[edge.producer]);
    }
    const bool buffered = member.role == RegionRole::kRoll || member.role == RegionRole::kKeep;
    if (buffered) used[i] += drawn.nodes[i].inside[member.band_class]->buffer_levels;
    EXPECT_LE(used[i], kRegionLevels) << "node " << i;
  }
}

TEST(RegionChoice, IsAsCheapAsExhaustiveSearchFindsIt) {
  for (uint64_t seed = 1; seed <= kSolved; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const RandomChoice drawn = Draw(random, 2 + seed % 4, 1 + seed % 2);
    const RegionChoice exact = ChooseRegions(drawn.nodes, drawn.edges);
    const RegionChoice oracle = ChooseRegions(drawn.nodes, drawn.edges, "exhaustive");
    ASSERT_TRUE(exact.solution.solved()) << exact.solution.refusal;
    ASSERT_TRUE(oracle.solution.solved()) << oracle.solution.refusal;
    EXPECT_NEAR(exact.solution.cost, oracle.solution.cost, 1e-9);
    EXPECT_LE(CostOfRegions(drawn.nodes, drawn.edges, exact.members), exact.solution.cost + 1e-9);
  }
}

// Every way to make a chain's nodes planned or members of regions of consecutive ones, without labels.
double CheapestChain(const RandomChoice& drawn, std::vector<RegionMember>& members, size_t next, int used) {
  if (next == drawn.nodes.size()) return CostOfRegions(drawn.nodes, drawn.edges, members);
  double least = kForbidden;
  const auto with = [&](RegionMember member, int then_used) {
    members[next] = member;
    least = std::min(least, CheapestChain(drawn, members, next + 1, then_used));
  };
  with({}, 0);
  const RegionCandidate& node = drawn.nodes[next];
  for (size_t c = 0; c < node.inside.size(); ++c) {
    if (!node.inside[c]) continue;
    for (const bool joins : {false, true}) {
      if (joins) {
        if (next == 0) continue;
        const RegionMember& before = members[next - 1];
        const bool buffered = before.role == RegionRole::kRoll || before.role == RegionRole::kKeep;
        if (!buffered || before.band_class != c || !drawn.edges[next - 1].streams) continue;
      }
      const int region = joins ? members[next - 1].region : static_cast<int>(next);
      const int so_far = joins ? used : 0, own = so_far + node.inside[c]->buffer_levels;
      with({RegionRole::kEnd, c, region}, so_far);
      if (own > kRegionLevels) continue;
      with({RegionRole::kKeep, c, region}, own);
      if (!node.must_exist) with({RegionRole::kRoll, c, region}, own);
    }
  }
  return least;
}

TEST(RegionChoice, OfAChainIsTheCheapestOfAllCuts) {
  for (uint64_t seed = 1; seed <= kSolved; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    RandomChoice drawn = Draw(random, 2 + seed % 4, 1 + seed % 2);
    std::erase_if(drawn.edges, [](const RegionEdge& edge) { return edge.producer + 1 != edge.reader; });
    std::vector<RegionMember> members(drawn.nodes.size());
    const double least = CheapestChain(drawn, members, 0, 0);
    const RegionChoice choice = ChooseRegions(drawn.nodes, drawn.edges);
    EXPECT_NEAR(choice.solution.cost, least, 1e-9);
    EXPECT_NEAR(CostOfRegions(drawn.nodes, drawn.edges, choice.members), least, 1e-9);
    ExpectRoom(drawn, choice.members);
  }
}

TEST(RegionChoice, KeepsWhatOthersRead) {
  RegionCandidate first{.name = "a", .planned_seconds = 10, .inside = {RegionCandidate::Inside{1, 1}}};
  RegionCandidate second{.name = "b", .planned_seconds = 10, .inside = {RegionCandidate::Inside{1, 1}}};
  RegionCandidate other{.name = "c", .planned_seconds = 1, .inside = {std::nullopt}};
  second.must_exist = other.must_exist = true;
  const std::vector<RegionEdge> edges = {{.producer = 0, .reader = 1, .between_seconds = 1},
                                         {.producer = 0, .reader = 2}};
  const RegionChoice choice = ChooseRegions({first, second, other}, edges);
  EXPECT_EQ(choice.members[0].role, RegionRole::kKeep);
  EXPECT_EQ(choice.members[0].region, choice.members[1].region);
  EXPECT_EQ(choice.members[2].role, RegionRole::kPlanned);
}

}  // namespace
}  // namespace tilesmith
