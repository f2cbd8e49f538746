#include "ops/movement/gather_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "layouts/base/error.h"
#include "ops/kernels/loop_nest.h"

namespace tilesmith {
namespace {

constexpr int64_t kGatherPieceElements = 4096;

class GatherKernel : public Kernel {
 public:
  GatherKernel(const KernelRequest& request, int64_t axis)
      : request_(request),
        axis_(axis),
        size_(request.inputs[0][axis]),
        element_(ElementBytes(request.layout.type())),
        inner_(ElementCount(Shape(request.inputs[0].begin() + axis + 1, request.inputs[0].end()))),
        rows_(inner_ == 0 ? 0 : ElementCount(request.output) / inner_),
        piece_(std::max<int64_t>(kGatherPieceElements / std::max<int64_t>(inner_, 1), 1)),
        read_(ReaderOf(request.InputType(1))) {}

  int64_t Tasks(int) const override { return CeilDiv(rows_, piece_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const Layout index_layout = Layout::Nchw(request_.InputType(1));
    const MemoryDims data = MemoryDimsOf(request_.inputs[0], request_.layout, args.inputs[0].batch_stride);
    const MemoryDims indices = MemoryDimsOf(request_.inputs[1], index_layout, args.inputs[1].batch_stride);
    const MemoryDims out = MemoryDimsOf(request_.output, request_.layout, args.output.batch_stride);
    OperandLoops<3> rows;   // operands: the data, the indices, the output
    OperandLoops<2> inner;  // the data, the output
    int to = 0;
    for (int d = 0; d < axis_; ++d, ++to) rows.Add(data.size[d], {data.stride[d], 0, out.stride[to]});
    for (int d = 0; d < indices.rank; ++d, ++to)
      rows.Add(indices.size[d], {0, indices.stride[d], out.stride[to]});
    for (int d = static_cast<int>(axis_) + 1; d < data.rank; ++d, ++to) {
      inner.Add(data.size[d], {data.stride[d], out.stride[to]});
    }
    const char* const from = args.inputs[0].image<char>(0);
    char* const result = args.output.image<char>(0);
    if (inner_ == 1 && element_ == 4 && request_.InputType(1) == DataType::kI64) {
      return GatherSingles(args, rows, data.stride[axis_], range);
    }
    rows.ForEach(range.begin * piece_, std::min(range.end * piece_, rows_),
                 [&](const OperandLoops<3>::Part& part) {
                   for (int64_t row = 0; row < part.rows; ++row) {
                     for (int64_t column = 0; column < part.columns; ++column) {
                       const auto at = [&](int k) {
                         return part.offset[k] + row * part.row[k] + column * part.column[k];
                       };
                       const int64_t source = at(0) + IndexAt(args.inputs[1], at(1)) * data.stride[axis_];
                       CopyInner(inner, from + source * element_, result + at(2) * element_);
                     }
                   }
                 });
  }

 private:
  using Reader = int64_t (*)(const void*, int64_t);
  static Reader ReaderOf(DataType type) {
    return VisitType(type, [](auto tag) -> Reader {
      using T = typename decltype(tag)::Type;
      return [](const void* data, int64_t at) {
        return ConvertElement<int64_t>(static_cast<const T*>(data)[at]);
      };
    });
  }

  // Elements of four bytes, one by one.
  void GatherSingles(const KernelArgs& args, const OperandLoops<3>& rows, int64_t stride,
                     TaskRange range) const {
    const auto* const from = args.inputs[0].image<uint32_t>(0);
    const auto* const indices = args.inputs[1].image<int64_t>(0);
    auto* const result = args.output.image<uint32_t>(0);
    rows.ForEach(range.begin * piece_, std::min(range.end * piece_, rows_),
                 [&](const OperandLoops<3>::Part& part) {
                   for (int64_t row = 0; row < part.rows; ++row) {
                     const uint32_t* const in = from + part.offset[0] + row * part.row[0];
                     const int64_t* const at = indices + part.offset[1] + row * part.row[1];
                     uint32_t* const out = result + part.offset[2] + row * part.row[2];
                     for (int64_t i = 0; i < part.columns; ++i) {
                       const int64_t index = InRange(at[i * part.column[1]]);
                       out[i * part.column[2]] = in[i * part.column[0] + index * stride];
                     }
                   }
                 });
  }

  int64_t IndexAt(const InputView& indices, int64_t at) const { return InRange(read_(indices.data, at)); }

  int64_t InRange(int64_t given) const {
    const int64_t index = given < 0 ? given + size_ : given;
    if (index < 0 || index >= size_) {
      throw Error(ErrorCode::kBadModel, fmt::format("Gather index {} is outside axis {} of {}", given, axis_,
                                                    ShapeToString(request_.inputs[0])));
    }
    return index;
  }

  void CopyInner(const OperandLoops<2>& inner, const char* from, char* to) const {
    inner.ForEach(0, inner_, [&](const OperandLoops<2>::Part& part) {
      for (int64_t row = 0; row < part.rows; ++row) {
        const char* in = from + (part.offset[0] + row * part.row[0]) * element_;
        char* out = to + (part.offset[1] + row * part.row[1]) * element_;
        if (part.columns == 1 || (part.column[0] == 1 && part.column[1] == 1)) {
          std::memcpy(out, in, part.columns * element_);
          continue;
        }
        for (int64_t i = 0; i < part.columns; ++i) {
          std::memcpy(out + i * part.column[1] * element_, in + i * part.column[0] * element_, element_);
        }
      }
    });
  }

  const KernelRequest request_;
  const int64_t axis_, size_, element_, inner_, rows_, piece_;
  const Reader read_;
};

}  // namespace

std::unique_ptr<Kernel> MakeGatherKernel(const KernelRequest& request, int64_t axis) {
  return std::make_unique<GatherKernel>(request, axis);
}

}  // namespace tilesmith
