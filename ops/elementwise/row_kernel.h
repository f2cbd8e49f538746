// Kernels of element-wise ops on plain tensors of any types, made of what computes a row.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "ops/base/op.h"

namespace tilesmith {

inline constexpr size_t kMaxRowInputs = 3;

// Elements along a dimension: of the inputs and the output the first one, and the distance to the next in
// elements.
struct ElementRow {
  std::array<const void*, kMaxRowInputs> in{};
  std::array<int64_t, kMaxRowInputs> step{};
  void* out = nullptr;
  int64_t out_step = 1;
  int64_t count = 0;
};

// Thread-safe, and throws nothing.
using RowFunction = std::function<void(const ElementRow&)>;

// Calls it for rows that make up the output; inputs broadcast.
std::unique_ptr<Kernel> MakeRowKernel(const KernelRequest& request, RowFunction row);

}  // namespace tilesmith
