#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "layouts/base/simd.h"
#include "ops/selection/boxes_loops.h"

namespace tilesmith::TILESMITH_ISA {
namespace {

using Floats = Vector<kWidth>;
typedef int32_t Mask __attribute__((vector_size(kWidth * sizeof(int32_t))));

inline bool Any(Mask mask) {
#if defined(TILESMITH_ISA_avx512)
  return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(TILESMITH_ISA_avx2)
  return _mm256_movemask_ps((__m256)mask) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps((__m128)mask) != 0;
#else
  int32_t any = 0;
  for (int i = 0; i < kWidth; ++i) any |= mask[i];
  return any != 0;
#endif
}

}  // namespace

bool OverlapsAny(const BoxColumns& boxes, const CornerBox& box, float threshold) {
  if (!(box.area > 0)) return false;
  for (int64_t block = 0; block < boxes.blocks; ++block) {
    for (int64_t i = block * kBoxBlock; i < (block + 1) * kBoxBlock; i += kWidth) {
      const Floats height = Min(Load<kWidth>(boxes.bottom + i), Splat<kWidth>(box.bottom)) -
                            Max(Load<kWidth>(boxes.top + i), Splat<kWidth>(box.top));
      const Floats width = Min(Load<kWidth>(boxes.right + i), Splat<kWidth>(box.right)) -
                           Max(Load<kWidth>(boxes.left + i), Splat<kWidth>(box.left));
      const Floats areas = Load<kWidth>(boxes.areas + i);
      const Mask meet = (height > 0) & (width > 0) & (areas > 0);
      if (!Any(meet)) continue;
      const Floats both = height * width;
      if (Any(meet & (both / (areas + box.area - both) > threshold))) return true;
    }
  }
  return false;
}

}  // namespace tilesmith::TILESMITH_ISA
