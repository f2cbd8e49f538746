// A hash that is the same on every machine and in every version, which std::hash does not promise.
#pragma once

#include <cstdint>
#include <string_view>

namespace tilesmith {

// FNV-1a, 64 bits (Fowler, Noll, Vo). Against accidents, not against anyone who wants two texts to collide.
class StableHash {
 public:
  // "ab" and then "c" is another hash than "a" and then "bc".
  void Add(std::string_view text) {
    for (const char c : text) Mix(static_cast<unsigned char>(c));
    Mix(0);
  }
  void Add(int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) Mix(static_cast<uint64_t>(value) >> shift & 0xff);
  }
  uint64_t value() const { return value_; }

 private:
  void Mix(uint64_t byte) { value_ = (value_ ^ byte) * 1099511628211U; }

  uint64_t value_ = 14695981039346656037U;
};

}  // namespace tilesmith
