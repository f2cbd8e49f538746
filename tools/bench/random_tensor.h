// Seeded data for measurements and for inputs nobody gave.
#pragma once

#include <cstdint>

#include "layouts/tensor.h"

namespace tilesmith {

// Plain layout, uniform in [-1, 1]: the same for the same seed everywhere.
Tensor RandomTensor(const Shape& shape, uint64_t seed);

}  // namespace tilesmith
