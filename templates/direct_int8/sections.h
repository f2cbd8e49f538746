// Parts of a quantised convolution's output whose windows read the image by the same taps: what lies in
// padding all over is not multiplied.
#pragma once

#include <span>
#include <vector>

#include "templates/base/window_plan.h"

namespace tilesmith::direct_int8 {

// One axis of a convolution: which taps of its windows read the image, and which lie wholly in its padding.
struct WindowAxis {
  int64_t outputs = 1, inputs = 1, taps = 1;
  int64_t stride = 1, tap_step = 1;  // inputs from output to output, and from tap to tap
  int64_t padding = 0;               // before the first input
};

// Outputs [first, end) whose windows read the image by the taps [tap, end_tap), at most, and each of those by
// some of them.
struct AlikeOutputs {
  int64_t first = 0, end = 0;
  int64_t tap = 0, end_tap = 0;
  bool operator==(const AlikeOutputs&) const = default;
};

// All outputs in order, neighbours by the same taps together. A window wholly in padding has the taps [0, 0).
std::vector<AlikeOutputs> OutputsByTaps(const WindowAxis& axis);

// The share of all taps that these leave out.
double SharePadded(const WindowAxis& axis, const std::vector<AlikeOutputs>& outputs);

class WindowSections {
 public:
  // skips: whether padding is left out, where that saves enough; otherwise one section has all taps.
  WindowSections(const WindowPlan& plan, bool skips);

  struct Section {
    AlikeOutputs rows, columns;
    // The plan's runs that are read: their offsets, and where their weights begin among the block's, in
    // bytes.
    std::vector<int32_t> runs, run_weights;
  };
  const std::vector<Section>& all() const { return all_; }

  // The sum of the weights that a section's windows read, of one output channel's [channel][kh][kw].
  int64_t SumReadBy(const Section& section, std::span<const int16_t> channel) const;

  // Calls visit(index, tile) for each section's part of the tile.
  template <typename Visit>
  void ForEachPart(const WindowTile& tile, const Visit& visit) const {
    for (size_t i = 0; i < all_.size(); ++i) {
      WindowTile part = tile;
      if (Cut(all_[i].rows, part.y, part.rows) && Cut(all_[i].columns, part.x, part.columns)) visit(i, part);
    }
  }

 private:
  // Cuts [first, first + count) down to what is among the outputs; returns whether anything is.
  static bool Cut(const AlikeOutputs& outputs, int64_t& first, int64_t& count);

  int64_t kh_, kw_;
  std::vector<Section> all_;
};

}  // namespace tilesmith::direct_int8
