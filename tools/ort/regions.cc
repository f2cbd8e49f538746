#include "tools/ort/regions.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tilesmith {
namespace {

// Supported nodes have even depths, others odd ones.
std::vector<size_t> Depths(const std::vector<RegionNode>& nodes) {
  std::vector<size_t> depths;
  depths.reserve(nodes.size());
  for (const RegionNode& node : nodes) {
    size_t depth = node.supported ? 0 : 1;
    for (const size_t source : node.sources)
      depth = std::max(depth, depths[source] + (nodes[source].supported == node.supported ? 0 : 1));
    depths.push_back(depth);
  }
  return depths;
}

size_t Root(std::vector<size_t>& parents, size_t node) {
  while (parents[node] != node) node = parents[node] = parents[parents[node]];
  return node;
}

}  // namespace

std::vector<std::vector<size_t>> FindRegions(const std::vector<RegionNode>& nodes) {
  const std::vector<size_t> depths = Depths(nodes);
  std::vector<size_t> parents(nodes.size());
  std::iota(parents.begin(), parents.end(), size_t{0});
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const size_t source : nodes[i].sources) {
      if (!nodes[i].supported || !nodes[source].supported || depths[i] != depths[source]) continue;
      const size_t a = Root(parents, i), b = Root(parents, source);
      parents[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<size_t, std::vector<size_t>> members;  // by the first of them
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].supported) members[Root(parents, i)].push_back(i);
  std::vector<std::vector<size_t>> regions;
  for (auto& [first, region] : members) {
    if (std::ranges::any_of(region, [&](size_t i) { return nodes[i].worthwhile; }))
      regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace tilesmith
