// Inner loops of the elementwise kernels, one build per instruction set. `out` may be an input's own memory.
#pragma once

#include "layouts/base/isa_dispatch.h"
#include "layouts/base/kernel.h"
#include "ops/base/activation.h"

namespace tilesmith {

// `pixels` pixels of `lanes` adjacent channels, with one or two parameters for each lane.
struct LaneLoop {
  const float* in;
  float* out;
  const float* a;
  const float* b;
  int64_t lanes;
  int64_t pixels;
};

enum class BinaryKind { kAdd, kSub, kMul, kDiv };

// out = act(in)
TILESMITH_DECLARE_ISA(void ActivateRun(const float* in, float* out, int64_t count, Activation activation))
// out = e^in
TILESMITH_DECLARE_ISA(void ExpRun(const float* in, float* out, int64_t count))
// out = act(a[lane] * in + b[lane])
TILESMITH_DECLARE_ISA(void ScaleShiftLanes(const LaneLoop& loop, Activation activation))
// out = in >= 0 ? in : a[lane] * in
TILESMITH_DECLARE_ISA(void PReluLanes(const LaneLoop& loop))
// out = a op b
TILESMITH_DECLARE_ISA(void BinaryRun(BinaryKind op, const float* a, const float* b, float* out,
                                     int64_t count))
// out = in op a[lane], or a[lane] op in when gate_first
TILESMITH_DECLARE_ISA(void GateLanes(BinaryKind op, bool gate_first, const LaneLoop& loop))
// out = sum over the inputs, added in their order; floats [offset, offset + count) of one image
TILESMITH_DECLARE_ISA(void SumRun(const InputView* inputs, int64_t input_count, int64_t image, int64_t offset,
                                  float* out, int64_t count))

}  // namespace tilesmith
