// Tensors beside what they should be. NaN equals NaN and an infinity itself; a NaN or infinity on one side
// only is a difference that no bound allows.
#pragma once

#include <cstdint>
#include <string>

#include "layouts/tensor.h"

namespace tilesmith {

struct TensorDifference {
  // The largest difference of two numbers, of the largest number expected; of other types than floats, the
  // share of the elements that differ.
  double relative = 0;
  int64_t one_sided = -1;   // the first element that is NaN or infinite on one side only, or differently; -1
  int64_t not_numbers = 0;  // elements that are NaN, or the same infinity, on both sides
};

// Plain tensors of one shape, and of one type or of floats.
TensorDifference CompareTensors(const Tensor& actual, const Tensor& expected);

// Elements of plain tensors of one shape and type that are not the same bits; the first of them in `first`,
// if there is one.
int64_t CountDifferent(const Tensor& actual, const Tensor& expected, int64_t* first);

// Whether both are NaN, or the same infinity.
bool SameNonFinite(float a, float b);
// The element as a number.
std::string ElementText(const Tensor& tensor, int64_t element);
// "element 17 (0, 3, 0, 2)": an element of a plain tensor by its number and by its index on each axis.
std::string DescribeElement(const Shape& shape, int64_t element);

}  // namespace tilesmith
