// A program: the steps that compute a network, and the values they read and write. No memory yet, no code.
//
// A value is the output of a node in one layout. Values that are the same bytes (views such as Flatten, or
// layouts that coincide for a shape) share a buffer; each buffer is written by one step, or is fed by the
// user, or known beforehand. Where buffers lie is decided by placement.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph_tuner/executor/schedule.h"
#include "ops/graph/graph.h"

namespace tilesmith {

struct Value {
  Graph::NodeId node = 0;
  Layout layout;
  Shape shape;
  int buffer = 0;
};

struct TensorBuffer {
  enum class Source { kComputed, kInput, kConstant };
  Source source = Source::kComputed;
  int input = -1;                          // kInput: which of the graph's inputs
  std::shared_ptr<const Tensor> constant;  // kConstant
  int64_t images = 1;
  int64_t image_bytes = 0;  // padding included
  // Some view of it cuts the batch differently, so its images must lie back to back.
  bool dense_only = false;
  // Part of a concat's buffer, from this offset (in bytes) in each image on; -1 for none.
  int slice_of = -1;
  int64_t slice_offset = 0;
  int output = -1;  // which graph output it is written to; -1 for none
  // Written and read by steps of one region only, so that it need not exist whole (regions.h).
  bool rolls = false;
};

enum class StepKind {
  kNode,       // a conv or another op
  kTransform,  // the same tensor in another layout
  kCopy,       // the same tensor and layout in another place
};

struct Step {
  StepKind kind = StepKind::kNode;
  Graph::NodeId node = 0;  // the tensor's producer for transforms and copies
  std::vector<int> reads;  // values by slot
  int write = 0;           // value
  // By slot: the step may write its result over this input. Empty for none.
  std::vector<bool> in_place;
  bool fills_slice = false;    // brings a tensor into a concat's slice that it does not own
  Split split = Split::kEven;  // the node's; what only moves its result keeps it with those who computed it
  int region = -1;             // which of the program's; -1 for none
};

// Steps [first, last), computed in bands of so many rows of the last one's result.
struct Region {
  int first = 0, last = 0;
  int64_t band_rows = 1;
  int number = 0;  // in the plan
};

struct Program {
  std::vector<TensorBuffer> buffers;
  std::vector<Value> values;
  std::vector<Step> steps;  // in the order of execution; those of a region follow each other
  std::vector<Region> regions;
};

// A node that is fused into the conv behind it takes no step and has no value: that conv reads its input.
// Each distinct form of a tensor (layouts that are the same memory are one) is made once, right before its
// first use. Concats that can be sliced take no step: the inputs they own are written in their slices, and
// others are transformed or copied there. Constants are converted here, at no cost later. A graph output is a
// buffer in the layout the caller wants (end_layouts.h); where that buffer already has another home (a
// concat, the user's input, another output) a copy is made last.
//
// A transform of what a region's step has made, for another one of its steps, is a step of the region; so are
// those that bring tensors to its steps, or away, if nobody else reads what they bring or take, and if they
// move rows. `bands`: rows of each region that the schedules name. Throws Error(kUsage) naming a region that
// needs what is computed of its own results outside of it.
Program BuildProgram(const Graph& graph, std::span<const NodeSchedule> schedules,
                     const Layout& outputs = Layout::Nchw(), std::span<const RegionPlan> bands = {});

}  // namespace tilesmith
