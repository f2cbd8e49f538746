// The types that convs of floats may be computed and stored in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tuner/records/record.h"

namespace tilesmith {

enum class Precision {
  kF32,
  kBf16,   // bf16 wherever a template computes it
  kInt8,   // of a network that is quantised: what stays float in it is f32
  kMixed,  // any of them, conv by conv
  kTf32,   // f32, which a GPU may round where it multiplies (Target::tf32): records of it are in f32
};
inline constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kBf16, Precision::kInt8,
                                            Precision::kMixed, Precision::kTf32};
// Whether all convs are stored, and their records are, in f32.
constexpr bool IsF32(Precision precision) {
  return precision == Precision::kF32 || precision == Precision::kTf32;
}

// "f32", "bf16", "int8", "mixed", "tf32".
std::string_view PrecisionName(Precision precision);
// The inverse. Throws Error(kUsage) naming the text and the known names.
Precision ParsePrecision(std::string_view text);

// Whether the record computes or stores anything of a conv of floats in another type than f32.
bool IsNarrow(const Record& record);
// The records, of any workloads, that may be used; kBf16: a workload keeps its f32 records where it has no
// others that worked.
std::vector<Record> RecordsIn(Precision precision, const std::vector<Record>& records);

}  // namespace tilesmith
