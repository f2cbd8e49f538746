// Parts of a quantised convolution's output whose windows read the image by the same taps: what lies in
// padding all over is not multiplied.
#pragma once

#include <span>
#include <vector>

#include "ops/conv/window_plan.h"
#include "ops/conv/window_taps.h"

namespace tilesmith {

class WindowSections {
 public:
  // skips: whether padding is left out, where that saves enough; otherwise one section has all taps.
  WindowSections(const WindowPlan& plan, bool skips);

  struct Section {
    AlikeOutputs rows, columns;
    // Of the plan, those that are read: offsets, and where their weights begin among the block's, in bytes.
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
  // Leaves of [first, first + count) what is among the outputs; whether anything is.
  static bool Cut(const AlikeOutputs& outputs, int64_t& first, int64_t& count);

  int64_t kh_, kw_;
  std::vector<Section> all_;
};

}  // namespace tilesmith
