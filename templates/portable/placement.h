// A workload placed in memory: what the kernels of this folder derive from layouts, and share.
#pragma once

#include <cstdint>
#include <vector>

#include "layouts/base/target.h"
#include "layouts/layout.h"
#include "ops/conv/workload.h"
#include "templates/portable/tiles.h"

namespace tilesmith::portable {

struct Placement {
  ConvWorkload workload;
  Target cpu;
  int64_t in_block = 1, out_block = 1;           // BlockFor of the channels
  std::vector<int64_t> in_offsets, out_offsets;  // of each channel at pixel (0, 0), in floats
  int64_t zero_channels = 0;                     // padding channels behind the last one of the output
  int64_t rows = 1;                              // output rows per task
  int64_t row_groups() const { return (workload.oh + rows - 1) / rows; }
};

Placement PlaceInMemory(const ConvWorkload& workload, const Layout& in, const Layout& out, int64_t rows,
                        const Target& cpu);

// Indices [begin, end) of the taps (or outputs) that stay inside the input; empty when end <= begin.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end > begin ? end - begin : 0; }
};
// Taps t with 0 <= first + t * step < size.
Range TapsInside(int64_t first, int64_t step, int64_t taps, int64_t size);

// The activation as the ISA builds know it. Precondition: it is fusable.
void SetActivation(const Activation& activation, PortableFinish& finish);

// Zeros the padding channels of output pixels [0, ow) of the row at `row`.
void ZeroPaddingChannels(const Placement& placement, float* row);

// Whether channels [first, first + count) lie side by side.
bool Contiguous(const std::vector<int64_t>& offsets, int64_t first, int64_t count);

}  // namespace tilesmith::portable
