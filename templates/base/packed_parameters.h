// Weights, bias and multipliers of a conv that one pass over its weights makes together: one behind the other
// in one part of the kernel, each at a whole cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "layouts/base/sizes.h"
#include "layouts/kernel_parts.h"

namespace tilesmith {

class PackedParameters {
 public:
  struct Sizes {
    int64_t weights = 0, bias = 0, multipliers = 0;  // bytes
  };
  // Where they are packed, all zeros at first.
  struct Memory {
    std::byte* weights;
    std::byte* bias;
    float* multipliers;

    int32_t* bias_ints() const { return reinterpret_cast<int32_t*>(bias); }
    float* bias_floats() const { return reinterpret_cast<float*>(bias); }
  };

  PackedParameters() = default;
  // pack(Memory) fills them, unless they are known.
  template <typename Pack>
  PackedParameters(KernelParts* parts, const Sizes& sizes, const Pack& pack)
      : sizes_(sizes),
        bias_at_(RoundUp(sizes.weights, kLineBytes)),
        multipliers_at_(bias_at_ + RoundUp(sizes.bias, kLineBytes)) {
    const auto bytes = static_cast<size_t>(multipliers_at_ + sizes.multipliers);
    all_ = DataPart(parts, bytes, [&] {
      AlignedBuffer buffer(bytes);
      auto* const begin = static_cast<std::byte*>(buffer.data());
      pack(Memory{begin, begin + bias_at_, reinterpret_cast<float*>(begin + multipliers_at_)});
      return buffer;
    });
  }

  std::span<const std::byte> weights() const {
    return all_.bytes().first(static_cast<size_t>(sizes_.weights));
  }
  const std::byte* bias() const { return all_.data() + bias_at_; }
  const int32_t* bias_ints() const { return reinterpret_cast<const int32_t*>(bias()); }
  const float* multipliers() const { return reinterpret_cast<const float*>(all_.data() + multipliers_at_); }
  bool has_multipliers() const { return sizes_.multipliers > 0; }

 private:
  static constexpr int64_t kLineBytes = 64;
  Sizes sizes_;
  int64_t bias_at_ = 0, multipliers_at_ = 0;
  SharedBuffer all_;
};

}  // namespace tilesmith
