// Generated code that stores sums of tiles: residual, activation, and the output's type.
#pragma once

#include <vector>

#include "templates/amx_bf16/schedule.h"
#include "templates/x86/vector_code.h"

namespace tilesmith::amx_bf16 {

// What the code takes. Pixels are adjacent in the output, and in the residual, which has its layout.
struct StoreArgs {
  const float* sums = nullptr;  // [pixel][lane] of a block of channels, bias included
  std::byte* output = nullptr;  // the block's first channel of the first pixel
  const std::byte* residual = nullptr;
  int64_t pixels = 0;
};
using StoreSums = void (*)(const StoreArgs*);

class SumStore : public x86::VectorCode {
 public:
  SumStore(const Schedule& schedule, const Target& cpu);

  // For blocks of which so many channels are real, 1 to the lanes of a block. Lanes beyond them are zeros where the
  // layout has room for them.
  StoreSums Find(int64_t channels) const;
  std::span<const uint8_t> Code() const { return {getCode(), getSize()}; }

 private:
  struct Vectors;
  void Emit(int64_t channels);
  void EmitPixels(const Vectors& vectors, int count);

  const Schedule& schedule_;  // while it is emitted
  std::vector<std::pair<int64_t, size_t>> starts_;  // by channels
};

}  // namespace tilesmith::amx_bf16
