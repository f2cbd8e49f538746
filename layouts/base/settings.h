// What users may set, by the names that messages have for it.
//
// The command line calls a setting --max-memory, say, and the APIs call it max_memory. A message that is made
// below them says `max_memory`, in backquotes: the APIs pass it on as it is, the command line puts its own
// option in the place of every such name (WithOptionNames, tools/cli/args.h).
#pragma once

#include <array>
#include <string_view>

namespace tilesmith::settings {

inline constexpr std::string_view kCalibrate = "`calibrate`", kCosts = "`costs`", kForbid = "`forbid`",
                                  kInputShapes = "`input_shapes`", kMaxElements = "`max_elements`",
                                  kMaxError = "`max_error`", kMaxMemory = "`max_memory`",
                                  kMaxOutputError = "`max_output_error`", kMaxWeights = "`max_weights`",
                                  kPercentile = "`percentile`", kPrecision = "`precision`",
                                  kReproducible = "`reproducible`", kRounds = "`rounds`",
                                  kSolver = "`solver`", kTarget = "`target`", kThreads = "`threads`";

inline constexpr std::array kAll = {
    kCalibrate,  kCosts,      kForbid,    kInputShapes,  kMaxElements, kMaxError, kMaxMemory, kMaxOutputError,
    kMaxWeights, kPercentile, kPrecision, kReproducible, kRounds,      kSolver,   kTarget,    kThreads};

}  // namespace tilesmith::settings
