#include "layouts/tensor.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int64_t kHugePage = 2 << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const int64_t wanted = bytes <= static_cast<size_t>(INT64_MAX) ? static_cast<int64_t>(bytes) : INT64_MAX;
  const int64_t alignment = wanted >= kHugePage ? kHugePage : kCacheLine;
  const int64_t allocated = RoundUp(wanted, alignment);
  data_.reset(std::aligned_alloc(alignment, allocated));
  if (data_ == nullptr) {
    throw Error(ErrorCode::kEnvironment, fmt::format("out of memory: {} bytes for a tensor", bytes));
  }
  if (alignment == kHugePage) madvise(data_.get(), allocated, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, RoundUp(wanted, kCacheLine));
}

AlignedBuffer::AlignedBuffer(const AlignedBuffer& other) : AlignedBuffer(other.bytes_) {
  if (bytes_ > 0) std::memcpy(data(), other.data(), bytes_);
}

AlignedBuffer& AlignedBuffer::operator=(const AlignedBuffer& other) {
  if (this != &other) *this = AlignedBuffer(other);
  return *this;
}

void AlignedBuffer::Free::operator()(void* p) const { std::free(p); }

Tensor::Tensor(Shape shape, Layout layout)
    : shape_(std::move(shape)), layout_(layout), buffer_(PaddedBytes(shape_, layout)) {}

void Tensor::CheckType(DataType asked) const {
  TILESMITH_CHECK(asked == type(), "elements of {}, not {}", DataTypeName(type()), DataTypeName(asked));
}

Tensor Tensor::Reshaped(Shape shape) const {
  TILESMITH_CHECK(layout_.is_nchw() && ElementCount(shape) == size(), "{} to {}", ShapeToString(shape_),
                  ShapeToString(shape));
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

}  // namespace tilesmith
