// Direct convolution, dense or in groups of more than half a vector: any kernel, stride, padding, dilation
// and channel count. Register tile of output channels x output positions, weights streamed, input elements
// broadcast. The loop structure is the usual one for NCHW[x]c (Georganas et al., "Anatomy of High-Performance
// Deep Learning Convolutions on SIMD Architectures", 2018); the tiling of edges and tails is original.
//
// The direct template's knobs, read once from a Config into a plain struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layouts/base/target.h"
#include "ops/conv/workload.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace direct {

// Where an input element lives while it is multiplied with the weight vectors of one input channel.
enum class Broadcast {
  kEmbedded = 0,  // a memory operand of every FMA (AVX-512 only)
  kRegister = 1,  // broadcast once into a register; all weight vectors in registers
  kMixed = 2,     // like kRegister, but the last weight vector is a memory operand: one register saved
};

// What is multiplied. A template of bf16 multiplies that where the CPU has an instruction for it, and
// otherwise floats, which inputs stored in bf16 become first.
enum class Factors {
  kF32,
  kBf16,  // channels two at a time (VDPBF16PS), summed in f32
};
inline Factors FactorsOn(const Target& cpu, Factors of_template) {
  return cpu.bf16 && cpu.isa == Isa::kAvx512 ? of_template : Factors::kF32;
}

struct DirectConfig {
  int64_t ic_block = 16;       // x of the input's NCHW[x]c; 0 is NHWC
  int64_t oc_block = 16;       // x of the output's; 0 is NHWC
  int64_t oc_vectors = 2;      // register tile: vectors of output channels ...
  int64_t width_tile = 7;      // ... by output positions in a row
  bool balance_tiles = false;  // tiles of equal width instead of full ones and a rest
  Broadcast broadcast = Broadcast::kRegister;
  int64_t ic_unroll = 4;
  int64_t ic_pass = 0;       // input channels accumulated per pass over a row block; 0 is all
  bool sums_passes = false;  // every pass from zero, and their sums then; else each goes on from the last one
  int64_t rows = 1;          // output rows per task
  bool oc_inner = false;     // tasks: consecutive ones share the rows instead of the weights
  int64_t flat_width = 0;    // 1x1 only: pixels of an image treated as rows of this width; 0 keeps the rows
  int64_t prefetch = 0;      // weight vectors fetched this far ahead; 0 is none
  Factors factors = Factors::kF32;
  DataType in_type = DataType::kF32, out_type = DataType::kF32;  // as stored
  DataType weight_type = DataType::kF32;                         // as packed, of factors in f32

  // Input channels that one multiplication takes, and channels as so many multiplications.
  int64_t step_channels() const { return factors == Factors::kBf16 ? 2 : 1; }
  int64_t Steps(int64_t channels) const { return (channels + step_channels() - 1) / step_channels(); }
  bool has_types() const {
    return factors == Factors::kBf16 || in_type != DataType::kF32 || out_type != DataType::kF32 ||
           weight_type != DataType::kF32;
  }
  DataType factor_type() const { return factors == Factors::kBf16 ? DataType::kBf16 : DataType::kF32; }
  // Bytes of what a multiplication takes of an output channel's weights, and of one weight.
  int64_t weight_word_bytes() const { return step_channels() * weight_bytes(); }
  int64_t weight_bytes() const {
    return ElementBytes(factors == Factors::kBf16 ? DataType::kBf16 : weight_type);
  }
  // Bytes of an input element as it is multiplied.
  int64_t in_bytes() const { return ElementBytes(factor_type()); }
  int64_t out_bytes() const { return ElementBytes(out_type); }
};

// Configs of the template of bf16 have the knobs in_type and out_type, and weight_type where its factors are
// f32; others have none of them.
DirectConfig ReadConfig(const Config& config, const Target& cpu);
// Only the knobs of the register tile and of the loop over channels inside it.
DirectConfig ReadTile(const Config& config);

// The modes that the CPU's instructions have.
Knob BroadcastKnob(const Target& cpu);
// Why this broadcast cannot serve `channels` input channels of a group; empty when it can.
std::string WhyBroadcastInvalid(const DirectConfig& config, int64_t channels);
// Why no kernel has this register tile, for rows of `width` and as many output channels of a group; empty
// when one can.
std::string WhyTileInvalid(const DirectConfig& config, int64_t width, int64_t outputs, const Target& cpu);
bool IsTileValid(const DirectConfig& config, int64_t width, int64_t outputs, const Target& cpu);  // the same
// Why a config whose values its knobs have is not valid in the space of `cpu`; empty when it is.
std::string WhyInvalid(const ConvWorkload& workload, const Target& cpu, const DirectConfig& config);

// Which vector register holds what in the direct kernel. A plan that needs more registers than the CPU has
// makes the config invalid before a byte is emitted.
//
//   [0, accumulators)             output tile, vector v of position w at v * positions + w
//   [first_broadcast, + count)    input elements, used in turn so that loads run ahead
//   [first_weight, registers)     weight vectors held in registers
// Before and after the channel loop everything from first_broadcast on is scratch.
struct RegisterPlan {
  int accumulators = 0;
  int first_broadcast = 0;
  int broadcasts = 0;
  int first_weight = 0;
  int weights = 0;
  bool fits = false;
};

// Scratch registers that the epilogue needs beside the accumulators.
constexpr int kEpilogueScratch = 2;

inline RegisterPlan PlanRegisters(int vectors, int positions, Broadcast broadcast, int registers) {
  constexpr int kMaxBroadcasts = 4;
  RegisterPlan plan;
  plan.accumulators = vectors * positions;
  plan.weights = broadcast == Broadcast::kMixed ? vectors - 1 : vectors;
  plan.first_weight = registers - plan.weights;
  plan.first_broadcast = plan.accumulators;
  const int room = plan.first_weight - plan.accumulators;
  const int needed = broadcast == Broadcast::kEmbedded ? 0 : 1;
  plan.fits = room >= needed && plan.accumulators + kEpilogueScratch <= registers;
  plan.broadcasts = needed == 0 || room < 0 ? 0 : room < kMaxBroadcasts ? room : kMaxBroadcasts;
  return plan;
}

}  // namespace direct

const ConvTemplate& DirectTemplate();
// The same with factors of bf16, two input channels at a time, summed in f32, on CPUs with AVX-512 BF16; on
// others the same with input, output or both stored in bf16.
const ConvTemplate& DirectBf16Template();
}  // namespace tilesmith
