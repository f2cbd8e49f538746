// The grouped kernel's code generator: some neighbouring output rows of one vector of output channels.
//
// For each register tile of the rows:  acc[row][position] = bias (+ residual)
//   for input row (skipped when outside the input), for channel of the group, for input column:
//     x = that channel's element of every group in the vector, spread over the group's lanes
//     acc[row][position] += x * weights[kernel row][channel][kernel column]   for all taps that read x
//   out = activation(acc)
// With several sums x is the input vector with its lanes swapped in one way after the other, and a position
// has several acc, whose lanes are swapped and added in the end (lane_swaps.h).
// In bf16 an element is a pair of channels, whose products are summed at once.
// Columns outside the input are skipped when emitting (edge tiles are emitted on their own). So there is no
// padded copy of the input, and an input element is loaded once for all kernel rows and columns in the tile.
#pragma once

#include <vector>

#include "templates/grouped/register_plan.h"
#include "templates/grouped/schedule.h"
#include "templates/x86/vector_code.h"

namespace tilesmith::grouped {

struct TileArgs {
  const float* source = nullptr;    // first tap of the first output row, which may lie outside; column 0
  const float* weights = nullptr;   // packed, of the vector
  float* output = nullptr;          // first output row, column 0
  const float* residual = nullptr;  // like output
  const float* bias = nullptr;      // one vector
  uint64_t rows_inside = 0;         // bit i: row i of InputRowsOf(workload, rows) lies inside the input
};
using TileKernel = void (*)(const TileArgs*);

// One kernel: what distinguishes it from the others of the same conv.
struct KernelVariant {
  int64_t rows = 1;      // output rows
  bool partial = false;  // of the last vector, of which only partial_lanes lanes are real
  bool operator==(const KernelVariant&) const = default;
};

// All kernels of one conv, in one code buffer.
class Generator : public x86::VectorCode {
 public:
  Generator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes);

  // Emits a kernel and returns its offset in the code.
  size_t Emit(const KernelVariant& variant);
  // After the last kernel.
  void Finish() { EmitConstants(); }

 private:
  Xbyak::Xmm Accumulator(int64_t sum, int64_t row, int position) const {
    return Vector(static_cast<int>((sum * variant_.rows + row) * positions_ + position));
  }
  Xbyak::Address Weight(int kernel_row, int64_t term, int kernel_column) const;
  Xbyak::Address OutputAt(const Xbyak::Reg64& base, int row, int position) const;
  DataType in_type() const { return schedule_.config.types.in; }
  DataType out_type() const { return schedule_.config.types.out; }
  // The mask of a partial vector: k1, or the plan's register.
  Xbyak::Xmm Mask() const { return Vector(plan_.mask); }

  void EmitTile(const TileRun& tile);
  void EmitStart();
  void EmitRows(const TileRun& tile);
  // One spread of the elements of an input row, times all weights of it.
  void EmitInputByInput(const InputRow& row, const std::vector<InputColumn>& columns, int64_t spread);
  void EmitWeightByWeight(const InputRow& row, const std::vector<InputColumn>& columns, int64_t spread);
  // Which element of an input vector each lane gets.
  void EmitIndex(int64_t spread);
  // sums += input * weights, a float or a pair in each lane.
  void Multiply(const Xbyak::Xmm& sums, const Xbyak::Xmm& input, const Xbyak::Operand& weights);
  void EmitInput(const Xbyak::Xmm& to, int64_t column, int64_t spread);
  void EmitSumOfSums();
  void EmitFinish();

  const Schedule& schedule_;
  KernelVariant variant_;
  int positions_ = 0;  // of the tile being emitted
  RegisterPlan plan_;
  int next_input_ = 0, next_weight_ = 0;  // to be used next where they take turns
};

}  // namespace tilesmith::grouped
