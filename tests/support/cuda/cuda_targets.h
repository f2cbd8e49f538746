// GPUs that no test needs to have.
#pragma once

#include "layouts/base/target.h"

namespace tilesmith {

// As an A100 (80) and an H100 (90) describe themselves.
inline Target CudaTargetForTests(int compute, bool tf32 = false) {
  Target target;
  target.device = kCudaDevice;
  target.model = compute >= 90 ? "NVIDIA H100 (no real one)" : "NVIDIA A100 (no real one)";
  target.cores = compute >= 90 ? 132 : 108;
  target.l1d_bytes = compute >= 90 ? 232448 : 166912;
  target.l2_bytes = compute >= 90 ? int64_t{50} << 20 : int64_t{40} << 20;
  target.compute = compute;
  target.tf32 = tf32;
  return target;
}

}  // namespace tilesmith
