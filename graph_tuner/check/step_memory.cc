#include "graph_tuner/check/step_memory.h"

#include <algorithm>
#include <cstring>

#include "layouts/base/sizes.h"

namespace tilesmith {
namespace {

// body(plain, offset) for every element: its bytes in the plain tensor and in the memory.
template <typename Body>
void ForEachElement(const StepTensor& tensor, int64_t batch_stride, const Body& body) {
  const Shape& shape = tensor.shape;
  const int64_t size = tensor.layout.element_bytes(), images = shape.empty() ? 1 : shape[0];
  const int64_t image = images == 0 ? 0 : ElementCount(shape) / images;
  if (tensor.layout.is_nchw()) {
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t i = 0; i < image; ++i) body((n * image + i) * size, n * batch_stride + i * size);
    }
    return;
  }
  const Dims4 dims = ToDims4(shape);
  const int64_t block = tensor.layout.BlockFor(dims.c), pixels = dims.h * dims.w;
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < dims.c; ++c) {
      const int64_t offset = n * batch_stride + (c / block * pixels * block + c % block) * size;
      for (int64_t i = 0; i < pixels; ++i)
        body((n * image + c * pixels + i) * size, offset + i * block * size);
    }
  }
}

// body(offset) for every element of padding, in bytes.
template <typename Body>
void ForEachPadding(const StepTensor& tensor, int64_t batch_stride, const Body& body) {
  if (tensor.layout.is_nchw()) return;
  const Dims4 dims = ToDims4(tensor.shape);
  const int64_t size = tensor.layout.element_bytes();
  const int64_t block = tensor.layout.BlockFor(dims.c), pixels = dims.h * dims.w;
  for (int64_t n = 0; n < dims.n; ++n) {
    for (int64_t c = dims.c; c < tensor.layout.PaddedChannels(dims.c); ++c) {
      const int64_t first = n * batch_stride + (c / block * pixels * block + c % block) * size;
      for (int64_t i = 0; i < pixels; ++i) body(first + i * block * size);
    }
  }
}

}  // namespace

SeenMemory::SeenMemory(const Device& device, const StepTensor& tensor, const void* data, int64_t batch_stride)
    : device_(device), there_(const_cast<void*>(data)), batch_stride_(batch_stride), data_(there_) {
  if (device.ReadsHostMemory()) return;
  const int64_t images = tensor.shape.empty() ? 1 : tensor.shape[0];
  const Checked bytes = Checked(std::max<int64_t>(images - 1, 0)) * batch_stride +
                        (images == 0 ? 0 : BatchBytes(tensor.shape, tensor.layout));
  copy_.resize(static_cast<size_t>(bytes.value()));
  device.Download(there_, copy_.data(), copy_.size());
  data_ = copy_.data();
}

void SeenMemory::PutBack() const {
  if (data_ != there_) device_.Upload(data_, there_, copy_.size());
}

Tensor ReadPlain(const StepTensor& tensor, const InputView& memory) {
  Tensor plain(tensor.shape, Layout::Nchw(tensor.layout.type()));
  const auto* const from = memory.image<std::byte>(0);
  const int64_t size = tensor.layout.element_bytes();
  ForEachElement(tensor, memory.batch_stride,
                 [&](int64_t at, int64_t offset) { std::copy_n(from + offset, size, plain.raw() + at); });
  return plain;
}

void WritePlain(const Tensor& plain, const StepTensor& tensor, const OutputView& memory) {
  auto* const to = memory.image<std::byte>(0);
  const int64_t size = tensor.layout.element_bytes();
  ForEachElement(tensor, memory.batch_stride,
                 [&](int64_t at, int64_t offset) { std::copy_n(plain.raw() + at, size, to + offset); });
  ForEachPadding(tensor, memory.batch_stride,
                 [&](int64_t offset) { std::fill_n(to + offset, size, std::byte{0}); });
}

std::optional<int64_t> FirstChanged(const Tensor& plain, const StepTensor& tensor, const InputView& memory) {
  const auto* const there = memory.image<std::byte>(0);
  const int64_t size = tensor.layout.element_bytes();
  std::optional<int64_t> changed;
  ForEachElement(tensor, memory.batch_stride, [&](int64_t at, int64_t offset) {
    if (changed && *changed <= at / size) return;
    if (std::memcmp(plain.raw() + at, there + offset, size) != 0) changed = at / size;
  });
  return changed;
}

bool PaddingIsZero(const StepTensor& tensor, const InputView& memory) {
  const auto* const there = memory.image<std::byte>(0);
  const int64_t size = tensor.layout.element_bytes();
  bool zero = true;
  ForEachPadding(tensor, memory.batch_stride, [&](int64_t offset) {
    zero &= VisitType(tensor.layout.type(), [&](auto tag) {
      typename decltype(tag)::Type value;
      std::memcpy(&value, there + offset, size);
      return value == decltype(value){};
    });
  });
  return zero;
}

}  // namespace tilesmith
