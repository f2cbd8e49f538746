#include "tools/bench/random_tensor.h"

namespace tilesmith {

Tensor RandomTensor(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  float* data = tensor.floats();
  for (int64_t i = 0, n = tensor.size(); i < n; ++i) {
    state += 0x9E3779B97F4A7C15u;  // splitmix64
    uint64_t mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    data[i] = float(int32_t(uint32_t((mixed ^ (mixed >> 31)) >> 32))) * 0x1p-31f;
  }
  return tensor;
}

}  // namespace tilesmith
