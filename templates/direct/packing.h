// The direct template's weights, packed in the order the kernel eats them.
//
//   for chunk, channel, kernel row, kernel column:  `vectors` vectors
//
// Of factors in bf16 a channel is a pair of them, and the second of an odd one's pair is zero. Output
// channels past the last are zero. So an output's weights are in the order of OIHW, whatever the blocks of
// the input's layout and the passes, which begin at even channels.
#pragma once

#include "layouts/kernel_parts.h"
#include "layouts/tensor.h"
#include "templates/base/conv_template.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {

// Words (DirectConfig::weight_word_bytes) of one step of input channels of a chunk.
int64_t StepWeights(const Schedule& schedule, const Chunk& chunk);

// All that the packed weights depend on, beside the weights.
PartKey PackingKey(const Schedule& schedule);

struct PackedWeights {
  SharedBuffer weights;
  std::vector<int64_t> offsets;  // words; of each chunk
  SharedBuffer bias;             // whole vectors per chunk
  std::vector<int64_t> bias_offsets;
};

// Precondition: the machine has cpu.isa.
PackedWeights PackWeights(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

}  // namespace tilesmith::direct
