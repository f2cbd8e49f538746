#include <cstring>
#include <vector>

#include "ops/kernels/block_kernel.h"
#include "ops/resize/resize.h"
#include "ops/resize/resize_loops.h"

namespace tilesmith {
namespace {

// How often each input column is repeated, where all the output is that; else 0.
int64_t RepeatOf(const std::vector<ResizeTap>& columns, int64_t input_width) {
  const auto width = static_cast<int64_t>(columns.size());
  const int64_t repeat = width / input_width;
  if (repeat == 0 || width % input_width != 0) return 0;
  for (int64_t x = 0; x < width; ++x) {
    if (columns[x].low != x / repeat || columns[x].weight != 0) return 0;
  }
  return repeat;
}

template <typename T>
class ResizeKernel : public Kernel {
 public:
  ResizeKernel(const KernelRequest& request, const ResizeParams& params)
      : in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)),
        rows_(ResizeTaps(params, 2)),
        columns_(ResizeTaps(params, 3)),
        repeat_(RepeatOf(columns_, in_.width)),
        nearest_(params.mode == ResizeMode::kNearest),
        loop_(nearest_ ? TILESMITH_DISPATCH_STORED(T, request.cpu, NearestRow<T>)
                       : TILESMITH_DISPATCH_STORED(T, request.cpu, LinearRow<T>)) {}

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return GridOfPieces(out_, out_.width); }

  // Padding lanes hold zeros, and so does what lies between them.
  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t in_row = in_.width * in_.lanes, out_row = out_.width * out_.lanes;
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      T* output = args.output.image<T>(image) + block * out_.block_floats() + y * out_row;
      if (nearest_ && task > range.begin && y > 0 && rows_[y].low == rows_[y - 1].low) {
        std::memcpy(output, output - out_row, out_row * sizeof(T));
        continue;
      }
      const T* input = args.inputs[0].image<T>(image) + block * in_.block_floats();
      loop_({input + rows_[y].low * in_row, input + rows_[y].high * in_row, rows_[y].weight, output,
             out_.lanes, out_.width, columns_.data(), repeat_});
    }
  }

 private:
  const BlockDims in_, out_;
  const std::vector<ResizeTap> rows_, columns_;
  const int64_t repeat_;
  const bool nearest_;
  void (*const loop_)(const ResizeRow<T>&);
};

}  // namespace

std::unique_ptr<Kernel> MakeResizeKernel(const KernelRequest& request, const ResizeParams& params) {
  if (request.layout.type() == DataType::kBf16)
    return std::make_unique<ResizeKernel<uint16_t>>(request, params);
  return std::make_unique<ResizeKernel<float>>(request, params);
}

}  // namespace tilesmith
