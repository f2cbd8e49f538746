#include "ops/base/onnx_type.h"

#include <array>

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

int32_t OnnxTypeNumber(DataType type) {
  for (const Numbered& known : kNumbers) {
    if (known.type == type) return known.number;
  }
  return 0;
}

}  // namespace tilesmith
