#include "templates/direct/packing.h"

#include <algorithm>

namespace tilesmith::direct {
namespace {

// Packs one kernel row of one block: channels [first, first + channels) of the group.
float* PackRow(const Schedule& g, const Chunk& chunk, const float* rows, int64_t channels, float* to) {
  const ConvWorkload& w = g.workload;
  const int64_t unroll = std::min(g.config.ic_unroll, channels);
  const int64_t lanes = static_cast<int64_t>(chunk.vectors) * g.vector_floats;
  const int64_t real = chunk.partial_lanes > 0 ? lanes - g.vector_floats + chunk.partial_lanes : lanes;
  const int64_t channel_stride = w.kh * w.kw;
  const int64_t output_stride = w.ic / w.g * channel_stride;
  for (int64_t c = 0; c < channels; c += unroll) {
    const int64_t count = std::min(unroll, channels - c);
    for (int64_t column = 0; column < w.kw; ++column) {
      for (int64_t i = 0; i < count; ++i) {
        const float* from = rows + (c + i) * channel_stride + column;
        for (int64_t lane = 0; lane < real; ++lane) to[lane] = from[lane * output_stride];
        to += lanes;
      }
    }
  }
  return to;
}

}  // namespace

int64_t RowWeights(const Schedule& g, const Chunk& chunk, int64_t channels) {
  return channels * g.workload.kw * chunk.vectors * g.vector_floats;
}

int64_t PassWeights(const Schedule& g, const Chunk& chunk, const Pass& pass) {
  return g.workload.kh * RowWeights(g, chunk, pass.channels());
}

PackedWeights PackWeights(const Schedule& g, const ConvWeights& weights) {
  const ConvWorkload& w = g.workload;
  PackedWeights packed;
  int64_t floats = 0, bias_floats = 0;
  for (const Chunk& chunk : g.chunks) {
    packed.bias_offsets.push_back(bias_floats);
    bias_floats += static_cast<int64_t>(chunk.vectors) * g.vector_floats;
    for (const Pass& pass : g.passes) {
      packed.offsets.push_back(floats);
      floats += PassWeights(g, chunk, pass);
    }
  }
  packed.weights = AlignedBuffer(floats * sizeof(float));
  packed.bias = AlignedBuffer(bias_floats * sizeof(float));
  float* to = packed.weights.floats();
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
