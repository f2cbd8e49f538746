// The few_outputs kernel's code generator: some neighbouring rows of some output channels.
//
// For each register tile of the rows:  acc[output][row][vector] = bias (+ residual)
//   for input channel, input row (skipped when outside the input), kernel column:
//     x[vector] = input row, shifted by the kernel column; lanes outside the row zero
//     acc[output][row][vector] += x[vector] * weight[output]   for all kernel rows that read the input row
//   out = activation(acc)
// Nothing is read or written outside rows: edge tiles are emitted on their own, with masks.
#pragma once

#include <vector>

#include "templates/few_outputs/register_plan.h"
#include "templates/few_outputs/schedule.h"
#include "templates/x86/vector_code.h"

namespace tilesmith::few_outputs {

struct TileArgs {
  const float* source = nullptr;    // first tap of the first output row, which may lie outside; column 0
  const float* weights = nullptr;   // packed, of the chunk
  float* output = nullptr;          // first output channel of the chunk, first row, column 0
  const float* residual = nullptr;  // like output
  const float* bias = nullptr;      // of the chunk's first channel
  uint64_t rows_inside = 0;         // bit i: row i of InputRowsOf(workload, rows) lies inside the input
};
using TileKernel = void (*)(const TileArgs*);

// One kernel: what distinguishes it from the others of the same conv.
struct KernelVariant {
  int64_t outputs = 1;
  int64_t rows = 1;
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
  Xbyak::Xmm Accumulator(int64_t output, int64_t row, int vector) const {
    return Vector(static_cast<int>((output * variant_.rows + row) * vectors_ + vector));
  }
  Xbyak::Address OutputAt(const Xbyak::Reg64& base, int64_t output, int64_t row, int vector) const;
  Xbyak::Xmm Mask() const { return Vector(plan_.mask); }  // for AVX2
  bool IsPartial(const TileRun& tile, int vector) const {
    return schedule_.RealLanes(tile.first + vector) < schedule_.config.lanes;
  }

  void EmitTile(const TileRun& tile);
  void EmitStart(const TileRun& tile);
  void EmitChannels(const TileRun& tile);
  void EmitChannel(const TileRun& tile);
  void EmitPrefetch();
  void EmitColumn(const TileRun& tile, const InputRow& row, int64_t column);
  void EmitFinish(const TileRun& tile);
  void LoadLanes(const Xbyak::Xmm& to, const Xbyak::Address& from, uint32_t lanes);

  const Schedule& schedule_;
  KernelVariant variant_;
  std::vector<InputRow> input_rows_;  // of the variant
  int vectors_ = 0;                   // of the tile being emitted
  RegisterPlan plan_;
  int next_input_ = 0;
};

}  // namespace tilesmith::few_outputs
