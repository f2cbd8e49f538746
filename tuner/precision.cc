#include "tuner/precision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "layouts/base/error.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
std::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return "f32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kInt8:
      return "int8";
    case Precision::kMixed:
      return "mixed";
    case Precision::kTf32:
      return "tf32";
  }
  return "";
}

Precision ParsePrecision(std::string_view text) {
  for (const Precision precision : kPrecisions)
    if (PrecisionName(precision) == text) return precision;
  std::vector<std::string_view> known;
  for (const Precision precision : kPrecisions) known.push_back(PrecisionName(precision));
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown precision \"{}\" (known: {})", text, fmt::join(known, ", ")));
}

bool IsNarrow(const Record& record) {
  if (record.workload.bytes) return false;
  const auto is_narrow = [](const Layout& layout) { return layout.type() != DataType::kF32; };
  if (is_narrow(record.layouts.in) || is_narrow(record.layouts.out)) return true;
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  return conv_template != nullptr && conv_template->FactorType() != DataType::kF32;
}

std::vector<Record> RecordsIn(Precision precision, const std::vector<Record>& records) {
  if (precision == Precision::kMixed) return records;
  std::set<std::string> narrow;  // workloads
  for (const Record& record : records) {
    if (precision == Precision::kBf16 && record.status == TrialStatus::kOk && IsNarrow(record))
      narrow.insert(WorkloadToString(record.workload));
  }
  std::vector<Record> kept;
  std::ranges::copy_if(records, std::back_inserter(kept), [&](const Record& record) {
    return IsNarrow(record) == narrow.contains(WorkloadToString(record.workload));
  });
  return kept;
}

}  // namespace tilesmith
