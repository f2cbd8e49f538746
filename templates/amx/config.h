// The knobs that the templates by AMX tiles have in common, read once from a Config into a plain struct, and
// what all of them refuse.
#pragma once

#include <string>
#include <vector>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/base/window_plan.h"

namespace tilesmith::amx {

// What is fetched while tiles are multiplied.
enum class Prefetch {
  kNothing = 0,
  kWeights = 1,  // of some steps later
  kWindows = 2,  // of the positions that are next
};

struct AmxConfig {
  int64_t ic_block = 0;  // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 0;  // x of the output's; 0 is NHWC
  WindowCut cut;         // with no zeros
  Prefetch prefetch = Prefetch::kNothing;
};

AmxConfig ReadConfig(const Config& config);

// Sums are made of 32 output channels at a time, of numbers of so many bytes.
WindowForm FormOf(int64_t number_bytes);

Support Supports(const ConvWorkload& workload, const Target& cpu, int64_t number_bytes);
// Blocks of the output's layout that the channels of tasks fill, and 0 for NHWC.
std::vector<int64_t> OutputBlocks(const ConvWorkload& workload);
// All of AmxConfig, with these blocks of the input's and the output's layout.
std::vector<Knob> Knobs(const WindowPlan& preset, std::vector<int64_t> in_blocks,
                        std::vector<int64_t> out_blocks);
// "" or why a cut that is not the `preset` plan's is no good one.
std::string WhyInvalid(const ConvWorkload& workload, const Target& cpu, const WindowPlan& preset,
                       const WindowCut& cut);
// The preset's knobs, in NHWC.
Config DefaultOf(const WindowPlan& preset);

}  // namespace tilesmith::amx
