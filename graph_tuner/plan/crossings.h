// What a network's threads wait for since others wrote what they read, by the splits of its nodes
// (layouts/base/split.h): the part of a plan's price that depends on who owns which part of a tensor.
//
// Every node's tasks are dealt by rows, by channels, by images, or in even shares, after which a thread owns
// the part of the result that its share lies in. Its price has three parts:
//
//   reading    of each tensor, the bytes that the busiest thread reads and another one wrote, halo rows
//              included, at the price of reading (costs/crossing_costs.h);
//   weights    of a conv whose weights come from memory, the bytes that the busiest thread reads beyond an
//              equal part: all others' parts where threads compute rows or images;
//   writing    the bytes that fall outside a thread's own part of the result's memory: buffers of the arena
//              lie so that a thread's share of the addresses is where it wrote before (memory_planner.h).
//
// Convolutions and other ops are measured with threads that own all that they touch, so these come on top.
// Transforms and copies are measured with all of it changing hands (layouts/producer_state.h), and
// take the longer the farther apart cores are, where their results go to other threads than their sources
// came from; who owns a result of theirs follows from the node's split. Tensors of the caller's and constants
// have no price. Source: original.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "layouts/base/boxes.h"
#include "layouts/base/split.h"
#include "ops/graph/graph.h"
#include "tuner/records/record.h"

namespace tilesmith {

// What nodes other than convs and fills of concat slices cost by themselves, corrections aside: the layout
// problem, the prices of plans and what runs of plans are compared with follow the same rules.

// Seconds of a node that is no conv with its tensors in `layout`, fills of concat slices not included.
double TolerantSeconds(const Graph& graph, Graph::NodeId id, const Layout& layout, CostSource& costs);

// Seconds to bring a tensor into a concat's slice that it does not own: a copy, or a transform.
double FillSeconds(const Shape& shape, const Layout& from, const Layout& to, CostSource& costs);

// Whose the parts of a tensor are: the t-th of equal ones along an axis is thread t's, or
enum class Owner : uint8_t {
  kCaller,  // nobody's of the team: reading it has no price
  kRows,
  kChannels,
  kImages,
  kOne,    // all is thread 0's
  kMixed,  // each has an equal share, no plan can say of what
};
inline constexpr size_t kOwners = 6;

// How a node's tasks are dealt, and whose its result is then.
struct Ownership {
  Owner owner = Owner::kCaller;
  Split split = Split::kEven;
  bool operator==(const Ownership&) const = default;
};

struct Deal {
  Ownership ownership;
  double balance = 1;    // tasks of the busiest thread, relative to even shares
  bool as_even = false;  // even shares deal alike, and are left out
};

// Where the tasks of an op lie that go along its output's memory, as most do.
TaskGrid GridInMemory(const Shape& shape, const Layout& layout);
// What a conv's kernel reads of its input for a part of its output: the rows that it reaches, of all channels
// of its groups.
Box InputOf(const ConvWorkload& workload, const Box& out);

// One tensor that a node reads.
struct TensorRead {
  Graph::NodeId tensor = 0, reader = 0;
  Ownership written = {};
  Layout from = {}, to = {};           // as it was written, and as it is read
  bool moved = false;                  // copied, even where these are the same
  Owner owner = Owner::kMixed;         // of what the reader computes from it
  const ConvWorkload* conv = nullptr;  // of a reader whose first input this is
};

class Crossings {
 public:
  // Graph and costs outlive it. With even_only, nodes have no other split. Prices are of cores placed like
  // `at` (CrossingPrices::At).
  Crossings(const Graph& graph, CostSource& costs, const Target& cpu = {}, int threads = 1,
            bool even_only = false, const CorePlacement& at = {});

  const Graph& graph() const { return graph_; }
  CostSource& costs() { return costs_; }

  // Whether anything is charged: there are several threads, and crossing has a price. Else nodes have one
  // deal, which is nobody's.
  bool priced() const { return priced_; }

  // The splits worth considering, even shares first; without those whose busiest thread has half as much
  // again to do, and without even shares where another split deals alike.
  std::vector<Deal> DealsOf(const Record& record);
  std::vector<Deal> DealsOf(Graph::NodeId id, const Layout& layout);
  Deal DealOf(const Record& record, Split split);
  Deal DealOf(Graph::NodeId id, const Layout& layout, Split split);

  // What a node that is no conv takes if every thread owns what it touches.
  double OwnSeconds(Graph::NodeId id, const Layout& layout, const Deal& deal);

  // Whose the parts of the tensor are in the layout that is read; and what the reader waits for if they are.
  Owner OwnerRead(const TensorRead& read);
  double ReadSeconds(const TensorRead& read, Owner written);
  double ReadSeconds(const TensorRead& read) { return ReadSeconds(read, OwnerRead(read)); }
  double WriteSeconds(Graph::NodeId id, const Layout& layout, const Ownership& ownership);
  // How much longer a conversion of the node's tensor takes than on the nearest cores, as which it was
  // measured, since other threads own what its threads read: its tasks are dealt as the node's.
  double ConversionSeconds(Graph::NodeId id, const Layout& from, const Layout& to, const Ownership& written);
  // How much longer a conv takes than its record says since its threads read more of the same weights than in
  // even shares on the nearest cores, as which records were measured; 0 of weights that were in caches then.
  double WeightSeconds(const Record& record, Split split);

 private:
  // What is worked out of a grid: records and tensors share a few.
  struct GridDeals {
    std::map<Split, Deal> by_split;
    std::map<Split, double> weights;  // WeightsShare
    std::vector<Deal> considered;
  };

  TaskGrid GridOfOp(Graph::NodeId id, const Layout& layout) const;
  GridDeals& DealsKnownOf(const TaskGrid& grid);
  Deal DealOf(const TaskGrid& grid, Split split);
  const std::vector<Deal>& DealsOf(const TaskGrid& grid);
  double CrossedShare(const TensorRead& read, Owner written) const;
  // Beyond an equal part, of the thread that reads most of them.
  double WeightsShare(const TaskGrid& grid, Split split);

  const Graph& graph_;
  CostSource& costs_;
  const CrossingPrices prices_, near_prices_;
  const Target cpu_;
  const int threads_;
  const bool even_only_;
  const bool priced_;
  std::map<std::array<int64_t, 7>, GridDeals> deals_;
};

}  // namespace tilesmith
