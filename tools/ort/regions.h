// Which nodes of a network another program is to hand over, and in which pieces.
#pragma once

#include <cstddef>
#include <vector>

namespace tilesmith {

struct RegionNode {
  bool supported = false;
  bool worthwhile = false;      // a convolution or a dense layer, for whose sake a region is taken
  std::vector<size_t> sources;  // the nodes it reads from, all of them before it
};

// Disjoint sets of supported nodes, each connected, with a worthwhile one, and closed: no path between two of
// its nodes leaves it, so that it can be run as one. Nodes and regions in ascending order. A network that is
// supported throughout and connected is one region.
//
// A node's depth is the number of times that a path to it comes back from nodes that are not supported, at
// most; a region is what is connected and of one depth.
std::vector<std::vector<size_t>> FindRegions(const std::vector<RegionNode>& nodes);

}  // namespace tilesmith
