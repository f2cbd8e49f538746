#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <vector>

namespace tilesmith::fuzz {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kIntegers[] = {0, 1, 2, 3, 5, 7, 8, 16, 17, 63, 64, 100, 127, 128, 255, 256, 1000, 4096,
                                 32767, 65535, 65536, 1000000, 0x7fffffff, 1L << 31, 1L << 32, 1000000000,
                                 (1L << 53) + 1, 1L << 61, 1L << 62, kMax, kMax - 1, kMax / 2, -1, -2, -8,
                                 -128, -(1L << 31), -kMax - 1, 3037000500, 2147483629, 4294967311, 1L << 40,
                                 // Seven times this is 1 mod 2^64.
                                 7905747460161236407};
constexpr const char* kNoIntegers[] = {"1e308",
                                       "1e309",
                                       "-0",
                                       "0.5",
                                       "1e-320",
                                       "-1.5",
                                       "nan",
                                       "NaN",
                                       "inf",
                                       "-inf",
                                       "1e",
                                       "18446744073709551615",
                                       "9223372036854775808",
                                       "-9223372036854775809",
                                       "0x10",
                                       "007",
                                       "18446744073709551616",
                                       "99999999999999999999999999999999999"};

struct Piece {
  size_t at = 0, bytes = 0;
};

Piece RandomPiece(const std::string& text, Mutation& mutation) {
  if (text.empty()) return {};
  const size_t at = mutation.Below(text.size());
  const size_t most = std::min<size_t>(text.size() - at, mutation.OneIn(4) ? text.size() : 16);
  return {at, 1 + mutation.Below(most)};
}

// A number of the text, as nearly as digits tell; without any, an empty piece.
Piece RandomNumber(const std::string& text, Mutation& mutation) {
  const size_t from = mutation.Below(text.size());
  constexpr const char* kDigits = "0123456789";
  size_t at = text.find_first_of(kDigits, from);
  if (at == std::string::npos) at = text.find_first_of(kDigits);
  if (at == std::string::npos) return {};
  while (at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0) --at;
  const size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
  if (at > 0 && text[at - 1] == '-') --at;
  return {at, end - at};
}

std::vector<Piece> Lines(const std::string& text) {
  std::vector<Piece> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back({at, end - at});
    at = end;
  }
  return lines;
}

std::string MutateLines(std::string input, Mutation& mutation) {
  const std::vector<Piece> lines = Lines(input), others = Lines(mutation.other);
  if (lines.empty()) return input;
  const Piece line = lines[mutation.Below(lines.size())], place = lines[mutation.Below(lines.size())];
  switch (mutation.Below(4)) {
    case 0:
      return input.erase(line.at, line.bytes);
    case 1:
      return input.insert(place.at, input.substr(line.at, line.bytes));
    case 2:
      if (others.empty()) return input;
      return input.insert(place.at, [&] {
        const Piece taken = others[mutation.Below(others.size())];
        return mutation.other.substr(taken.at, taken.bytes);
      }());
    default:
      return input.substr(0, line.at + mutation.Below(line.bytes));
  }
}

}  // namespace

int64_t ExtremeInteger(Mutation& mutation) { return mutation.random.Pick(std::span(kIntegers)); }

std::string ExtremeNumber(Mutation& mutation) {
  if (mutation.OneIn(4)) return mutation.random.Pick(std::span(kNoIntegers));
  return std::to_string(ExtremeInteger(mutation));
}

std::string MutateBytes(std::string input, Mutation& mutation) {
  const Piece piece = RandomPiece(input, mutation);
  const std::string part = input.substr(piece.at, piece.bytes);
  switch (mutation.Below(7)) {
    case 0:
      if (!input.empty()) input[piece.at] = static_cast<char>(input[piece.at] ^ (1 << mutation.Below(8)));
      return input;
    case 1:
      if (!input.empty()) input[piece.at] = static_cast<char>(mutation.Below(256));
      return input;
    case 2: {
      const int64_t value = ExtremeInteger(mutation);
      const size_t bytes = std::min<size_t>(size_t{1} << mutation.Below(4), input.size() - piece.at);
      if (!input.empty()) std::memcpy(input.data() + piece.at, &value, bytes);
      return input;
    }
    case 3:
      return input.erase(piece.at, piece.bytes);
    case 4:
      return input.insert(mutation.Below(input.size() + 1), part);
    case 5: {
      const Piece taken = RandomPiece(mutation.other, mutation);
      return input.replace(piece.at, mutation.OneIn(2) ? piece.bytes : 0, mutation.other, taken.at,
                           taken.bytes);
    }
    default:
      return input.insert(piece.at, 1 + mutation.Below(8), static_cast<char>(mutation.Below(256)));
  }
}

std::string MutateText(std::string input, Mutation& mutation) {
  const Piece piece = RandomPiece(input, mutation);
  switch (mutation.Below(8)) {
    case 0:
    case 1:
    case 2: {
      const Piece number = RandomNumber(input, mutation);
      return input.replace(number.at, number.bytes, ExtremeNumber(mutation));
    }
    case 3:
    case 4: {
      if (mutation.words.empty()) return MutateBytes(std::move(input), mutation);
      const std::string word(mutation.random.Pick(mutation.words));
      return input.replace(piece.at, mutation.OneIn(2) ? piece.bytes : 0, word);
    }
    case 5:
      return MutateLines(std::move(input), mutation);
    case 6: {  // one piece very often
      const std::string part = input.substr(piece.at, std::min<size_t>(piece.bytes, 8));
      std::string many;
      const size_t times = size_t{1} << mutation.Below(12);
      for (size_t i = 0; i < times; ++i) many += part;
      return input.insert(piece.at, many);
    }
    default:
      return MutateBytes(std::move(input), mutation);
  }
}

}  // namespace tilesmith::fuzz
