// Code for the input transform: V = B^T d B of one vector of channels, for tiles side by side.
#pragma once

#include "templates/winograd/schedule.h"
#include "templates/winograd/transforms.h"
#include "templates/winograd/x86/linear_code.h"

namespace tilesmith::winograd {

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
  Xbyak::RegExp WindowAt(int row, int column) const;
  Term WindowTerm(double coefficient, int row, int column) const;
  double Even(int pair, int k) const;  // of rows e + o and e - o of B^T
  double Odd(int pair, int k) const;
  // The window as floats into the stack's memory, where WindowTerm finds it.
  void EmitWidening();
  // B^T d for row `row`, or rows `row` and `row + 1` of a pair, into registers from 0 on.
  void EmitColumns(int row, bool pair);
  void EmitRow(int row, int first_register);
  void Store(int element, int index);

  const Schedule& schedule_;
  const Transforms& transforms_;
  const int window_;
  const bool widens_;     // the input is stored in another type than it is computed in
  const bool pairs_fit_;  // both rows of a pair fit the registers
  const int even_, odd_, result_, scratch_;
  Span rows_, columns_;  // while emitting
};

}  // namespace tilesmith::winograd
