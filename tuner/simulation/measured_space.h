// An exhaustively measured config space: searchers can be compared on it again and again, without timing, on
// any machine.
//
// File: a JSON line, then a line for each valid config: its index in the header's knobs (mixed radix, first
// knob fastest) and its time in microseconds, or "failed". Text after '#' is a remark.
//   {"tilesmith_space":1,"target":{...},"workload":"...","template":"direct","conditions":{...},
//    "knobs":[{"name":"ic_block","values":[16]},...]}
//   0 412.55
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "templates/base/config.h"
#include "tuner/records/record.h"

namespace tilesmith {

// As many configs as anyone would measure.
constexpr uint64_t kMaxSpaceCombinations = 1 << 24;

struct MeasuredSpace {
  Target target;
  ConvWorkload workload;
  std::string template_name;
  MeasureConditions conditions;
  std::vector<Knob> knobs;  // help texts are empty
  // Seconds by index, nullopt for a config that failed. Indices that are absent are not valid configs.
  std::map<uint64_t, std::optional<double>> seconds;
};

// The space a searcher sees: valid is what was measured. Refers to `measured`, which must outlive it.
ConfigSpace SpaceOf(const MeasuredSpace& measured);
// The fastest time. Throws Error(kNoCandidate) when everything failed.
double TrueBest(const MeasuredSpace& measured);

// Gives the configs as tuning records, for a cost model to learn from.
std::vector<Record> RecordsOf(const MeasuredSpace& measured);

// Throws Error(kEnvironment) naming the path.
void WriteMeasuredSpace(const MeasuredSpace& measured, const std::string& path);
// Throws Error(kEnvironment) when the file cannot be read, Error(kUsage) naming path and line when it is not
// a measured space: its knobs are those of its template today, with some of their values, and some config
// worked.
MeasuredSpace ReadMeasuredSpace(const std::string& path);

}  // namespace tilesmith
