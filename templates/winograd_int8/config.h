// Winograd's convolution of bytes, F(2x2, 3x3), exact, for CPUs without products of bytes: transformed inputs
// and weights are integers of 16 bits (loops.h), and there are 16 multiplications for four outputs instead
// of 36.
//
// A task is a block of output channels in a part of an image, some rows and columns of tiles of 2x2 outputs,
// whose windows are transformed in the thread's scratch. Where tasks of one part follow each other, a thread
// transforms it once.
#pragma once

#include <memory>

#include "layouts/base/sizes.h"
#include "layouts/base/split.h"
#include "layouts/base/target.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

const ConvTemplate& WinogradInt8Template();

namespace winograd_int8 {

struct WinogradCut {
  // Tiles of a task; 0: such that their transformed windows stay in a core's cache.
  int64_t tile_rows = 0, tile_columns = 0;
  // Tiles whose sums are in registers together; 0: QuantizedConvTilePixels.
  int64_t pixels = 0;
  bool operator==(const WinogradCut&) const = default;
};

// Whether it is expected to be faster than direct_int8. Precondition: the template supports the workload.
bool Pays(const ConvWorkload& workload);

struct WinogradPlan {
  // Precondition: the template supports the workload.
  WinogradPlan(const ConvWorkload& workload, const Target& cpu, const WinogradCut& cut = {});

  ConvWorkload conv;
  int64_t lanes, blocks;            // output channels of a block
  int64_t channels;                 // of the input in the scratch, whole vectors
  int64_t all_rows, all_columns;    // tiles
  int64_t tile_rows, tile_columns;  // of a part; the last ones have fewer
  int64_t row_parts, column_parts;
  int64_t pixels;

  int64_t words() const { return CeilDiv(conv.ic, 2); }
  int64_t part_tiles() const { return tile_rows * tile_columns; }
  // What lies in a thread's scratch: a part's widened input, its windows, their products and two rows of
  // sums.
  int64_t InputBytes() const { return (2 * tile_rows + 2) * (2 * tile_columns + 2) * channels * 2; }
  int64_t WindowBytes() const { return 16 * part_tiles() * channels * 2; }
  int64_t ProductBytes() const { return 16 * part_tiles() * lanes * 4; }
  int64_t ThreadBytes() const {
    return InputBytes() + WindowBytes() + ProductBytes() + 4 * tile_columns * lanes * 4;
  }
  WinogradCut cut() const { return {tile_rows, tile_columns, pixels}; }
  TaskGrid Grid() const;
};

// A workload and the values of the knobs, as the kernel computes them.
struct Schedule {
  ConvWorkload workload;
  Layout in, out;
  WinogradPlan plan;
};

// A task is a block of output channels in a part of an image.
TaskGrid GridOf(const Schedule& schedule);
LoopFeatures FeaturesOf(const Schedule& schedule);
LoopNest NestOf(const Schedule& schedule);
// Precondition: weights.quantized, an op of the schedule's workload.
std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights);

}  // namespace winograd_int8
}  // namespace tilesmith
