#include <algorithm>
#include <cstring>

#include "ops/base/elements.h"
#include "ops/movement/copying.h"

namespace tilesmith {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// A plain output written row by row along its last axis; a task is one row.
class PaddedRowKernel : public Kernel {
 public:
  explicit PaddedRowKernel(const KernelRequest& request)
      : in_shape_(request.inputs[0]),
        out_shape_(request.output),
        in_strides_(DenseStrides(in_shape_)),
        row_(out_shape_.back()),
        rows_(row_ == 0 ? 0 : ElementCount(out_shape_) / row_),
        rows_per_image_(out_shape_[0] == 0 || out_shape_.size() == 1 ? 1 : rows_ / out_shape_[0]) {}

  int64_t Tasks(int) const override { return rows_; }

 protected:
  int64_t InStride(const KernelArgs& args, size_t axis) const {
    return axis == 0 ? args.inputs[0].batch_stride / kFloatBytes : in_strides_[axis];
  }
  // A tensor of rank 1 is one row, its elements a batch that may be spread.
  int64_t OutStep(const KernelArgs& args) const {
    return out_shape_.size() == 1 ? args.output.batch_stride / kFloatBytes : 1;
  }
  float* OutRow(const KernelArgs& args, int64_t row) const {
    if (out_shape_.size() == 1) return args.output.image<float>(0);
    return args.output.image<float>(row / rows_per_image_) + row % rows_per_image_ * row_;
  }

  const Shape in_shape_, out_shape_;
  const std::vector<int64_t> in_strides_;
  const int64_t row_, rows_, rows_per_image_;
};

class PadKernel : public PaddedRowKernel {
 public:
  PadKernel(const KernelRequest& request, const PadOp& op) : PaddedRowKernel(request), op_(op) {}

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const size_t last = out_shape_.size() - 1;
    for (int64_t row = range.begin; row < range.end; ++row) {
      int64_t rest = row, from = 0;
      bool inside = true;
      for (size_t axis = last; axis-- > 0; rest /= out_shape_[axis]) {
        const int64_t at =
            PadSource(op_.mode(), rest % out_shape_[axis] - op_.begin()[axis], in_shape_[axis]);
        inside = inside && at >= 0;
        from += at * InStride(args, axis);
      }
      PadRow(args, inside ? args.inputs[0].image<float>(0) + from : nullptr, OutRow(args, row));
    }
  }

 private:
  // `in` is the input row, null where all is padding.
  void PadRow(const KernelArgs& args, const float* in, float* out) const {
    const size_t last = out_shape_.size() - 1;
    const int64_t step = InStride(args, last), out_step = OutStep(args);
    const int64_t begin = op_.begin()[last], size = in_shape_[last];
    for (int64_t i = 0; i < row_;) {
      const bool middle = in && step == 1 && out_step == 1 && i >= begin && i < begin + size;
      if (middle) {
        const int64_t count = std::min(row_, begin + size) - i;
        std::memcpy(out + i, in + i - begin, count * sizeof(float));
        i += count;
        continue;
      }
      const int64_t at = in ? PadSource(op_.mode(), i - begin, size) : -1;
      out[i * out_step] = at < 0 ? op_.value() : in[at * step];
      ++i;
    }
  }

  const PadOp op_;
};

class ViewKernel : public Kernel {
 public:
  explicit ViewKernel(const KernelRequest& request)
      : bytes_(ElementCount(request.output) * ElementBytes(request.layout.type())),
        in_image_(ImageBytes(request.inputs[0], request.layout)),
        out_image_(ImageBytes(request.output, request.layout)) {}

  int64_t Tasks(int) const override { return CeilDiv(bytes_, kPieceBytes); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t end = std::min(range.end * kPieceBytes, bytes_);
    for (int64_t at = range.begin * kPieceBytes; at < end;) {
      const int64_t in_at = at % in_image_, out_at = at % out_image_;
      const int64_t count = std::min({end - at, in_image_ - in_at, out_image_ - out_at});
      std::memcpy(args.output.image<char>(at / out_image_) + out_at,
                  args.inputs[0].image<char>(at / in_image_) + in_at, count);
      at += count;
    }
  }

 private:
  static constexpr int64_t kPieceBytes = 16384;
  static int64_t ImageBytes(const Shape& shape, const Layout& layout) {
    return std::max<int64_t>(BatchStride(shape, layout) * ElementBytes(layout.type()), 1);
  }
  const int64_t bytes_, in_image_, out_image_;
};

}  // namespace

std::unique_ptr<Kernel> MakePadKernel(const KernelRequest& request, const PadOp& op) {
  return std::make_unique<PadKernel>(request, op);
}

std::unique_ptr<Kernel> MakeViewKernel(const KernelRequest& request) {
  return std::make_unique<ViewKernel>(request);
}

}  // namespace tilesmith
