#include "ops/dense/softmax_loops.h"
#include "ops/kernels/vector_math.h"

namespace tilesmith::TILESMITH_ISA {

void SoftmaxRow(const float* in, float* out, int64_t count) {
  using Wide = Vector<kWidth>;
  alignas(64) float lanes[kWidth];
  Wide largest = Splat<kWidth>(in[0]);
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) largest = Max<Wide>(largest, Load<kWidth>(in + i));
  Store<kWidth>(lanes, largest);
  float top = lanes[0];
  for (int lane = 1; lane < kWidth; ++lane) top = Max(top, lanes[lane]);
  for (; i < count; ++i) top = Max(top, in[i]);

  Wide sums{};
  for (i = 0; i + kWidth <= count; i += kWidth) {
    const Wide power = Exp<kWidth>(Load<kWidth>(in + i) - top);
    sums += power;
    Store<kWidth>(out + i, power);
  }
  Store<kWidth>(lanes, sums);
  float sum = 0;
  for (int lane = 0; lane < kWidth; ++lane) sum += lanes[lane];
  for (; i < count; ++i) {
    out[i] = Exp<1>(in[i] - top);
    sum += out[i];
  }
  const float factor = 1 / sum;
  ForEachVector(count,
                [&]<int kLanes>(int64_t j) { Store<kLanes>(out + j, Load<kLanes>(out + j) * factor); });
}

}  // namespace tilesmith::TILESMITH_ISA
