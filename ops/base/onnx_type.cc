#include "ops/base/onnx_type.h"

#include <array>
#include <iterator>

namespace tilesmith {
namespace {

struct Numbered {
  int32_t number;
  DataType type;
};
constexpr int32_t kDouble = 11;
constexpr std::array<Numbered, kDataTypes> kNumbers = {{{1, DataType::kF32},
                                                        {2, DataType::kU8},
                                                        {3, DataType::kI8},
                                                        {4, DataType::kU16},
                                                        {5, DataType::kI16},
                                                        {6, DataType::kI32},
                                                        {7, DataType::kI64},
                                                        {9, DataType::kBool},
                                                        {10, DataType::kF16},
                                                        {12, DataType::kU32},
                                                        {13, DataType::kU64},
                                                        {16, DataType::kBf16}}};

}  // namespace

std::optional<DataType> TypeOfOnnx(int64_t number) {
  if (number == kDouble) return DataType::kF32;
  for (const Numbered& known : kNumbers) {
    if (known.number == number) return known.type;
  }
  return std::nullopt;
}

int64_t OnnxElementBits(int64_t number) {
  // By number, as TensorProto.DataType has them: none, f32, u8, i8, u16, i16, i32, i64, string, bool, f16,
  // f64, u32, u64, complex of 2 x 32 and 2 x 64 bits, bf16, four of 8 bits, u4, i4, f4, f8 of powers of two,
  // u2, i2.
  constexpr int64_t kBits[] = {0,  32,  8,  8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64,
                               64, 128, 16, 8, 8,  8,  8,  4,  4, 4, 8,  2,  2};
  return number < 0 || number >= std::ssize(kBits) ? 0 : kBits[number];
}

int32_t OnnxTypeNumber(DataType type) {
  for (const Numbered& known : kNumbers) {
    if (known.type == type) return known.number;
  }
  return 0;
}

}  // namespace tilesmith
