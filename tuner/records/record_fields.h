// The members of a struct's JSON object, listed once, and those of records: what writes them, reads them, and
// checks their ranges goes through these lists.
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
struct StructField {
  const char* name;
  Value Struct::*member;
  Presence presence = Presence::kRequired;
  std::optional<FieldRange> range = std::nullopt;
};
template <typename Struct, typename Value, typename... More>
StructField(const char*, Value Struct::*, More...) -> StructField<Struct, Value>;

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
    StructField{"device", &Target::device, Presence::kOptional}, StructField{"cpu", &Target::model},
    StructField{"isa", &Target::isa},
    StructField{"cores", &Target::cores, Presence::kRequired, FieldRange{1, kMaxThreads}},
    StructField{"l1d_bytes", &Target::l1d_bytes, Presence::kRequired, kCacheRange},
    StructField{"l2_bytes", &Target::l2_bytes, Presence::kRequired, kCacheRange},
    StructField{"l3_bytes", &Target::l3_bytes, Presence::kRequired, kCacheRange},
    StructField{"version", &Target::version}, StructField{"vnni", &Target::vnni, Presence::kOptional},
    StructField{"dot_bf16", &Target::bf16, Presence::kOptional},
    StructField{"tiles", &Target::amx, Presence::kOptional},
    StructField{"sm", &Target::compute, Presence::kOptional, FieldRange{0, 1000}},
    StructField{"tf32", &Target::tf32, Presence::kOptional},
    StructField{"reproducible", &Target::reproducible, Presence::kOptional},
    StructField{"sve_bytes", &Target::sve_bytes, Presence::kOptional, FieldRange{0, 64}},
    StructField{"dot", &Target::dot, Presence::kOptional},
    StructField{"i8mm", &Target::i8mm, Presence::kOptional});

template <>
inline constexpr auto kFields<MeasureConditions> = std::tuple(
    StructField{"threads", &MeasureConditions::threads, Presence::kRequired, FieldRange{1, kMaxThreads}},
    StructField{"pinned", &MeasureConditions::pinned},
    StructField{"cold_weights", &MeasureConditions::cold_weights});

template <>
inline constexpr auto kFields<Record> = std::tuple(
    FormatField{"tilesmith"}, StructField{"target", &Record::target},
    StructField{"workload", &Record::workload}, StructField{"template", &Record::template_name},
    StructField{"config", &Record::config}, StructField{"layouts", &Record::layouts},
    StructField{"conditions", &Record::conditions}, StructField{"status", &Record::status},
    StructField{"detail", &Record::detail, Presence::kOptional},
    StructField{"samples", &Record::sample_seconds}, StructField{"seconds", &Record::seconds},
    StructField{"statistic", &Record::statistic},
    StructField{"early_stopped", &Record::early_stopped, Presence::kWritten},
    StructField{"error", &Record::error, Presence::kOptional},
    StructField{"purpose", &Record::purpose, Presence::kOptional},
    StructField{"task_trials", &Record::task_trials, Presence::kOptional,
                FieldRange{0, std::numeric_limits<int>::max()}},
    StructField{"tuner", &Record::tuner}, StructField{"seed", &Record::seed},
    StructField{"time", &Record::time}, StructField{"origin", &Record::origin, Presence::kOptional});

// Calls visit(field) for each member of the struct's object, in their order.
template <typename Struct, typename Visit>
void ForEachField(const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, kFields<Struct>);
}

}  // namespace tilesmith
