// How integers stand for real numbers: real = (stored - zero_point) * scale.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layouts/tensor.h"
#include "ops/base/activation.h"

namespace tilesmith {

// One scale and zero point for a whole tensor, or one for each index along an axis, or, in blocks, for so
// many neighbours along it, of which the last may be fewer: scales then have the tensor's shape, but for the
// axis.
struct Quantization {
  DataType type = DataType::kU8;  // of what is stored: u8, i8, u16, i16, or (to be read only) i32
  int64_t axis = 0;               // >= 0; without meaning where there is one scale
  std::vector<float> scales = {};
  std::vector<int32_t> zero_points = {};  // as many as scales; within the type's range
  int64_t block = 0;                      // neighbours; 0: not in blocks
  bool operator==(const Quantization&) const = default;

  bool per_tensor() const { return scales.size() == 1; }
};

// Integers and what they stand for.
struct QuantizedTensor {
  std::shared_ptr<const Tensor> stored;
  Quantization quantization;
};

constexpr bool IsByte(DataType type) { return type == DataType::kU8 || type == DataType::kI8; }

// The ends of the type's range. Precondition: an integer type of at most 16 bits.
struct StoredRange {
  int32_t low, high;
  bool operator==(const StoredRange&) const = default;
};
StoredRange RangeOf(DataType type);

// saturate(round(real / scale) + zero_point): the quotient is a float, ties round to even, and a NaN becomes
// the lowest number of the range, as in ONNX Runtime.
int32_t QuantizedValue(float real, float scale, int32_t zero_point, StoredRange range);

// The limits with the bounds that an activation in front of what quantises sets; nullopt where it does more
// than that, or nothing is left between them.
std::optional<StoredRange> Clamped(const Activation& activation, const Quantization& output,
                                   StoredRange limits);

// How an op on reals stands between bytes, which are of one positive scale. An op on bytes says which ops, in
// which forms, it computes instead: its function Of gives it, or null. Passes ask all of those, and what none
// takes stays on reals.
struct ByteForm {
  std::vector<Quantization> inputs = {};  // none: they are real
  std::vector<Shape> shapes = {};         // of the inputs
  Quantization output;
  StoredRange limits;  // of what is stored, within the type's range

  // Whether all that is read means what it means in the output, and nothing is clamped.
  bool KeepsBytes() const;
};

// From the tensors of a model: the scales, and the zero points or null, which stand for zeros. Throws
// Error(kBadModel) when they do not fit each other, or the type.
Quantization QuantizationOf(const Tensor& scales, const Tensor* zero_points, DataType type, int64_t axis,
                            int64_t block = 0);

// What the scales' shape is where blocks of a tensor have one each. Preconditions: block > 0, 0 <= axis <
// rank.
Shape BlockedShape(Shape shape, int64_t axis, int64_t block);

// Throws Error(kBadModel) unless there is one scale, or one for each index or block along the axis of
// `shape`.
void CheckFits(const Quantization& quantization, const Shape& shape);

// " u8", " i8 along 1", " i8 along 1 in blocks of 32": what distinguishes signatures.
std::string Describe(const Quantization& quantization);

// Every element of a plain tensor, quantised or read back. Precondition: CheckFits.
Tensor Quantized(const Tensor& reals, const Quantization& quantization);
Tensor Dequantized(const Tensor& stored, const Quantization& quantization);

}  // namespace tilesmith
