// The tiles of AMX, which multiply windows and weights (templates/base/window_plan.h).
//
// Four sums are made together, of 32 positions and 32 channels, so that each tile that is loaded is used
// twice. Original; what the instructions do: Intel's manual, TDPBUSD and TDPBF16PS.
#pragma once

#include <cstdint>

#include "templates/base/window_plan.h"

namespace tilesmith {

// The tiles of this thread, from the first Configure on until the end of its life. Other code that uses tiles
// may not run meanwhile on the thread.
class TileUnit {
 public:
  TileUnit() = default;
  ~TileUnit();
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;

  // For steps of so many words, and tiles of `rows` positions: all, or as many as there are of fewer than 16.
  // Precondition: a CPU with AMX (Target::amx).
  void Configure(int64_t step_words, int64_t rows);

 private:
  int64_t step_words_ = 0, rows_ = 0;  // as configured; 0: not yet
};

// Tiles by what they hold: sums of two tiles of positions by two of channels, their windows, and weights.
constexpr int kFirstWindowTile = 4, kFirstWeightTile = 6;

}  // namespace tilesmith
