// The input and output transforms of a conv, built: code for every kind of tile, and the walk over tiles.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "layouts/base/kernel.h"
#include "layouts/kernel_parts.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"
#include "templates/winograd/schedule.h"
#include "templates/winograd/transforms.h"

namespace tilesmith::winograd {

// Straight-line code for small linear maps of vectors: what both transform generators are made of.
class LinearCode : public VectorCode {
 protected:
  using VectorCode::VectorCode;

  // coefficient * (vector register, or vector in memory where `index` is negative).
  struct Term {
    double coefficient = 0;
    int index = -1;
    std::optional<code::Address> address;
  };

  // Emits loads of the first of `values` into registers [first, first + count), where Sum finds them. Forgets
  // those of an earlier call.
  void HoldFactors(const std::vector<double>& values, int first, int count);

  // register `to` = sum of the terms; those with coefficient 0 cost nothing. Precondition: `to` and `scratch`
  // are no operands.
  void Sum(int to, std::vector<Term> terms, int scratch);

 private:
  void Start(int to, const Term& term);
  void AddTerm(int to, const Term& term, int scratch);

  std::map<double, int> held_;  // positive constants to registers
};

// Distinct absolute values, the first ones first, without 0 and 1, which need no multiplication.
void AddConstant(std::vector<double>& constants, double value);

// Code for the input transform: V = B^T d B of one vector of channels, for tiles side by side.
//
// source: where the first tile's window begins in the input, which may be outside; only rows and columns of
// the kernel's spans are read. target: V[0] of that tile. The tiles' windows lie input_step() pixels apart.
using InputKernel = void (*)(const std::byte* source, std::byte* target, int64_t tiles);

class InputGenerator : public LinearCode {
 public:
  InputGenerator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes);

  // A kernel for windows of which only these rows and columns lie in the input; the rest is zero. Returns its
  // offset in the code.
  size_t Emit(const Span& rows, const Span& columns);
  // After the last kernel.
  void Finish() { EmitConstants(); }

  // Bytes of code per kernel, at most.
  static int64_t KernelBytes(int window);

 private:
  code::Address WindowAt(int row, int column) const;
  Term WindowTerm(double coefficient, int row, int column) const;
  double Even(int pair, int k) const;  // of rows e + o and e - o of B^T
  double Odd(int pair, int k) const;
  // The window as floats into the stack's memory, where WindowTerm finds it.
  void EmitWidening();
  // B^T d for row `row`, or rows `row` and `row + 1` of a pair, into registers from 0 on.
  void EmitColumns(int row, bool pair);
  void EmitRow(int row, int first_register);
  void StoreElement(int element, int index);

  const Schedule& schedule_;
  const Transforms& transforms_;
  const int window_;
  const bool widens_;     // the input is stored in another type than it is computed in
  const bool pairs_fit_;  // both rows of a pair fit the registers
  const int even_, odd_, result_, scratch_;
  Span rows_, columns_;  // while emitting
};

// Code for the output transform: Y = act(A^T M A + bias + residual) of one vector of channels, for tiles side
// by side.
//
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

// Tiles [column, end) of one row of tiles.
struct RowPart {
  int64_t image, row, column, end;
};

class TileTransforms {
 public:
  // The schedule must outlive this. Of the weights it is given the bias.
  TileTransforms(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

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

  std::span<const uint8_t> input_code() const { return input_code_.bytes(); }
  std::span<const uint8_t> output_code() const { return output_code_.bytes(); }

 private:
  size_t InputKernels() const { return g_.in_rows.kinds.size() * g_.in_columns.kinds.size(); }
  std::unique_ptr<InputGenerator> EmitInputKernels(const Target& cpu, std::vector<size_t>& starts) const;
  // The real lanes of whole vectors, and those of a last one that is not full.
  std::vector<int> OutputLanes() const;
  size_t OutputKernels() const;
  std::unique_ptr<OutputGenerator> EmitOutputKernels(const Target& cpu, std::vector<size_t>& starts) const;
  bool Streams(const KernelArgs& args) const;
  void ClearPadding(const KernelArgs& args, const RowPart& part) const;

  const Schedule& g_;
  SharedBuffer bias_;  // whole vectors
  GeneratedCode input_code_, output_code_;
  std::vector<InputKernel> inputs_;    // at row kind * column kinds + column kind
  std::vector<OutputKernel> outputs_;  // likewise, in the order of EmitOutputKernels
};

}  // namespace tilesmith::winograd
