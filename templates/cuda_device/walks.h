// Numbers of templates/cuda/kernels/walks.cu: where the elements of tensors lie, axis by axis.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layouts/layout.h"
#include "ops/base/activation.h"
#include "templates/cuda_device/program_builder.h"

namespace tilesmith::cuda {

constexpr size_t kAxes = 6;               // AXES of walks.cu
constexpr int64_t kImages = -2147483647;  // and IMAGES

struct Axis {
  int64_t size = 1, stride = 0;
};
using Axes = std::vector<Axis>;

inline CudaOperand InScratch() { return {.from = CudaOperand::From::kScratch}; }
constexpr CudaOperand kOutput = {.from = CudaOperand::From::kOutput};
inline int64_t Bits(float value) { return std::bit_cast<int32_t>(value); }

std::string WalksText(const Activation& activation = {});

// The axes of a tensor in their order. Precondition: NCHW or NHWC.
Axes AxesOf(const Shape& shape, const Layout& layout = Layout::Nchw());
int64_t SizeOf(const Axes& axes);
// Numbers of a Walk; axes that lie in one row are one.
void AddWalk(ProgramBuilder& builder, const Axes& axes, std::vector<int64_t>& numbers);

// Threads that share a group of so many elements.
int64_t LanesFor(int64_t count);
// A function on groups whose threads share memory.
void AddGroups(ProgramBuilder& builder, std::string function, Checked groups, int64_t lanes,
               std::span<const int64_t> numbers, const CudaOperand& input);

// Softmax over groups (`outer`) of elements (`inner`); causal_rows as Softmax::rows of walks.cu.
struct SoftmaxGroups {
  Axes outer, inner;
  bool logarithm = false;
  int64_t causal_rows = 0;
};
void AddSoftmax(ProgramBuilder& builder, const SoftmaxGroups& softmax, const CudaOperand& input,
                CudaOperand output);

}  // namespace tilesmith::cuda
