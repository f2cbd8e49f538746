// How far a kernel's result may be from the exact one when nothing but rounding is to blame: for every
// element, eps * (length of the reduction) * (magnitude of its terms).
#pragma once

#include <span>

#include "graph_tuner/executor/schedule.h"
#include "ops/conv/conv.h"

namespace tilesmith {

// A conv as the executor computes it.
struct ConvStep {
  const NodeSchedule& schedule;
  const ConvOp& conv;
  const Op* first = nullptr;       // the node fused in front, or null
  const Tensor* middle = nullptr;  // its output, plain; exactly when there is one
  const Tensor* output = nullptr;  // the reference's, plain; may be missing where all types are f32
};

// Plain tensors of the output's shape; `inputs` are plain and those of the step. The magnitude of a conv's
// terms is not summed up but bounded by the product of two norms, those of the weights and of the inputs they
// meet (Cauchy and Schwarz), which is some 1.5 to 3 times as much and next to nothing to compute. What is not
// of an algorithm that mixes neighbouring outputs is held to its own magnitude, the others to ErrorFactor
// times the largest. Not finite where an input is not.
Tensor ConvRoundingBound(const ConvStep& step, std::span<const Tensor* const> inputs);
// The bound of any other op; output: its Reference; stored: the type of all its tensors where they are
// floats.
Tensor OpRoundingBound(const Op& op, std::span<const Tensor* const> inputs, const Tensor& output,
                       DataType stored = DataType::kF32);
// How far each element may be off once the tensor is stored in another type.
Tensor ConversionBound(const Tensor& tensor, DataType stored);

}  // namespace tilesmith
