// Code for the additions in front of the products and behind them, of one vector of either half of the
// channels, for pairs of pixels side by side.
#pragma once

#include <span>

#include "templates/strassen/schedule.h"
#include "templates/x86/vector_code.h"

namespace tilesmith::strassen {

// first, second: A11 and A21 of the first pair. operands: V[0] of that pair.
using SumKernel = void (*)(const float* first, const float* second, float* operands, int64_t pairs);

// Where the first pair is, and one vector of the chunk's first half.
struct CombineArgs {
  const float* products = nullptr;  // M[0]
  float* first = nullptr;           // C11; the output may be the residual
  float* second = nullptr;          // C21
  const float* residual = nullptr;  // of C11
  const float* bias = nullptr;
  int64_t half = 0;       // bytes to the vector of the second half: from C11 to C12, C21 to C22
  int64_t bias_half = 0;  // likewise
  int64_t pairs = 0;
};
using CombineKernel = void (*)(const CombineArgs*);

class HalvesGenerator : public x86::VectorCode {
 public:
  HalvesGenerator(const Schedule& schedule, const Target& cpu);

  SumKernel sum() const { return Kernel<SumKernel>(sum_); }
  // Post-ops included.
  CombineKernel combine() const { return Kernel<CombineKernel>(combine_); }
  // Leaves the second pixels alone.
  CombineKernel combine_first() const { return Kernel<CombineKernel>(combine_first_); }

  std::span<const uint8_t> code() const { return {getCode(), getSize()}; }

 private:
  template <typename F>
  F Kernel(size_t start) const {
    return reinterpret_cast<F>(const_cast<uint8_t*>(getCode()) + start);
  }
  size_t EmitSum();
  size_t EmitCombine(bool both);
  // output = act(value + bias + residual)
  void EmitOutput(int value, int bias, const Xbyak::RegExp& residual, const Xbyak::RegExp& output);

  const Schedule& schedule_;
  size_t sum_ = 0, combine_ = 0, combine_first_ = 0;
};

}  // namespace tilesmith::strassen
