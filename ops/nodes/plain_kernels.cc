#include "ops/nodes/activations.h"
#include "ops/nodes/batch_norm.h"
#include "ops/nodes/binary.h"
#include "ops/nodes/concat.h"
#include "ops/nodes/gemm.h"
#include "ops/nodes/pad.h"
#include "ops/nodes/pool.h"
#include "ops/nodes/prelu.h"
#include "ops/nodes/softmax.h"
#include "ops/nodes/transpose.h"
#include "ops/nodes/view.h"
namespace tilesmith {
#define PLAIN(op) \
  std::unique_ptr<Kernel> op::MakeKernel(const KernelRequest& r) const { return Op::MakeKernel(r); }
#define PLAIN_RUNS(op) \
  bool op::RunsIn(const Layout& l, std::span<const Shape>) const { return l.is_nchw(); }
PLAIN(ActivationOp)
PLAIN(ScaleShiftOp) PLAIN(BinaryOp) PLAIN(SumOp) PLAIN(ConcatOp) PLAIN(GemmOp) PLAIN(PadOp) PLAIN(PoolOp)
    PLAIN(GlobalPoolOp) PLAIN(PReluOp) PLAIN(SoftmaxOp) PLAIN(TransposeOp) PLAIN(ViewOp)
        PLAIN_RUNS(ActivationOp) PLAIN_RUNS(ScaleShiftOp) PLAIN_RUNS(BinaryOp) PLAIN_RUNS(SumOp)
            PLAIN_RUNS(ConcatOp) PLAIN_RUNS(PReluOp)
}  // namespace tilesmith
