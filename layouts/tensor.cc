#include "layouts/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "layouts/base/check.h"

namespace tilesmith {
namespace {

constexpr int64_t kCacheLine = 64, kPage = 4096;
constexpr int64_t kHugePage = 2 << 20;

// What was asked of the system, noted in front of the memory that is aligned.
struct Given {
  void* memory = nullptr;
  size_t mapped = 0;  // bytes; 0: by malloc
};

// Behind a note, at a multiple of the alignment.
std::byte* Aligned(void* begin, int64_t alignment) {
  auto* const behind_note = static_cast<std::byte*>(begin) + sizeof(Given);
  const auto address = reinterpret_cast<intptr_t>(behind_note);
  return behind_note + (RoundUp(address, alignment) - address);
}

// Zeros of the kernel's, which get all of it back at once: what networks are loaded from comes and goes by
// the hundred megabytes, and a heap would keep the gaps. Huge pages but for an end that fills less than half
// of one, of which all would be taken.
std::byte* Map(int64_t bytes) {
  const int64_t whole = bytes / kHugePage * kHugePage, end = bytes - whole;
  const int64_t huge = end >= kHugePage / 2 ? whole + kHugePage : whole;
  const size_t size = static_cast<size_t>(std::max(huge, RoundUp(bytes, kPage)));
  const size_t reserved = size + kHugePage + kPage;
  void* const begin = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  std::byte* const data = Aligned(begin, kHugePage);
  std::byte* const first = data - kPage;  // with the note at its end
  const size_t in_front = first - static_cast<std::byte*>(begin);
  if (in_front > 0) munmap(begin, in_front);
  if (const size_t behind = reserved - in_front - kPage - size; behind > 0) munmap(data + size, behind);
  madvise(data, huge, MADV_HUGEPAGE);
  reinterpret_cast<Given*>(data)[-1] = {first, kPage + size};
  return data;
}

// calloc knows which memory is fresh from the kernel, and so zero already, which aligned_alloc does not say.
std::byte* Allocate(int64_t bytes, NewMemory holds) {
  const size_t needed = static_cast<size_t>(RoundUp(bytes, kCacheLine)) + kCacheLine + sizeof(Given);
  void* const given = holds == NewMemory::kZeros ? std::calloc(1, needed) : std::malloc(needed);
  if (given == nullptr) return nullptr;
  std::byte* const data = Aligned(given, kCacheLine);
  reinterpret_cast<Given*>(data)[-1] = {given, 0};
  return data;
}

}  // namespace

// Writing a byte of each page brings all of them here, now and by this thread.
AlignedBuffer::AlignedBuffer(size_t bytes, NewMemory holds) : bytes_(bytes) {
  if (bytes == 0) return;
  constexpr size_t kMost = size_t{1} << 60;  // more than there can be
  const auto wanted = static_cast<int64_t>(std::min(bytes, kMost));
  data_.reset(wanted >= kHugePage ? Map(wanted) : Allocate(wanted, holds));
  if (data_ == nullptr)
    throw Error(ErrorCode::kEnvironment, fmt::format("out of memory: {} bytes for a tensor", bytes));
  if (holds == NewMemory::kAnything) return;
  auto* const pages = static_cast<volatile std::byte*>(data_.get());
  for (int64_t at = 0; at < wanted; at += kPage) pages[at] = std::byte{0};
}

AlignedBuffer::AlignedBuffer(std::span<const std::byte> memory, std::shared_ptr<const void> owner)
    : data_(const_cast<std::byte*>(memory.data()), Free{std::move(owner)}), bytes_(memory.size()) {}

AlignedBuffer::AlignedBuffer(const AlignedBuffer& other) : AlignedBuffer(other.bytes_, NewMemory::kAnything) {
  if (bytes_ > 0) std::memcpy(data(), other.data(), bytes_);
}

AlignedBuffer& AlignedBuffer::operator=(const AlignedBuffer& other) {
  if (this != &other) *this = AlignedBuffer(other);
  return *this;
}

void AlignedBuffer::Free::operator()(void* p) const {
  if (owner != nullptr) return;
  const Given given = static_cast<Given*>(p)[-1];
  if (given.mapped > 0) {
    munmap(given.memory, given.mapped);
  } else {
    std::free(given.memory);
  }
}

Tensor::Tensor(Shape shape, Layout layout, NewMemory holds)
    : shape_(std::move(shape)), layout_(layout), buffer_(PaddedBytes(shape_, layout), holds) {}

Tensor::Tensor(Shape shape, Layout layout, AlignedBuffer elements)
    : shape_(std::move(shape)), layout_(layout), buffer_(std::move(elements)) {
  TILESMITH_CHECK(bytes() == PaddedBytes(shape_, layout_), "{} bytes for {}", bytes(), ShapeToString(shape_));
}

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
