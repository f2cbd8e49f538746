// Compiled networks: header and tables. Sums are put right in half of the inputs, as the page of the format
// says (graph_tuner/compiled/README.md), since nothing behind them would be read otherwise.
#include <algorithm>
#include <array>
#include <cstring>

#include "graph_tuner/compiled/compiled_file.h"
#include "tests/fuzz/targets/targets.h"

namespace tilesmith::fuzz {
namespace {

constexpr size_t kHeaderBytes = 104, kTables = 24, kHeaderSum = 96, kDirectoryEntry = 24;

uint64_t SumOf(std::string_view bytes) {
  constexpr uint64_t kPrime = 1099511628211U;
  std::array<uint64_t, 4> lanes = {1, 2, 3, 4};
  uint64_t words = 0;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(bytes.size() - at, sizeof(word)));
    uint64_t& lane = lanes[words++ % lanes.size()];
    lane = (lane ^ word) * kPrime;
    lane ^= lane >> 29;
  }
  uint64_t sum = words;
  for (const uint64_t lane : lanes) sum = (sum ^ lane) * kPrime;
  return sum;
}

void PutSumsRight(std::string& file) {
  if (file.size() < kHeaderBytes) return;
  uint64_t section[2];  // offset, bytes
  std::memcpy(section, file.data() + kTables, sizeof(section));
  if (section[0] <= file.size() && section[1] <= file.size() - section[0]) {
    char* const tables = file.data() + section[0];
    const auto put_sum = [&](uint64_t offset, uint64_t bytes, char* at) {
      if (offset > section[1] || bytes > section[1] - offset) return;
      const uint64_t sum = SumOf(std::string_view(tables + offset, bytes));
      std::memcpy(at, &sum, sizeof(sum));
    };
    uint64_t counts[2] = {};  // networks, bytes of summaries
    if (section[1] >= sizeof(counts)) std::memcpy(counts, tables, sizeof(counts));
    const uint64_t networks = std::min<uint64_t>(counts[0], section[1] / kDirectoryEntry);
    for (uint64_t i = 0; i < networks; ++i) {
      const uint64_t at = sizeof(counts) + i * kDirectoryEntry;
      if (at + kDirectoryEntry > section[1]) break;
      uint64_t place[2];
      std::memcpy(place, tables + at, sizeof(place));
      put_sum(place[0], place[1], tables + at + sizeof(place));
    }
    put_sum(0, sizeof(counts) + networks * kDirectoryEntry + counts[1],
            file.data() + kTables + sizeof(section));
  }
  const uint64_t sum = SumOf(std::string_view(file).substr(0, kHeaderSum));
  std::memcpy(file.data() + kHeaderSum, &sum, sizeof(sum));
}

void Run(const std::string& input) {
  const InputFile file(input);
  const CompiledFile compiled(file.path());
  for (size_t i = 0; i < compiled.networks().size(); ++i) compiled.Check(i);
}

// Most of a file are zeros between sections, weights and code: what is changed lies in the tables.
std::string Mutate(std::string input, Mutation& mutation) {
  uint64_t section[2] = {};
  if (input.size() >= kHeaderBytes) std::memcpy(section, input.data() + kTables, sizeof(section));
  if (mutation.OneIn(10) || section[0] > input.size() || section[1] > input.size() - section[0])
    return MutateBytes(std::move(input), mutation);
  std::string tables = MutateBytes(input.substr(section[0], section[1]), mutation);
  tables.resize(section[1]);
  input.replace(section[0], section[1], tables);
  if (!mutation.OneIn(8)) PutSumsRight(input);
  return input;
}

}  // namespace

FuzzTarget CompiledTarget() {
  return {
      .name = "compiled", .reads = "a compiled network", .run = Run, .mutate = Mutate, .short_runs = 4000};
}

}  // namespace tilesmith::fuzz
