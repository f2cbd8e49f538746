// The grouped template's loops in words.
#include <algorithm>

#include "templates/grouped/schedule.h"

namespace tilesmith::grouped {
namespace {

const char* BodyOf(Spread spread, bool pairs) {
  switch (spread) {
    case Spread::kPairs:
    case Spread::kQuads:
      return "sum += weights * input, permuted within its groups";
    case Spread::kIndex:
      return pairs ? "sum += pairs of weights * pairs of input (bf16), permuted by an index register"
                   : "sum += weights * input, permuted by an index register";
    case Spread::kBroadcast:
      return pairs ? "sum += pairs of weights * pairs of input (bf16), broadcast"
                   : "sum += weights * input, broadcast";
    case Spread::kSwaps:
      return "sum += weights * input; the lanes of the sums are swapped in the end";
  }
  return "";
}

const char* HoldText(Hold hold) {
  switch (hold) {
    case Hold::kNothing:
      return "weights are operands of the FMAs";
    case Hold::kWeights:
      return "weights in registers";
    case Hold::kInputs:
      return "inputs in registers";
  }
  return "";
}

}  // namespace

LoopNest NestOf(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const GroupedConfig& c = g.config;
  const int64_t lanes = g.vector_floats, width = std::min(c.width_tile, w.ow), step = g.step_channels();
  const Loop vectors = LoopOver("oc", g.vectors * lanes, lanes, LoopKind::kTasks, "several groups a vector");
  const Loop rows = LoopOver("oh", w.oh, g.rows_per_task(), LoopKind::kTasks, "output rows of a task");
  LoopNest nest;
  nest.tasks = {LoopOver("mb", w.mb, 1, LoopKind::kTasks), c.oc_inner ? rows : vectors,
                c.oc_inner ? vectors : rows};
  LoopPart part;
  part.loops = {LoopOver("oh", g.rows_per_task(), c.tile_rows, LoopKind::kLoop),
                LoopOver("ow", w.ow, width, LoopKind::kLoop, "register tiles"),
                LoopOver("kh", w.kh, 1, LoopKind::kUnrolled),
                LoopOver("ic", g.channels, c.sums * step, LoopKind::kUnrolled, "of the group"),
                LoopOver("kw", w.kw, 1, LoopKind::kUnrolled, HoldText(c.hold)),
                LoopOver("ic", c.sums * step, step, LoopKind::kUnrolled, "register tile: sums of an output"),
                LoopOver("oh", c.tile_rows, 1, LoopKind::kUnrolled, "register tile: rows"),
                LoopOver("ow", width, 1, LoopKind::kUnrolled, "register tile: positions"),
                LoopOver("oc", lanes, 1, LoopKind::kVector)};
  part.body = BodyOf(g.spread, c.pairs);
  nest.parts = {std::move(part)};
  const int64_t input_rows = std::min(w.ih, (c.tile_rows - 1) * w.sh + (w.kh - 1) * (w.dh + 1) + 1);
  const int64_t columns = std::min(w.iw, (width - 1) * w.sw + (w.kw - 1) * (w.dw + 1) + 1);
  nest.tile_input_bytes = static_cast<double>(input_rows * columns * lanes * g.in.element_bytes);
  nest.tile_weight_bytes = static_cast<double>(g.terms() * w.kh * w.kw * lanes * kFloatBytes);
  nest.tile_output_bytes = static_cast<double>(c.tile_rows * width * lanes * g.out.element_bytes);
  return nest;
}

}  // namespace tilesmith::grouped
