// Mutators: small random changes to an input. Deterministic for a given random state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/random.h"

namespace tilesmith::fuzz {

// What a mutator draws from.
struct Mutation {
  TestRandom& random;
  const std::string& other;                 // another input of the corpus, for splicing
  std::span<const std::string_view> words;  // of the format; may be empty

  bool OneIn(int64_t n) { return random.Integer(1, n) == 1; }
  size_t Below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random.Next() % n); }
};

// 0, -1, powers of two and their neighbours, numbers whose products wrap around.
int64_t ExtremeInteger(Mutation& mutation);
// The same as text, and what no integer is: 1e309, 99999999999999999999, nan.
std::string ExtremeNumber(Mutation& mutation);

// Flips, overwrites, removes, repeats and splices bytes.
std::string MutateBytes(std::string input, Mutation& mutation);
// Replaces numbers, inserts the format's words, removes, repeats and splices pieces and lines; bytes at
// times.
std::string MutateText(std::string input, Mutation& mutation);
// For lines that are JSON objects: swaps, repeats, removes and renames members, replaces values by those of
// other places or by extremes; text or bytes at times.
std::string MutateJsonLines(std::string input, Mutation& mutation);

}  // namespace tilesmith::fuzz
