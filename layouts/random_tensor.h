// Seeded data for measurements and for inputs nobody gave, and how far answers are apart.
#pragma once

#include <cstdint>

#include "layouts/tensor.h"

namespace tilesmith {

// Plain layout, uniform in [-1, 1]: the same for the same seed everywhere.
Tensor RandomTensor(const Shape& shape, uint64_t seed);
// An input of any type: floats as above, uint8 uniform over all its values as in an image, and zeros for all
// others, which may be indices.
Tensor RandomInput(const Shape& shape, DataType type, uint64_t seed);

// Largest difference of two plain tensors of one shape, relative to the largest magnitude in `expected`
// (absolute when that is zero); infinite when anything is not a number.
double RelativeDifference(const Tensor& actual, const Tensor& expected);

}  // namespace tilesmith
