// Records that come with tilesmith: what was fast for the convolutions of well-known networks on other
// machines.
//
// They are distilled logs (record_groups.h), one for each kind of CPU, compiled in from
// tuner/records/shipped. What they say is not believed: their schedules are the first to be tried.
// tools/ship-records makes them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "layouts/base/target.h"
#include "tuner/records/record.h"

namespace tilesmith {

// "avx2-amd-epyc", and the log's text.
struct ShippedLog {
  std::string_view name, text;
};
std::span<const ShippedLog> ShippedLogs();

// All that this version of tilesmith can read of them. Read once; thread-safe.
const std::vector<Record>& ShippedRecords();

// What to try first for the workload: schedules that worked for it on CPUs of the same ISA, none twice, at
// most `most`. First those of the same machine and so many threads, then those of the same machine, then
// others; among these the faster ones first.
std::vector<Record> Suggestions(std::span<const Record> shipped, const ConvWorkload& workload,
                                const Target& cpu, int threads, size_t most = 12);

}  // namespace tilesmith
