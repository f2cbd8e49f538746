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

// calloc knows which memory is fresh from the kernel, and so zero already, which aligned_alloc does not say.
// What was given is noted in front of the memory that is aligned. Writing a byte of each page brings all of
// them here, now and by this thread.
AlignedBuffer::AlignedBuffer(size_t bytes, NewMemory holds) : bytes_(bytes) {
  if (bytes == 0) return;
  constexpr int64_t kPage = 4096;
  const int64_t wanted = bytes <= static_cast<size_t>(INT64_MAX) ? static_cast<int64_t>(bytes) : INT64_MAX;
  const int64_t alignment = wanted >= kHugePage ? kHugePage : kCacheLine;
  const int64_t size = RoundUp(wanted, alignment);
  const size_t needed = static_cast<size_t>(size) + alignment + sizeof(void*);
  void* const given = holds == NewMemory::kZeros ? std::calloc(1, needed) : std::malloc(needed);
  if (given == nullptr)
    throw Error(ErrorCode::kEnvironment, fmt::format("out of memory: {} bytes for a tensor", bytes));
  auto* const noted = static_cast<void**>(given) + 1;
  const auto address = reinterpret_cast<intptr_t>(noted);
  data_.reset(reinterpret_cast<std::byte*>(noted) + (RoundUp(address, alignment) - address));
  static_cast<void**>(data_.get())[-1] = given;
  // Not those at the end, of which the kernel would bring all where a part is in use.
  if (alignment == kHugePage) madvise(data_.get(), wanted / kHugePage * kHugePage, MADV_HUGEPAGE);
  if (holds == NewMemory::kAnything) return;
  auto* const pages = static_cast<volatile std::byte*>(data_.get());
  for (int64_t at = 0; at < wanted; at += kPage) pages[at] = std::byte{0};
}

AlignedBuffer::AlignedBuffer(const AlignedBuffer& other) : AlignedBuffer(other.bytes_, NewMemory::kAnything) {
  if (bytes_ > 0) std::memcpy(data(), other.data(), bytes_);
}

AlignedBuffer& AlignedBuffer::operator=(const AlignedBuffer& other) {
  if (this != &other) *this = AlignedBuffer(other);
  return *this;
}

void AlignedBuffer::Free::operator()(void* p) const { std::free(static_cast<void**>(p)[-1]); }

Tensor::Tensor(Shape shape, Layout layout, NewMemory holds)
    : shape_(std::move(shape)), layout_(layout), buffer_(PaddedBytes(shape_, layout), holds) {}

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
