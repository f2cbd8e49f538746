// Products of windows and weights by AMX: tiles of 16 positions x 16 output channels, summed over the
// windows.
//
// Numbers are multiplied a word of four bytes at a time: four bytes, the window's without a sign and the
// weights' with one, or two bf16; sums are int32 or float. An instruction multiplies 16 positions x
// `step_words` words of their windows with as many words of 16 channels' weights. Four sums are made
// together, of 32 positions and 32 channels, so that each tile that is loaded is used twice. Thread-safe.
// Original; what the instructions do: Intel's manual, TDPBUSD and TDPBF16PS.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilesmith {

constexpr int64_t kTileRows = 16;   // positions, and channels, of a tile
constexpr int64_t kTileWords = 16;  // at most, of a window, that one instruction takes

constexpr int64_t kMaxTilePositions = 2 * kTileRows;

struct TileProducts {
  const std::byte* input = nullptr;  // where the window of position 0 begins
  int64_t position_bytes = 0;        // from one to the next
  int64_t positions = 0;             // 1 to kMaxTilePositions
  const int32_t* runs = nullptr;     // bytes from there to each of the window's runs, of `steps` steps each
  int64_t run_count = 0, steps = 0;
  int64_t step_words = 0;              // 1 to kTileWords
  const std::byte* weights = nullptr;  // [run][step][word][lane], words
  int64_t lanes = 0;                   // 16 or 32
  int64_t used_lanes = 0;              // 16 or 32: what is computed of them
  const int32_t* bias = nullptr;       // [lane]
  int32_t* sums = nullptr;             // [position][lane]
};

// Where the second tile of some positions begins: earlier than the first one ends, where there is no whole
// one left.
constexpr int64_t SecondTile(int64_t positions) { return positions - kTileRows; }

// The tiles of this thread, from the first products on until the end of its life. Other code that uses tiles
// may not run meanwhile on the thread.
class TileUnit {
 public:
  TileUnit() = default;
  ~TileUnit();
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;

  // For steps of so many words, and tiles of `rows` positions: all, or as many as there are of fewer than 16.
  void Configure(int64_t step_words, int64_t rows);
  // sums[p][c] = bias[c] + sum over runs r and their bytes k of input[p * position_bytes + runs[r] + k] *
  // weights. Reads nothing outside of the windows. Precondition: a CPU with AMX (Target::amx).
  void MultiplyBytes(const TileProducts& products);

 private:
  int64_t step_words_ = 0, rows_ = 0;  // as configured; 0: not yet
};

// Tiles by what they hold: sums of two tiles of positions by two of channels, their windows, and weights.
constexpr int kFirstWindowTile = 4, kFirstWeightTile = 6;

}  // namespace tilesmith
