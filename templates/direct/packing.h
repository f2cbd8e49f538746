// The direct template's weights, packed in the order the kernel eats them.
//
//   for chunk, pass, block, kernel row, group of ic_unroll channels, kernel column, channel:  `vectors`
//   vectors
//
// Of factors in bf16 a channel is a pair of them, and the second of an odd one's pair is zero. Output
// channels past the last are zero. The order is a single stream per (chunk, pass) but for skipped kernel
// rows.
#pragma once

#include "layouts/kernel_parts.h"
#include "layouts/tensor.h"
#include "templates/base/conv_template.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {

// Words (DirectConfig::weight_word_bytes) of one (chunk, pass), and of one kernel row of a block of
// `channels` channels.
int64_t PassWeights(const Schedule& schedule, const Chunk& chunk, const Pass& pass);
int64_t RowWeights(const Schedule& schedule, const Chunk& chunk, int64_t channels);

// All that the packed weights depend on, beside the weights.
PartKey PackingKey(const Schedule& schedule);

struct PackedWeights {
  SharedBuffer weights;
  std::vector<int64_t> offsets;  // words; of (chunk, pass) at chunk * passes + pass
  SharedBuffer bias;             // whole vectors per chunk
  std::vector<int64_t> bias_offsets;
};

// Precondition: the machine has cpu.isa.
PackedWeights PackWeights(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

}  // namespace tilesmith::direct
