// The input and output transforms of a conv, built: code for every kind of tile, and the walk over tiles.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "layouts/base/kernel.h"
#include "layouts/tensor.h"
#include "templates/winograd/x86/input_generator.h"
#include "templates/winograd/x86/output_generator.h"

namespace tilesmith::winograd {

// Tiles [column, end) of one row of tiles.
struct RowPart {
  int64_t image, row, column, end;
};

class TileTransforms {
 public:
  // The schedule must outlive this. bias: oc floats, or null.
  TileTransforms(const Schedule& schedule, const Target& cpu, const float* bias);

  // One vector of input channels to V[0] of the part's first tile; and M[0] of that tile to one vector of
  // output channels with post-ops, together with the padding vectors behind the last one. Where the config
  // streams, another thread sees the output after a store fence only.
  void TransformInput(const KernelArgs& args, int64_t vector, const RowPart& part, std::byte* v) const;
  void TransformOutput(const KernelArgs& args, int64_t vector, const RowPart& part, const float* m) const;

  // Cuts tiles [first, last) at the ends of rows: body(part, its first tile's number within the range).
  template <typename Body>
  void ForEachRow(int64_t first, int64_t last, const Body& body) const {
    for (int64_t tile = first; tile < last;) {
      const int64_t row = tile / g_.columns, column = tile % g_.columns;
      const int64_t end = std::min(g_.columns, column + last - tile);
      body(RowPart{row / g_.rows, row % g_.rows, column, end}, tile - first);
      tile += end - column;
    }
  }

  std::span<const uint8_t> input_code() const { return {input_code_->getCode(), input_code_->getSize()}; }
  std::span<const uint8_t> output_code() const { return {output_code_->getCode(), output_code_->getSize()}; }

 private:
  void EmitInputKernels(const Target& cpu);
  void EmitOutputKernels(const Target& cpu);
  bool Streams(const KernelArgs& args) const;
  void ClearPadding(const KernelArgs& args, const RowPart& part) const;

  const Schedule& g_;
  AlignedBuffer bias_;  // whole vectors
  std::unique_ptr<InputGenerator> input_code_;
  std::unique_ptr<OutputGenerator> output_code_;
  std::vector<InputKernel> inputs_;    // at row kind * column kinds + column kind
  std::vector<OutputKernel> outputs_;  // likewise, in the order of EmitOutputKernels
};

}  // namespace tilesmith::winograd
