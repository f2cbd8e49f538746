// The loops of a config in words that people read. Derived from the same numbers as the code, not from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilesmith {

enum class LoopKind {
  kTasks,     // spread over threads
  kLoop,      // counted at run time
  kUnrolled,  // copied in the code
  kVector,    // lanes of one instruction
};

// `trips` steps of `step` elements along a dimension: mb, g, oc, ic, oh, ow, kh, kw as in workloads, or one
// of the algorithm's own. The last step may be shorter. Loops over one dimension nest: an inner one covers
// one step of the next outer one, the innermost has step 1.
struct Loop {
  std::string dim;
  int64_t trips = 1;
  int64_t step = 1;
  LoopKind kind = LoopKind::kLoop;
  std::string note;  // what a reader would ask
};

// A loop over `size` elements.
Loop LoopOver(std::string_view dim, int64_t size, int64_t step, LoopKind kind, std::string note = "");

struct LoopPart {
  std::string title;  // of several parts
  std::vector<Loop> loops;
  std::string body;  // what the innermost loop does
  // Multiplications of the plain algorithm that one pass through the innermost body stands for; 0 where the
  // part only moves or transforms data.
  double covers = 1;
  int64_t points() const;  // passes through the body, within one pass through the loops around the part
};

struct LoopNest {
  std::vector<Loop> tasks;      // around all parts; parts that are stages of their own have tasks inside
  std::vector<LoopPart> parts;  // one after the other
  // What the sums of one register tile read and write, from first to last term of a pass.
  double tile_input_bytes = 0, tile_weight_bytes = 0, tile_output_bytes = 0;
  double multiplications() const;  // of the plain algorithm that all parts cover
};

// One loop a line, indented; loops of one trip are left out. Ends in a newline.
std::string LoopNestText(const LoopNest& nest);

}  // namespace tilesmith
