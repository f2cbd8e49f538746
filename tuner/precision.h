// What convs of floats may be computed and stored in.
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
};

// "f32", "bf16", "int8", "mixed".
std::string_view PrecisionName(Precision precision);
// The inverse; "tf32" is f32, too, for what is multiplied on a GPU is a matter of the target (Target::tf32).
// Throws Error(kUsage) naming the text and the known names.
Precision ParsePrecision(std::string_view text);
// All that is parsed, for the choices of an option.
std::vector<std::string> PrecisionNames();

// Whether the record computes or stores anything of a conv of floats in another type than f32.
bool IsNarrow(const Record& record);
// The records, of any workloads, that may be used; kBf16: a workload keeps its f32 records where it has no
// others that worked.
std::vector<Record> RecordsIn(Precision precision, const std::vector<Record>& records);

}  // namespace tilesmith
