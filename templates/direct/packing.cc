#include "templates/direct/packing.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "layouts/transform_moves.h"
#include "templates/base/image_strides.h"

namespace tilesmith::direct {
namespace {

// The weights of a chunk's outputs side by side, as the kernel reads them: for every weight of an output that
// lies behind `from`, in the order of OIHW, one of each lane.
struct Lanes {
  const float* from = nullptr;  // of the first output
  int64_t output_stride = 0;
  int64_t real = 0, padded = 0;

  void Interleave(const Target& cpu, int64_t weights, float* to) const {
    const PlaneMove<float> move = {from, to, output_stride, padded, weights, real, padded};
    TILESMITH_DISPATCH(cpu.isa, Interleave<float>)(move);
  }
};

// One vector of words of each lane: of a channel's weights, or of those and the next channel's, which may be
// null.
void StoreWords(const DirectConfig& config, const float* first, const float* second, int64_t lanes,
                std::byte* to) {
  if (config.factors == Factors::kBf16) {
    auto* const pairs = reinterpret_cast<uint32_t*>(to);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const uint32_t high = second != nullptr ? Bf16Bits(second[lane]) : 0;
      pairs[lane] = Bf16Bits(first[lane]) | high << 16;
    }
  } else if (config.weight_type == DataType::kBf16) {
    std::transform(first, first + lanes, reinterpret_cast<uint16_t*>(to), Bf16Bits);
  } else {
    std::memcpy(to, first, lanes * sizeof(float));
  }
}

// Packs one block of `channels` channels, `lanes.from` its first. As many of them as stay in the first-level
// cache are laid side by side at a time.
void PackBlock(const Schedule& g, const Target& cpu, Lanes lanes, int64_t channels, std::byte* to) {
  constexpr int64_t kColumns = 64;
  const ConvWorkload& w = g.workload;
  const int64_t taps = w.kh * w.kw, step_channels = g.config.step_channels();
  if (taps == 1 && g.config.weight_bytes() == kFloatBytes)
    return lanes.Interleave(cpu, channels, reinterpret_cast<float*>(to));
  const int64_t steps = g.config.Steps(channels), unroll = std::min(g.config.ic_unroll, steps);
  const int64_t row_words = steps * w.kw * lanes.padded;
  const int64_t at_once =
      std::min(std::max<int64_t>(kColumns / (taps * step_channels * unroll), 1) * unroll, steps);
  const auto side_by_side =
      std::make_unique_for_overwrite<float[]>(at_once * step_channels * taps * lanes.padded);
  for (int64_t done = 0; done < steps; done += at_once) {
    const int64_t count = std::min(at_once * step_channels, channels - done * step_channels);
    lanes.Interleave(cpu, count * taps, side_by_side.get());
    lanes.from += count * taps;
    const auto weights = [&](int64_t channel, int64_t tap) -> const float* {
      return channel < count ? side_by_side.get() + (channel * taps + tap) * lanes.padded : nullptr;
    };
    for (int64_t s = 0; s < std::min(at_once, steps - done); s += unroll) {
      const int64_t together = std::min(unroll, steps - done - s);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t row = tap / w.kw * row_words + (done + s) * w.kw * lanes.padded;
        for (int64_t i = 0; i < together; ++i) {
          const int64_t channel = (s + i) * step_channels;
          StoreWords(g.config, weights(channel, tap), weights(channel + 1, tap), lanes.padded,
                     to + (row + (tap % w.kw * together + i) * lanes.padded) * g.config.weight_word_bytes());
        }
      }
    }
  }
}

// Output channels of a chunk that exist.
int64_t RealLanes(const Schedule& g, const Chunk& chunk) {
  const int64_t padded = static_cast<int64_t>(chunk.vectors) * g.vector_floats;
  return chunk.partial_lanes > 0 ? padded - g.vector_floats + chunk.partial_lanes : padded;
}

AlignedBuffer PackWords(const Schedule& g, const Target& cpu, const float* weights, size_t bytes) {
  const ConvWorkload& w = g.workload;
  AlignedBuffer packed(bytes, NewMemory::kAnything);
  auto* to = static_cast<std::byte*>(packed.data());
  const int64_t taps = w.kh * w.kw, output_stride = w.ic / w.g * taps;
  for (const Chunk& chunk : g.chunks) {
    const int64_t padded = static_cast<int64_t>(chunk.vectors) * g.vector_floats;
    const float* const outputs = weights + chunk.first_channel * output_stride;
    for (const Pass& pass : g.passes) {
      for (int64_t block = 0; block <= pass.blocks; ++block) {
        const int64_t channels = block < pass.blocks ? pass.block_channels : pass.tail_channels;
        if (channels == 0) continue;
        const int64_t first = pass.first_channel + block * pass.block_channels;
        const Lanes lanes = {outputs + first * taps, output_stride, RealLanes(g, chunk), padded};
        PackBlock(g, cpu, lanes, channels, to);
        to += w.kh * RowWeights(g, chunk, channels) * g.config.weight_word_bytes();
      }
    }
  }
  return packed;
}

}  // namespace

int64_t RowWeights(const Schedule& g, const Chunk& chunk, int64_t channels) {
  return g.config.Steps(channels) * g.workload.kw * chunk.vectors * g.vector_floats;
}

int64_t PassWeights(const Schedule& g, const Chunk& chunk, const Pass& pass) {
  const int64_t blocks = pass.blocks * RowWeights(g, chunk, pass.block_channels);
  return g.workload.kh * (blocks + RowWeights(g, chunk, pass.tail_channels));
}

PartKey PackingKey(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const DirectConfig& c = g.config;
  PartKey key("direct weights");
  key.Add(w.ic / w.g, w.kh, w.kw, g.vector_floats, c.ic_unroll, c.factors, c.weight_type, g.passes.size());
  for (const Pass& pass : g.passes)
    key.Add(pass.first_channel, pass.blocks, pass.block_channels, pass.tail_channels);
  for (const Chunk& chunk : g.chunks) key.Add(chunk.first_channel, chunk.vectors, chunk.partial_lanes);
  return key;
}

PackedWeights PackWeights(const Schedule& g, const Target& cpu, const ConvWeights& weights) {
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
  const auto word_bytes = static_cast<size_t>(words * g.config.weight_word_bytes());
  packed.weights = DataPart(
      weights.parts, word_bytes, [&] { return PackWords(g, cpu, weights.weights, word_bytes); },
      [&] { return PackingKey(g); });
  const auto bias_bytes = static_cast<size_t>(bias_floats) * sizeof(float);
  packed.bias = DataPart(weights.parts, bias_bytes, [&] {
    AlignedBuffer bias(bias_bytes);
    for (size_t i = 0; weights.bias != nullptr && i < g.chunks.size(); ++i) {
      std::copy_n(weights.bias + g.chunks[i].first_channel, RealLanes(g, g.chunks[i]),
                  bias.floats() + packed.bias_offsets[i]);
    }
    return bias;
  });
  return packed;
}

}  // namespace tilesmith::direct
