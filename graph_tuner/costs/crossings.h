// What it costs that one layer deals its work to threads otherwise than the one that wrote its input: the
// bytes that change hands (layouts/base/split.h).
//
// A tensor counts as written along the ideal boundaries of its split: rows from t H / T on, channels from
// t C / T on, are thread t's. How far a config's tasks are from even shares of that is in its own cost
// (SplitFactor). A conversion keeps a tensor with those who computed it, so it does not matter here. Bytes
// are those of the thread that reads the most of others', whom all wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "graph_tuner/costs/costs.h"
#include "ops/graph/graph.h"
#include "tuner/records/record.h"

namespace tilesmith {

// What a thread reads of a tensor to compute its share.
struct Reads {
  enum class Channels {
    kOwn,      // those that it computes: elementwise ops, pooling, groups
    kShifted,  // as many, but not the same: concats
    kAll,
  };
  Channels channels = Channels::kAll;
  int64_t halo_rows = 0;  // rows that it shares with its neighbours, of a thread in the middle
  // What the op costs by itself includes reading from others where its tasks are dealt evenly: costs of ops
  // other than convs are measured so.
  bool even_in_price = false;
};

// Of input `slot` of a node, computed by its own kernel. The rows of every tensor count as one direction from
// the first to the last.
Reads ReadsOf(const Graph& graph, Graph::NodeId node, size_t slot);
// Of the first input of `first`, which the kernel of the conv behind it computes as well.
Reads ReadsOfFused(const Graph& graph, Graph::NodeId first, Graph::NodeId conv);

// Bytes of a float tensor of this shape, written by one split and read by another on `threads` threads, that
// the busiest thread reads of others'.
int64_t CrossingBytes(const Shape& shape, Split written, Split read, const Reads& reads, int threads);

// Who computes, where split costs matter.
struct Team {
  Target cpu = {};
  int threads = 1;
  bool splits = true;  // whether work may be dealt otherwise than evenly
};

// The seconds of that; 0 for tensors of other types than float, which nothing here splits.
double CrossingSeconds(const Node& tensor, Split written, Split read, const Reads& reads, const Team& team,
                       CostSource& costs);

// The splits that a record's kernel can do, kEven first; that alone for one thread, or without splits.
std::vector<Split> SplitsOf(const Record& record, const Team& team);
// Those of an op other than a conv in a layout. Graph inputs are written by one thread, the caller's.
std::vector<Split> SplitsOf(const Graph& graph, Graph::NodeId id, const Layout& layout, const Team& team);
// How much more the busiest thread does of the record's tasks than when they are dealt evenly, at least 1.
double SplitFactor(const Record& record, Split split, const Team& team);

}  // namespace tilesmith
