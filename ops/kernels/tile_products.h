// Products of windows and weights by AMX: tiles of 16 positions x 16 output channels, summed over the windows.
//
// Numbers are multiplied a word of four bytes at a time: four bytes, the window's without a sign and the
// weights' with one, or two bf16; sums are int32 or float. An instruction multiplies 16 positions x `step_words`
// words of their windows with as many words of 16 channels' weights. Four sums are made together, of 32 positions
// and 32 channels, so that each tile that is loaded is used twice. Thread-safe. Original; what the instructions
// do: Intel's manual, TDPBUSD and TDPBF16PS.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilesmith {

constexpr int64_t kTileRows = 16;   // positions, and channels, of a tile
constexpr int64_t kTileWords = 16;  // at most, of a window, that one instruction takes

enum class TileNumbers { kBytes, kBf16 };

struct TileProducts {
  const std::byte* input = nullptr;   // where the window of position 0 begins
  int64_t position_bytes = 0;         // from one to the next
  int64_t positions = 0;              // at least 1
  const int32_t* runs = nullptr;      // bytes from there to each of the window's runs, of `steps` steps each
  int64_t run_count = 0, steps = 0;
  int64_t step_words = 0;             // 1 to kTileWords
  const std::byte* weights = nullptr; // [run][step][word][lane], words
  int64_t lanes = 0;                  // 16 or 32
  int64_t used_lanes = 0;             // 16 or 32: what is computed of them
  const void* bias = nullptr;         // [lane], a number of a sum's type
  std::byte* sums = nullptr;          // [position][lane], likewise
};

// The tiles of this thread, from the first products on until the end of its life. Other code that uses tiles may
// not run meanwhile on the thread.
class TileUnit {
 public:
  TileUnit() = default;
  ~TileUnit();
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;

  // sums[p][c] = bias[c] + sum over runs r and their words k of input[p * position_bytes + runs[r] + k] * weights.
  // Reads nothing outside of the windows. Precondition: a CPU with AMX (Target::amx).
  void Multiply(TileNumbers numbers, const TileProducts& products);

 private:
  void Configure(int64_t step_words, int64_t rows);

  int64_t step_words_ = 0, rows_ = 0;  // as configured; 0: not yet
};

}  // namespace tilesmith
