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

// Packs the `channels` input channels of a chunk's group, `lanes.from` its first. As many of them as stay in
// the first-level cache are laid side by side at a time, where they are not stored as they are.
void PackChunk(const Schedule& g, const Target& cpu, Lanes lanes, int64_t channels, std::byte* to) {
  constexpr int64_t kColumns = 64;
  const int64_t taps = g.workload.kh * g.workload.kw, step_channels = g.config.step_channels();
  if (g.config.weight_bytes() == kFloatBytes)
    return lanes.Interleave(cpu, channels * taps, reinterpret_cast<float*>(to));
  const int64_t at_once = std::max<int64_t>(kColumns / (taps * step_channels), 1) * step_channels;
  const int64_t vector_bytes = lanes.padded * g.config.weight_word_bytes();
  const auto side_by_side = std::make_unique_for_overwrite<float[]>(at_once * taps * lanes.padded);
  for (int64_t done = 0; done < channels; done += at_once) {
    const int64_t count = std::min(at_once, channels - done);
    lanes.Interleave(cpu, count * taps, side_by_side.get());
    lanes.from += count * taps;
    const auto weights = [&](int64_t channel, int64_t tap) -> const float* {
      return channel < count ? side_by_side.get() + (channel * taps + tap) * lanes.padded : nullptr;
    };
    for (int64_t channel = 0; channel < count; channel += step_channels) {
      for (int64_t tap = 0; tap < taps; ++tap, to += vector_bytes)
        StoreWords(g.config, weights(channel, tap), weights(channel + 1, tap), lanes.padded, to);
    }
  }
}

// Output channels of a chunk that exist.
int64_t RealLanes(const Schedule& g, const Chunk& chunk) {
  const int64_t padded = static_cast<int64_t>(chunk.vectors) * g.vector_floats;
  return chunk.partial_lanes > 0 ? padded - g.vector_floats + chunk.partial_lanes : padded;
}

AlignedBuffer PackWords(const Schedule& g, const Target& cpu, const float* weights, size_t bytes) {
  const int64_t channels = g.workload.ic / g.workload.g;
  const int64_t output_stride = channels * g.workload.kh * g.workload.kw;
  AlignedBuffer packed(bytes, NewMemory::kAnything);
  auto* to = static_cast<std::byte*>(packed.data());
  for (const Chunk& chunk : g.chunks) {
    const int64_t padded = static_cast<int64_t>(chunk.vectors) * g.vector_floats;
    const float* const outputs = weights + chunk.first_channel * output_stride;
    PackChunk(g, cpu, {outputs, output_stride, RealLanes(g, chunk), padded}, channels, to);
    to += StepWeights(g, chunk) * g.config.Steps(channels) * g.config.weight_word_bytes();
  }
  return packed;
}

}  // namespace

int64_t StepWeights(const Schedule& g, const Chunk& chunk) {
  return g.workload.kh * g.workload.kw * chunk.vectors * g.vector_floats;
}

PartKey PackingKey(const Schedule& g) {
  const ConvWorkload& w = g.workload;
  const DirectConfig& c = g.config;
  PartKey key("direct weights 2");
  key.Add(w.ic / w.g, w.kh, w.kw, g.vector_floats, c.factors, c.weight_type);
  for (const Chunk& chunk : g.chunks) key.Add(chunk.first_channel, chunk.vectors, chunk.partial_lanes);
  return key;
}

PackedWeights PackWeights(const Schedule& g, const Target& cpu, const ConvWeights& weights) {
  PackedWeights packed;
  int64_t words = 0, bias_floats = 0;
  for (const Chunk& chunk : g.chunks) {
    packed.bias_offsets.push_back(bias_floats);
    bias_floats += static_cast<int64_t>(chunk.vectors) * g.vector_floats;
    packed.offsets.push_back(words);
    words += StepWeights(g, chunk) * g.config.Steps(g.workload.ic / g.workload.g);
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
