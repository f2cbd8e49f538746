#include "graph_tuner/check/step_memory.h"

#include <algorithm>
#include <bit>

namespace tilesmith {
namespace {

// body(plain, offset) for runs of plain elements [plain, plain + count) that lie `step` floats apart from
// `offset` on.
template <typename Body>
void ForEachRun(const StepTensor& tensor, int64_t batch_stride, const Body& body) {
  const Shape& shape = tensor.shape;
  const int64_t images = shape.empty() ? 1 : shape[0];
  const int64_t image = images == 0 ? 0 : ElementCount(shape) / images;
  if (tensor.layout.is_nchw()) {
    for (int64_t n = 0; n < images; ++n) body(n * image, n * batch_stride, image, 1);
    return;
  }
  const Dims4 dims = ToDims4(shape);
  const int64_t block = tensor.layout.BlockFor(dims.c), pixels = dims.h * dims.w;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < dims.c; ++c) {
      const int64_t offset = n * batch_stride + c / block * pixels * block + c % block;
      body(n * image + c * pixels, offset, pixels, block);
    }
  }
}

// body(offset) for every float of padding.
template <typename Body>
void ForEachPadding(const StepTensor& tensor, int64_t batch_stride, const Body& body) {
  if (tensor.layout.is_nchw()) return;
  const Dims4 dims = ToDims4(tensor.shape);
  const int64_t block = tensor.layout.BlockFor(dims.c), pixels = dims.h * dims.w;
  for (int64_t n = 0; n < dims.n; ++n) {
    for (int64_t c = dims.c; c < tensor.layout.PaddedChannels(dims.c); ++c) {
      const int64_t first = n * batch_stride + c / block * pixels * block + c % block;
      for (int64_t i = 0; i < pixels; ++i) body(first + i * block);
    }
  }
}

}  // namespace

Tensor ReadPlain(const StepTensor& tensor, const InputView& memory) {
  Tensor plain(tensor.shape);
  ForEachRun(tensor, memory.batch_stride, [&](int64_t at, int64_t offset, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; ++i) plain.floats()[at + i] = memory.data[offset + i * step];
  });
  return plain;
}

void WritePlain(const Tensor& plain, const StepTensor& tensor, const OutputView& memory) {
  ForEachRun(tensor, memory.batch_stride, [&](int64_t at, int64_t offset, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; ++i) memory.data[offset + i * step] = plain.floats()[at + i];
  });
  ForEachPadding(tensor, memory.batch_stride, [&](int64_t offset) { memory.data[offset] = 0; });
}

std::optional<int64_t> FirstChanged(const Tensor& plain, const StepTensor& tensor, const InputView& memory) {
  std::optional<int64_t> changed;
  ForEachRun(tensor, memory.batch_stride, [&](int64_t at, int64_t offset, int64_t count, int64_t step) {
    if (changed && *changed < at) return;
    for (int64_t i = 0; i < count; ++i) {
      const float there = memory.data[offset + i * step];
      if (std::bit_cast<uint32_t>(plain.floats()[at + i]) == std::bit_cast<uint32_t>(there)) continue;
      changed = at + i;
      return;
    }
  });
  return changed;
}

bool PaddingIsZero(const StepTensor& tensor, const InputView& memory) {
  bool zero = true;
  ForEachPadding(tensor, memory.batch_stride, [&](int64_t offset) { zero &= memory.data[offset] == 0; });
  return zero;
}

}  // namespace tilesmith
