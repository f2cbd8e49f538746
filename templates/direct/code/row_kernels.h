// All row kernels of one schedule, in one code buffer: chunks and passes that differ in nothing the code
// shows share a kernel.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "templates/base/image_strides.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"
#include "templates/direct/config.h"
#include "templates/direct/row_product.h"
#include "templates/direct/schedule.h"

namespace tilesmith::direct {

// The direct kernel's code generator: one output row, one chunk of output channels, one accumulation pass.
//
// For each register tile of the row:  acc = first ? bias (+ residual) : out
//   for channel in pass, for kernel row, for kernel column:
//     acc[v][w] += weights[v] * in[w * stride - pad + column * (dilation + 1)]
//   out = last ? activation(acc) : acc
// (where passes are summed apart, acc starts from 0 and out is added behind the pass's products), so that an
// output is the same number whatever its config (ops/order.md). With factors of bf16 a weight and an element
// are pairs of channels, and their product the sum of two; of an odd channel the element's other half is
// zero, and not read. Kernel columns outside the input are skipped when emitting (edge tiles are emitted on
// their own); kernel rows are a range given at run time. So there is no padded copy of the input.
//
// Code knows no sizes of images but the kinds of tiles that a row is cut into: how many there are of each,
// and what lies between rows and between blocks, is given at run time, so that images of many sizes share it.
//
// A kernel is given these. Offsets and sizes are in bytes.
struct RowArgs {
  const float* source = nullptr;    // first valid kernel row's input row, column 0, first channel of the pass
  const float* weights = nullptr;   // packed, of the first valid kernel row
  float* output = nullptr;          // first channel of the chunk, column 0
  const float* residual = nullptr;  // like output
  const float* bias = nullptr;      // first channel of the chunk, padded to whole vectors
  int64_t kernel_rows = 0;          // valid ones; may be 0
  int64_t next_channel = 0;         // from the input row after the last valid one to the next channel's first
  int64_t next_block = 0;           // from a block of input channels to the next one
  int64_t skipped_weights = 0;      // of the kernel rows that are not valid, in one step of channels
  int64_t next_row = 0;             // from an input row to the one that the next kernel row meets
  int64_t next_out_block = 0;       // from a block of output channels to the next one
  int64_t next_residual_block = 0;  // likewise
  const int64_t* tile_counts = nullptr;  // of each run of tiles
};
using RowKernel = void (*)(const RowArgs*);

// One kernel: what distinguishes it from the others of the same conv.
struct RowVariant {
  Chunk chunk;  // group and first_channel are irrelevant but for places
  Pass pass;    // first_channel is irrelevant
  bool first = true, last = true;
  // Where a vector is, from the chunk's first one.
  struct Place {
    int64_t blocks = 0, bytes = 0;
    bool operator==(const Place&) const = default;
  };
  std::vector<Place> places;  // of each vector, zero vectors included
};

// All kernels of one conv, in one code buffer.
class RowGenerator : public VectorCode {
 public:
  RowGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes);

  // Emits a kernel and returns its offset in the code.
  size_t Emit(const RowVariant& variant);
  // After the last kernel.
  void Finish() { EmitConstants(); }

 private:
  // Of a vector of packed weights.
  int64_t WeightVectorBytes() const {
    return vector_bytes() / kFloatBytes * schedule_.config.weight_word_bytes();
  }
  code::Vec Accumulator(int v, int w) const { return Vector(v * positions_ + w); }
  bool IsPartial(int v) const {
    return variant_->chunk.partial_lanes > 0 && v == variant_->chunk.vectors - 1;
  }
  // Calls visit(v, base, bytes) for the vectors [first, last): where in the output or in what lies like it,
  // whose first vector is at `start`, position 0 of vector v is. Destroys a register of the loop over blocks.
  template <typename Visit>
  void ForEachVector(const code::Reg& start, int first, int last, const Visit& visit);

  void EmitRow();
  void EmitTile(const TileRun& tile);
  void EmitStart();
  // acc += a stored vector of the output's type, of which only the chunk's partial_lanes exist where
  // `partial`.
  void AddStored(const code::Vec& acc, const code::Address& stored, bool partial);
  void EmitBlocks(const TileRun& tile);
  void EmitBlock(const TileRun& tile, int64_t channels, bool last);
  // `steps` of input channels, all their valid kernel rows, of the last one only the first channel where
  // `half`. Leaves kSourceNow and kWeightsNow at the next one.
  void EmitChannels(const TileRun& tile, int64_t steps, bool half);
  // One kernel row of `steps` of input channels (DirectConfig::step_channels), of the last one only the first
  // channel where `half`; leaves kWeightsNow past their weights.
  void EmitSteps(const TileRun& tile, int64_t steps, bool half);
  void LoadInput(const code::Vec& element, int64_t offset, bool half);
  // acc += weights * element, either of which may be in memory.
  template <typename Weights, typename Element>
  void AddProduct(const code::Vec& acc, const Weights& weights, const Element& element) {
    schedule_.config.factors == Factors::kBf16 ? MultiplyAddPair(acc, weights, element)
                                               : MultiplyAddElement(acc, weights, element);
  }
  // Destroys acc.
  void StoreOutput(const code::Address& to, const code::Vec& acc, bool partial);
  void EmitFinish();

  const Schedule& schedule_;
  const RowVariant* variant_ = nullptr;  // while emitting
  int positions_ = 0;                    // of the tile being emitted
  RegisterPlan plan_;
  int next_broadcast_ = 0;
};

class RowKernels {
 public:
  RowKernels(const Schedule& schedule, const Target& cpu, KernelParts* parts);

  RowKernel At(size_t chunk, size_t pass) const { return kernels_[chunk * passes_ + pass]; }
  // What is the same in every call.
  RowArgs Args() const;
  std::span<const uint8_t> Code() const { return code_.bytes(); }

 private:
  size_t passes_ = 0;
  int64_t next_row_ = 0, next_out_block_ = 0;
  std::vector<int64_t> tile_counts_;
  GeneratedCode code_;
  std::vector<RowKernel> kernels_;  // at chunk * passes + pass
};

// The products of templates/direct/row_product.h, built.
class RowProduct {
 public:
  // Vectors of M's channels lie `m_positions` positions apart. config: of ReadProductConfig.
  RowProduct(const ConvWorkload& product, const DirectConfig& config, int64_t m_positions, const Target& cpu,
             KernelParts* parts);

  int64_t positions() const { return schedule_.ow; }
  const std::vector<Chunk>& chunks() const { return schedule_.chunks; }

  struct Operands {
    const std::byte* v = nullptr;  // position 0
    int64_t v_vector_bytes = 0;    // from one vector of V's channels to the next
    const std::byte* u = nullptr;  // of the chunk, in PackWeights' order
    float* m = nullptr;            // of the chunk's first vector, position 0
  };
  void Run(size_t chunk, const Operands& operands) const;

  std::span<const uint8_t> code() const { return kernels_.Code(); }

 private:
  Schedule schedule_;
  RowKernels kernels_;
};

}  // namespace tilesmith::direct
