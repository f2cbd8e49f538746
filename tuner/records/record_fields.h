// The members of a record's JSON object, listed once: what writes them, reads them, and checks their ranges
// goes through these lists.
//
// They are in the order in which a reader looks at them, so the first one of them that is wrong is the one
// named. In a log they are sorted by name.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>

#include "tuner/records/record.h"

namespace tilesmith {

enum class Presence {
  kRequired,  // always written; an object without it is refused
  kWritten,   // always written, may be missing
  kOptional,  // left out where it is what a new struct has
};

// The values that an integer may have.
struct FieldRange {
  int64_t least = 0, most = 0;
};

template <typename Struct, typename Value>
struct RecordField {
  const char* name;
  Value Struct::*member;
  Presence presence = Presence::kRequired;
  std::optional<FieldRange> range = std::nullopt;
};
template <typename Struct, typename Value, typename... More>
RecordField(const char*, Value Struct::*, More...) -> RecordField<Struct, Value>;

// No member of the record but the format's version, kRecordFormat in all that is written.
struct FormatField {
  const char* name;
  static constexpr Presence presence = Presence::kRequired;
};

constexpr FieldRange kCacheRange = {0, int64_t{1} << 50};

template <typename Struct>
inline constexpr std::tuple<> kFields = {};

template <>
inline constexpr auto kFields<Target> = std::tuple(
    RecordField{"device", &Target::device, Presence::kOptional}, RecordField{"cpu", &Target::model},
    RecordField{"isa", &Target::isa},
    RecordField{"cores", &Target::cores, Presence::kRequired, FieldRange{1, kMaxThreads}},
    RecordField{"l1d_bytes", &Target::l1d_bytes, Presence::kRequired, kCacheRange},
    RecordField{"l2_bytes", &Target::l2_bytes, Presence::kRequired, kCacheRange},
    RecordField{"l3_bytes", &Target::l3_bytes, Presence::kRequired, kCacheRange},
    RecordField{"version", &Target::version}, RecordField{"vnni", &Target::vnni, Presence::kOptional},
    RecordField{"dot_bf16", &Target::bf16, Presence::kOptional},
    RecordField{"tiles", &Target::amx, Presence::kOptional},
    RecordField{"sm", &Target::compute, Presence::kOptional, FieldRange{0, 1000}},
    RecordField{"tf32", &Target::tf32, Presence::kOptional});

template <>
inline constexpr auto kFields<MeasureConditions> = std::tuple(
    RecordField{"threads", &MeasureConditions::threads, Presence::kRequired, FieldRange{1, kMaxThreads}},
    RecordField{"pinned", &MeasureConditions::pinned},
    RecordField{"cold_weights", &MeasureConditions::cold_weights});

template <>
inline constexpr auto kFields<Record> = std::tuple(
    FormatField{"tilesmith"}, RecordField{"target", &Record::target},
    RecordField{"workload", &Record::workload}, RecordField{"template", &Record::template_name},
    RecordField{"config", &Record::config}, RecordField{"layouts", &Record::layouts},
    RecordField{"conditions", &Record::conditions}, RecordField{"status", &Record::status},
    RecordField{"detail", &Record::detail, Presence::kOptional},
    RecordField{"samples", &Record::sample_seconds}, RecordField{"seconds", &Record::seconds},
    RecordField{"statistic", &Record::statistic},
    RecordField{"early_stopped", &Record::early_stopped, Presence::kWritten},
    RecordField{"error", &Record::error, Presence::kOptional},
    RecordField{"purpose", &Record::purpose, Presence::kOptional},
    RecordField{"task_trials", &Record::task_trials, Presence::kOptional,
                FieldRange{0, std::numeric_limits<int>::max()}},
    RecordField{"tuner", &Record::tuner}, RecordField{"seed", &Record::seed},
    RecordField{"time", &Record::time}, RecordField{"origin", &Record::origin, Presence::kOptional});

// Calls visit(field) for each member of the struct's object, in their order.
template <typename Struct, typename Visit>
void ForEachField(const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, kFields<Struct>);
}

}  // namespace tilesmith
