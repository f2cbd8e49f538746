// Tensors: a shape, a layout, which includes the elements' type, and the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "layouts/base/kernel.h"
#include "layouts/layout.h"

namespace tilesmith {

// What new memory holds: kAnything for those who write all of it before anyone reads.
enum class NewMemory { kZeros, kAnything };

// Memory aligned to 64 bytes; from 2 MiB on, to huge pages, which the kernel is asked for.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws Error(kEnvironment) naming the size when memory is short.
  explicit AlignedBuffer(size_t bytes, NewMemory holds = NewMemory::kZeros);
  // Somebody else's memory, aligned as its owner says, which lives as long as this does. It is only read.
  AlignedBuffer(std::span<const std::byte> memory, std::shared_ptr<const void> owner);
  AlignedBuffer(const AlignedBuffer& other);
  AlignedBuffer& operator=(const AlignedBuffer& other);
  AlignedBuffer(AlignedBuffer&&) noexcept = default;
  AlignedBuffer& operator=(AlignedBuffer&&) noexcept = default;

  void* data() const { return data_.get(); }
  float* floats() const { return static_cast<float*>(data_.get()); }
  size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* p) const;
    std::shared_ptr<const void> owner;  // of memory that is not ours
  };
  std::unique_ptr<void, Free> data_;
  size_t bytes_ = 0;
};

// A value: copying copies the memory. Padding is zero on construction, where that is not left to the caller.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Shape shape, Layout layout = Layout::Nchw(), NewMemory holds = NewMemory::kZeros);
  // Precondition: PaddedBytes(shape, layout) bytes.
  Tensor(Shape shape, Layout layout, AlignedBuffer elements);

  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  DataType type() const { return layout_.type(); }
  int64_t size() const { return ElementCount(shape_); }  // logical elements
  int64_t padded_size() const { return PaddedElementCount(shape_, layout_); }

  // The elements. Precondition: type() is kDataTypeOf<T>.
  template <typename T>
  T* data() {
    CheckType(kDataTypeOf<T>);
    return static_cast<T*>(buffer_.data());
  }
  template <typename T>
  const T* data() const {
    CheckType(kDataTypeOf<T>);
    return static_cast<const T*>(buffer_.data());
  }
  float* floats() { return data<float>(); }
  const float* floats() const { return data<float>(); }
  int64_t* ints() { return data<int64_t>(); }
  const int64_t* ints() const { return data<int64_t>(); }

  // The elements as bytes, padding included.
  std::byte* raw() { return static_cast<std::byte*>(buffer_.data()); }
  const std::byte* raw() const { return static_cast<const std::byte*>(buffer_.data()); }
  int64_t bytes() const { return static_cast<int64_t>(buffer_.bytes()); }

  InputView input_view() const { return {raw(), BatchBytes(shape_, layout_)}; }
  OutputView output_view() { return {raw(), BatchBytes(shape_, layout_)}; }

  // The same elements under another shape. Preconditions: plain layout, equal element count.
  Tensor Reshaped(Shape shape) const;

 private:
  void CheckType(DataType asked) const;

  Shape shape_;
  Layout layout_;
  AlignedBuffer buffer_;
};

}  // namespace tilesmith
