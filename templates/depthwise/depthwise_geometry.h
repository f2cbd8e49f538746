// A whole depthwise conv as numbers: the planes of its tensors and the rows of its tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "layouts/layout.h"
#include "templates/depthwise/row_geometry.h"
#include "templates/loop_features.h"

namespace tilesmith::depthwise {

struct Geometry {
  RowGeometry rows;
  Layout layout;
  std::vector<RowCode> codes;  // all that the tasks need

  int64_t vectors = 0;            // of channels; the last may not be full
  int lanes = 0;                  // real ones of the last vector if the others need care, else 0
  int64_t padding_vectors = 0;    // after the last, to fill the last block
  int64_t vectors_per_block = 1;  // this many lie next to each other in every pixel
  int64_t in_block_bytes = 0, out_block_bytes = 0;

  int64_t row_blocks() const { return (rows.workload.oh + rows.config.rows - 1) / rows.config.rows; }
  int64_t vector_blocks() const { return (vectors + rows.config.vectors - 1) / rows.config.vectors; }
  // Output rows of row block `block`, in groups.
  std::vector<RowGroup> Groups(int64_t block) const;
};

LoopFeatures FeaturesOf(const Geometry& geometry);

Geometry MakeGeometry(const ConvWorkload& workload, const DepthwiseConfig& config, const CpuInfo& cpu);

}  // namespace tilesmith::depthwise
