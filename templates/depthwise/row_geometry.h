// The depthwise template's loop nest as numbers: how output rows become groups that one piece of code
// computes, and rows become register tiles. Pure arithmetic, shared by the generator, the code-size estimate
// and the run loop.
//
// A plane is one vector of channels of one image: rows of pixels, `pixel_bytes` and `row_bytes` apart.
#pragma once

#include <cstdint>
#include <vector>

#include "layouts/base/cpu.h"
#include "ops/workload.h"
#include "templates/depthwise/depthwise_config.h"
#include "templates/direct/geometry.h"

namespace tilesmith::depthwise {

using direct::TileRun;

struct RowGeometry {
  ConvWorkload workload;  // one with g == ic == oc; its channel counts are not looked at
  DepthwiseConfig config;
  int vector_floats = 16;
  int registers = 32;
  bool masked = false;  // the last vector of channels is not full and must be read and written masked
  int64_t in_pixel_bytes = 0, in_row_bytes = 0;
  int64_t out_pixel_bytes = 0, out_row_bytes = 0;

  int64_t vector_bytes() const { return vector_floats * static_cast<int64_t>(sizeof(float)); }
  int64_t taps() const { return workload.kh * workload.kw; }
  // Input row of kernel row 0 for output row `row`; negative within the padding.
  int64_t InputRow(int64_t row) const { return row * workload.sh - workload.ph; }
};

// Kernel rows [first, last).
struct KernelRows {
  int64_t first = 0, last = 0;
  bool operator==(const KernelRows&) const = default;
};
// Those that read inside the input for output row `row`.
KernelRows ValidKernelRows(const ConvWorkload& workload, int64_t row);

// A piece of code: consecutive output rows, computed in tiles of all of them. Either every kernel row of
// every output row is unrolled, or the code loops over a range of kernel rows that all its output rows share.
struct RowCode {
  std::vector<KernelRows> rows;  // per output row; what is unrolled. When looped, only the count matters.
  bool looped = false;
  bool operator==(const RowCode& other) const {
    return looped == other.looped && (looped ? rows.size() == other.rows.size() : rows == other.rows);
  }
};

// Output rows [row, row + code.rows.size()).
struct RowGroup {
  int64_t row = 0;
  RowCode code;
};

// Cuts output rows [first, last) into groups.
std::vector<RowGroup> CutRows(const RowGeometry& geometry, int64_t first, int64_t last);

// Adds to `codes` those of the groups that it lacks.
void CollectCodes(const std::vector<RowGroup>& groups, std::vector<RowCode>& codes);

// The register tiles of a group of `rows` rows: wider ones where the group has fewer rows than the knob says.
std::vector<TileRun> CutColumns(const RowGeometry& geometry, int64_t rows);

// Machine code of `codes` together, in bytes, within some 20%.
int64_t EstimateCodeBytes(const RowGeometry& geometry, const std::vector<RowCode>& codes);

// Which vector register holds what.
//   [0, accumulators)       output tile, position w of row r at r * width + w
//   [first_temp, + temps)   input pixels; after the taps, scratch
//   [first_weight, + weights)
//   mask                    AVX2: the lanes of the last vector of channels
struct RegisterPlan {
  int accumulators = 0;
  int first_temp = 0, temps = 0;
  int first_weight = 0, weights = 0;
  int mask = 0;
  bool fits = false;
};
RegisterPlan PlanRegisters(const RowGeometry& geometry, int64_t rows, int64_t width);

}  // namespace tilesmith::depthwise
