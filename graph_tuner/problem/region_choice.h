// Which layers of a plan are computed depth first, in regions (executor/regions.h): a layout problem of its
// own, exact for the costs it is given.
//
// A node stays as the plan has it, or it is a member of a region whose images are cut into so many bands (a
// band class). What a tensor is beside that is a member's label, too:
//
//   end   it exists whole; no reader is in the region
//   keep  it exists whole, and readers may be in the region
//   roll  it is in a rolling buffer, and all of its readers are in the region
//
// Buffers of a region must have room in a thread's cache. So a label has a level, in capacity / kLevels: what
// the buffers take on the way to the node, along whichever way takes most, its own included. Producer and
// reader of one class are in one region exactly when the reader's level is at least the producer's and what
// its own buffer takes. Then all that is asked of a region is asked of pairs: cost of an assignment =
//
//   sum_v  plan_v, or inside_v[class]
// + sum_{producer p, reader r}  as_planned_pr, if both are as planned
//                             | enter_pr, leave_pr or between_pr, if they are in different places
//                             | 0, in one region; forbidden if p rolls and they are not in one region
//
// Proof that capacity holds in a chain: on the way through a region levels grow by at least what each buffer
// takes, and none is above kLevels. Of branches that meet again the longest way is counted, and two nodes
// that are in one region by another way may have a tensor between them that was not counted: such a region
// may be too large for its share of the cache, which those who run it will see. Source: original.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/solvers/solver.h"

namespace tilesmith {

constexpr int kRegionLevels = 4;

// What a node may be, and what that costs, in seconds.
struct RegionCandidate {
  struct Inside {
    double seconds = 0;
    int buffer_levels = 0;  // that its result takes; more than kRegionLevels: it cannot roll
  };
  std::string name;
  double planned_seconds = 0;
  std::vector<std::optional<Inside>> inside;  // by class; nullopt: no member of one
  bool must_exist = false;                    // its result is read by who is in no region
};

// A tensor from its producer to a reader, both by number. `enter`: only the reader is in a region; `leave`:
// only the producer; `between`: they are in two.
struct RegionEdge {
  size_t producer = 0, reader = 0;
  double planned_seconds = 0, enter_seconds = 0, leave_seconds = 0, between_seconds = 0;
  bool streams = true;  // the reader can take the tensor row by row
};

enum class RegionRole : uint8_t { kPlanned, kEnd, kKeep, kRoll };

struct RegionMember {
  RegionRole role = RegionRole::kPlanned;
  size_t band_class = 0;
  int region = -1;  // nodes of one number are a region; -1 for none
};

struct RegionChoice {
  std::vector<RegionMember> members;  // by node
  Solution solution;
};

// Nodes are in topological order. Throws nothing; a refusal is the solution's.
RegionChoice ChooseRegions(const std::vector<RegionCandidate>& nodes, const std::vector<RegionEdge>& edges,
                           std::string_view solver = "auto", const SolveLimits& limits = {});

// The cost of an assignment by the formula above, without labels: for tests and checks. Infinite where a
// tensor rolls that somebody else reads.
double CostOfRegions(const std::vector<RegionCandidate>& nodes, const std::vector<RegionEdge>& edges,
                     const std::vector<RegionMember>& members);

}  // namespace tilesmith
