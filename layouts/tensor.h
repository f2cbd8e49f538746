// Tensors: a shape, a layout and the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "layouts/base/kernel.h"
#include "layouts/layout.h"

namespace tilesmith {

// Zero-filled memory aligned to 64 bytes; from 2 MiB on, to huge pages, which the kernel is asked for.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes);  // throws Error(kEnvironment) naming the size when memory is short
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
  };
  std::unique_ptr<void, Free> data_;
  size_t bytes_ = 0;
};

// Networks compute in kF32; kI64 exists for the shape arithmetic that is folded away at load time.
enum class DataType { kF32, kI64 };
inline int64_t ElementBytes(DataType type) {
  return type == DataType::kF32 ? sizeof(float) : sizeof(int64_t);
}

// A value: copying copies the memory. Padding is zero on construction.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Shape shape, Layout layout = Layout::Nchw(), DataType type = DataType::kF32);

  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  DataType type() const { return type_; }
  int64_t size() const { return ElementCount(shape_); }  // logical elements
  int64_t padded_size() const { return PaddedElementCount(shape_, layout_); }

  // Precondition: type() is the one asked for.
  float* floats();
  const float* floats() const;
  int64_t* ints();
  const int64_t* ints() const;

  InputView input_view() const { return {floats(), BatchStride(shape_, layout_)}; }
  OutputView output_view() { return {floats(), BatchStride(shape_, layout_)}; }

  // The same elements under another shape. Preconditions: plain layout, equal element count.
  Tensor Reshaped(Shape shape) const;

 private:
  Shape shape_;
  Layout layout_;
  DataType type_ = DataType::kF32;
  AlignedBuffer buffer_;
};

}  // namespace tilesmith
