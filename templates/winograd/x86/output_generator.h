// Code for the output transform: Y = act(A^T M A + bias + residual) of one vector of channels, for tiles side
// by side.
#pragma once

#include "templates/winograd/schedule.h"
#include "templates/winograd/transforms.h"
#include "templates/winograd/x86/linear_code.h"

namespace tilesmith::winograd {

// products: M[0] of the first tile. output, residual: its first pixel. bias: one vector. output may be
// residual.
using OutputKernel = void (*)(const float* products, std::byte* output, const std::byte* residual,
                              const float* bias, int64_t tiles);

class OutputGenerator : public LinearCode {
 public:
  OutputGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes);

  struct Variant {
    int rows = 0, columns = 0;  // of a tile, that lie in the output
    int lanes = 0;              // real channels of the vector; the others come out as zero
    bool stream = false;        // bypass the caches; needs output aligned to whole vectors
  };
  // Emits a kernel and returns its offset in the code.
  size_t Emit(const Variant& variant);
  // After the last kernel.
  void Finish() { EmitConstants(); }

  // Bytes of code per kernel, at most.
  static int64_t KernelBytes(int window);

 private:
  Term ProductTerm(int row, int column) const;
  // A^T M for `rows`, all even or all odd, into registers from 0 on, T each.
  void EmitColumns(const std::vector<int>& rows);
  void EmitRow(int row, int first_register);
  void EmitOutput(int64_t offset);

  const Schedule& schedule_;
  const Transforms& transforms_;
  const int window_, pairs_;
  const int rows_at_once_;
  Variant variant_;                          // while emitting
  const int sum_, result_, scratch_, bias_;  // registers; sums or differences of the pairs from sum_ on
};

}  // namespace tilesmith::winograd
