#include "layouts/data_type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layouts/base/error.h"

namespace tilesmith {
namespace {

// By number.
constexpr std::array<std::string_view, kDataTypes> kNames = {"f32", "i64", "f16", "bf16", "i8",  "i16",
                                                             "i32", "u8",  "u16", "u32",  "u64", "bool"};

}  // namespace

std::string_view DataTypeName(DataType type) { return kNames[static_cast<size_t>(type)]; }

DataType ParseDataType(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<DataType>(i);
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown element type \"{}\" (known: {})", text, fmt::join(kNames, ", ")));
}

}  // namespace tilesmith
