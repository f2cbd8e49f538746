// The planes of a built depthwise conv: packed weights and code, run on any rows and channels of an image.
#pragma once

#include <span>
#include <vector>

#include "layouts/base/target.h"
#include "templates/base/conv_template.h"
#include "templates/depthwise/schedule.h"
#include "templates/depthwise/x86/generator.h"

namespace tilesmith::depthwise {

class Planes {
 public:
  // Precondition: cpu.isa is AVX2 or AVX-512 and the machine has it. `schedule` must outlive this.
  Planes(const Schedule& schedule, const Target& cpu, const ConvWeights& weights);

  // One image: pixel 0 of row 0 of its first channel, which need not exist in memory if row 0 is not touched.
  // Elements are of the types that the schedule says.
  struct Image {
    const float* source = nullptr;
    float* output = nullptr;
    const float* residual = nullptr;
  };
  // Output rows of row block `row_block`, vectors [first, first + count) of channels; the padding channels
  // behind the last vector too. Thread-safe for disjoint outputs.
  void Run(const Image& image, int64_t first, int64_t count, int64_t row_block) const;

  std::span<const uint8_t> Code() const { return {code_.getCode(), code_.getSize()}; }
  std::span<const std::byte> PackedWeights() const { return weights_.bytes(); }

 private:
  // A kernel and, for each row block, its steps.
  struct Variant {
    PlaneCode code;
    PlaneKernel kernel = nullptr;
    std::vector<std::vector<RowStep>> steps;
  };
  struct Vectors {
    int64_t first, count;
  };
  void Pack(const ConvWeights& weights);
  void Link(Variant& variant);
  int64_t EvenUntil(const ChannelStrides& strides, int64_t v) const;
  void RunEven(const Image& image, const Variant& variant, const Vectors& vectors, int64_t row_block) const;
  void FillPadding(const Image& image, int64_t row_block) const;

  const Schedule& schedule_;
  // For each vector of channels: the kernel's weights (kernel row, kernel column, lane), then with pairs
  // those of their products (product, kernel column, lane). Channels past the last are zero.
  SharedBuffer weights_;
  AlignedBuffer bias_;  // whole vectors
  PlaneGenerator code_;
  Variant full_, partial_;
};

}  // namespace tilesmith::depthwise
