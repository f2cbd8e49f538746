// The kernel around generated code for strips: tasks, the copies of input that they share, and what a thread
// has under way.
#pragma once

#include <memory>
#include <string>

#include "templates/amx/x86/strip_code.h"
#include "templates/base/packed_parameters.h"

namespace tilesmith::amx {

struct StripParts {
  std::string name;  // the template's
  StripFunctions code;
  std::unique_ptr<const InputCopy> copy;  // null: windows are read where they lie
  // Weights: [block of channels], each as PackWindowWeights writes it; bias: [block of channels][lane], of
  // the type of sums; multipliers: likewise, floats, or none.
  PackedParameters parameters;
};

// What a schedule's weights, bias and, if wanted, multipliers take.
PackedParameters::Sizes ParameterSizes(const WindowPlan& plan, bool multipliers);

std::unique_ptr<ConvKernel> MakeStripKernel(const Schedule& schedule, StripParts parts);

}  // namespace tilesmith::amx
