// The kernel around generated code for strips: tasks, the copies of input that they share, and what a thread
// has under way.
#pragma once

#include <memory>
#include <string>

#include "layouts/tensor.h"
#include "templates/amx/x86/strip_code.h"

namespace tilesmith::amx {

struct StripParts {
  std::string name;  // the template's
  std::unique_ptr<const StripCode> code;
  std::unique_ptr<const InputCopy> copy;  // null: windows are read where they lie
  AlignedBuffer weights;                  // [block of channels], each as PackWindowWeights writes it
  AlignedBuffer bias;                     // [block of channels][lane], of the type of sums
  AlignedBuffer multipliers;              // likewise, floats; or none
};

// Buffers for a schedule's weights, bias and, if wanted, multipliers, all zeros.
StripParts EmptyParts(std::string name, const WindowPlan& plan, bool multipliers);

// `pool` as in ConvWeights.
std::unique_ptr<ConvKernel> MakeStripKernel(const Schedule& schedule, StripParts parts, BufferPool* pool);

}  // namespace tilesmith::amx
