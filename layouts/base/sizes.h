// Sizes: element counts, bytes, strides and positions, computed so that they cannot overflow.
//
// Sizes come from model files, plans and flags, whose authors may be mistaken or hostile. Whatever is
// multiplied or added up to find how large a tensor, a window or a buffer is, is a Checked; a Graph accepts a
// tensor only within its SizeLimits. Offsets inside of a tensor that was accepted are smaller than its size:
// those are plain arithmetic.
#pragma once

#include <cstdint>

namespace tilesmith {

// No limit can be set higher: a tensor of so many elements, padded up to blocks of Layout::kMaxBlock
// channels, takes a number of bytes that fits 64 bits.
constexpr int64_t kMaxTensorElements = int64_t{1} << 40;
// Dimensions of a tensor.
constexpr int64_t kMaxRank = 32;
// Kernel sizes, strides, dilations and pads.
constexpr int64_t kMaxWindow = 1 << 24;

// What one network may ask for.
struct SizeLimits {
  int64_t tensor_elements = int64_t{1} << 31;  // of one tensor, at most kMaxTensorElements
  int64_t network_bytes = int64_t{1} << 50;    // weights as packed, activations and scratch together
  // Multiplications, additions and copied elements that importing may spend on what depends on constants
  // only, besides some for each element in the file.
  int64_t folded_operations = int64_t{1} << 27;
  bool operator==(const SizeLimits&) const = default;
};

[[noreturn]] void ThrowOverflow(int64_t a, char operation, int64_t b);

// A 64-bit integer whose arithmetic throws Error(kBadModel), naming both operands, instead of overflowing.
class Checked {
 public:
  constexpr Checked(int64_t value) : value_(value) {}  // NOLINT: so that it mixes with plain integers
  constexpr int64_t value() const { return value_; }

  friend Checked operator+(Checked a, Checked b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &sum)) ThrowOverflow(a.value_, '+', b.value_);
    return sum;
  }
  friend Checked operator-(Checked a, Checked b) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a.value_, b.value_, &difference)) ThrowOverflow(a.value_, '-', b.value_);
    return difference;
  }
  friend Checked operator*(Checked a, Checked b) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &product)) ThrowOverflow(a.value_, '*', b.value_);
    return product;
  }
  Checked& operator+=(Checked b) { return *this = *this + b; }
  Checked& operator*=(Checked b) { return *this = *this * b; }

 private:
  int64_t value_;
};

// ceil(a / b). Preconditions: a >= 0, b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }
// The smallest multiple of b that is no less than a. Preconditions as CeilDiv's.
inline int64_t RoundUp(int64_t a, int64_t b) { return (Checked(CeilDiv(a, b)) * b).value(); }

}  // namespace tilesmith
