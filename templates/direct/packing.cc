#include "templates/direct/packing.h"

#include <algorithm>
#include <bit>

namespace tilesmith::direct {
namespace {

// A weight, or a pair of them.
uint32_t WordOf(Factors factors, const float* first, const float* second, int64_t at) {
  if (factors == Factors::kF32) return std::bit_cast<uint32_t>(first[at]);
  return Bf16Bits(first[at]) | (second != nullptr ? static_cast<uint32_t>(Bf16Bits(second[at])) << 16 : 0);
}

// Packs one kernel row of one block: channels [first, first + channels) of the group.
uint32_t* PackRow(const Schedule& g, const Chunk& chunk, const float* rows, int64_t channels, uint32_t* to) {
  const ConvWorkload& w = g.workload;
  const int64_t steps = g.config.Steps(channels), unroll = std::min(g.config.ic_unroll, steps);
  const int64_t step_channels = g.config.step_channels();
  const int64_t lanes = static_cast<int64_t>(chunk.vectors) * g.vector_floats;
  const int64_t real = chunk.partial_lanes > 0 ? lanes - g.vector_floats + chunk.partial_lanes : lanes;
  const int64_t channel_stride = w.kh * w.kw;
  const int64_t output_stride = w.ic / w.g * channel_stride;
  for (int64_t s = 0; s < steps; s += unroll) {
    const int64_t count = std::min(unroll, steps - s);
    for (int64_t column = 0; column < w.kw; ++column) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t channel = (s + i) * step_channels;
        const float* from = rows + channel * channel_stride + column;
        const float* second = channel + 1 < channels ? from + channel_stride : nullptr;
        for (int64_t lane = 0; lane < real; ++lane)
          to[lane] = WordOf(g.config.factors, from, second, lane * output_stride);
        to += lanes;
      }
    }
  }
  return to;
}

}  // namespace

int64_t RowWeights(const Schedule& g, const Chunk& chunk, int64_t channels) {
  return g.config.Steps(channels) * g.workload.kw * chunk.vectors * g.vector_floats;
}

int64_t PassWeights(const Schedule& g, const Chunk& chunk, const Pass& pass) {
  const int64_t blocks = pass.blocks * RowWeights(g, chunk, pass.block_channels);
  return g.workload.kh * (blocks + RowWeights(g, chunk, pass.tail_channels));
}

PackedWeights PackWeights(const Schedule& g, const ConvWeights& weights) {
  const ConvWorkload& w = g.workload;
  PackedWeights packed;
  int64_t words = 0, bias_floats = 0;
  for (const Chunk& chunk : g.chunks) {
    packed.bias_offsets.push_back(bias_floats);
    bias_floats += static_cast<int64_t>(chunk.vectors) * g.vector_floats;
    for (const Pass& pass : g.passes) {
      packed.offsets.push_back(words);
      words += PassWeights(g, chunk, pass);
    }
  }
  packed.weights = AlignedBuffer(words * sizeof(uint32_t));
  packed.bias = AlignedBuffer(bias_floats * sizeof(float));
  auto* to = static_cast<uint32_t*>(packed.weights.data());
  const int64_t channel_stride = w.kh * w.kw;
  for (size_t i = 0; i < g.chunks.size(); ++i) {
    const Chunk& chunk = g.chunks[i];
    const float* outputs = weights.weights + chunk.first_channel * (w.ic / w.g) * channel_stride;
    for (const Pass& pass : g.passes) {
      for (int64_t block = 0; block <= pass.blocks; ++block) {
        const int64_t channels = block < pass.blocks ? pass.block_channels : pass.tail_channels;
        const float* from = outputs + (pass.first_channel + block * pass.block_channels) * channel_stride;
        for (int64_t row = 0; row < w.kh && channels > 0; ++row)
          to = PackRow(g, chunk, from + row * w.kw, channels, to);
      }
    }
    if (weights.bias == nullptr) continue;
    const int64_t lanes = std::min<int64_t>(static_cast<int64_t>(chunk.vectors) * g.vector_floats,
                                            (chunk.group + 1) * (w.oc / w.g) - chunk.first_channel);
    std::copy_n(weights.bias + chunk.first_channel, lanes, packed.bias.floats() + packed.bias_offsets[i]);
  }
  return packed;
}

}  // namespace tilesmith::direct
