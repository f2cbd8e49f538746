// What commands do with a record that was read, short of running it.
#pragma once

#include <span>
#include <string_view>

#include "tuner/records/record.h"

namespace tilesmith::fuzz {

// Asks the record's template, if it is known, all that a record of a valid config is asked.
void UseRecord(const Record& record);

// Names and values that records, plans and workloads are made of.
std::span<const std::string_view> RecordWords();

}  // namespace tilesmith::fuzz
