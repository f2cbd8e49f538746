// Input ops (ConvWorkload::pre) of the direct template. Applying them to every element as it is broadcast
// would repeat them for every chunk of output channels; instead the rows that a task reads are transformed
// once into memory of the thread, in the input's own layout, where the row kernels find them unchanged. Tasks
// that share rows follow each other, so all chunks use what was prepared for the first. Inputs that are
// stored in another type than is multiplied are converted on the way.
#pragma once

#include <cstddef>
#include <vector>

#include "templates/base/conv_template.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {

// Where the row kernels read an image.
struct InputRows {
  const float* data = nullptr;  // row `first_row` of the first block
  int64_t first_row = 0;
  int64_t block_bytes = 0;  // from one block to the next
};

class PreparedInput {
 public:
  PreparedInput(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  // Memory for one thread's rows: whole cache lines.
  int64_t ThreadBytes() const { return rows_bytes_ + line_bytes_; }
  // Transforms what the output rows [first, last) of `image` read, into `to`. Thread-safe.
  InputRows Prepare(const std::byte* image, int64_t first, int64_t last, std::byte* to) const;

 private:
  // `pixels` pixels of a block; as bf16 by way of a line of floats where there are input ops.
  void PrepareFloats(const std::byte* from, float* to, int64_t block, int64_t pixels) const;
  void PrepareBf16(const std::byte* from, std::byte* to, float* line, int64_t block, int64_t pixels) const;

  const Schedule schedule_;
  const Isa isa_;
  int64_t block_ = 0, blocks_ = 0, most_rows_ = 0;
  int64_t rows_bytes_ = 0, line_bytes_ = 0;
  std::vector<float> scale_, shift_;  // zero for the channels that pad the last block
};

}  // namespace tilesmith::direct
