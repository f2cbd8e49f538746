#include "ops/movement/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "layouts/base/check.h"
#include "layouts/transform_moves.h"
#include "ops/kernels/loop_nest.h"

namespace tilesmith {
namespace {

constexpr int64_t kUnitElements = 4096;
constexpr int64_t kTileColumns = 128, kTileRows = 32;

struct StridedLoop {
  int64_t size, in, out;  // strides in elements
};

// The loops of one region, arranged for its strides. The work is cut into units that may run in any order.
class StridedCopy {
 public:
  void Add(const StridedLoop& loop) {
    if (loop.size != 1) loops_[rank_++] = loop;
  }

  // After all Adds.
  void Arrange() {
    std::sort(loops_.begin(), loops_.begin() + rank_,
              [](const StridedLoop& a, const StridedLoop& b) { return a.out > b.out; });
    Merge();
    // The inner two loops: along the output, and where the input's neighbours are elsewhere, along those.
    const auto adjacent = std::find_if(loops_.begin(), loops_.begin() + rank_,
                                       [](const StridedLoop& loop) { return loop.in == 1; });
    is_transposed_ = rank_ >= 2 && loops_[rank_ - 1].out == 1 && loops_[rank_ - 1].in != 1 &&
                     loops_[rank_ - 1].in != 0 && adjacent < loops_.begin() + rank_ - 1;
    if (is_transposed_) std::rotate(adjacent, adjacent + 1, loops_.begin() + rank_ - 1);
    if (rank_ >= 1) columns_ = loops_[rank_ - 1];
    if (rank_ >= 2) rows_ = loops_[rank_ - 2];
    unit_columns_ = std::min(columns_.size, is_transposed_ ? kTileColumns : kUnitElements);
    unit_rows_ = is_transposed_ ? kTileRows : std::max<int64_t>(kUnitElements / unit_columns_, 1);
    row_units_ = CeilDiv(rows_.size, unit_rows_);
    column_units_ = CeilDiv(columns_.size, unit_columns_);
  }

  int64_t Units() const {
    int64_t units = row_units_ * column_units_;
    for (int d = 0; d < rank_ - 2; ++d) units *= loops_[d].size;
    return units;
  }

  template <typename T>
  void Run(const T* in, T* out, int64_t begin, int64_t end, Isa isa) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t column = unit % column_units_ * unit_columns_;
      const int64_t row = unit / column_units_ % row_units_ * unit_rows_;
      int64_t from = row * rows_.in + column * columns_.in, to = row * rows_.out + column * columns_.out;
      int64_t rest = unit / column_units_ / row_units_;
      for (int d = rank_ - 2; d-- > 0; rest /= loops_[d].size) {
        const int64_t at = rest % loops_[d].size;
        from += at * loops_[d].in;
        to += at * loops_[d].out;
      }
      const int64_t rows = std::min(unit_rows_, rows_.size - row);
      const int64_t columns = std::min(unit_columns_, columns_.size - column);
      if (is_transposed_) {
        Transpose(in + from, out + to, rows, columns, isa);
      } else {
        for (int64_t r = 0; r < rows; ++r)
          CopyRow(in + from + r * rows_.in, out + to + r * rows_.out, columns);
      }
    }
  }

 private:
  void Merge() {
    int merged = 0;
    for (int d = 0; d < rank_; ++d) {
      const StridedLoop& loop = loops_[d];
      if (merged > 0 && loops_[merged - 1].in == loop.size * loop.in &&
          loops_[merged - 1].out == loop.size * loop.out) {
        loops_[merged - 1] = {loops_[merged - 1].size * loop.size, loop.in, loop.out};
      } else {
        loops_[merged++] = loop;
      }
    }
    rank_ = merged;
  }

  template <typename T>
  void CopyRow(const T* in, T* out, int64_t count) const {
    constexpr int64_t kShort = 64 / sizeof(T);
    if (columns_.in == 1 && columns_.out == 1 && count > kShort) {
      std::memcpy(out, in, count * sizeof(T));
    } else if (columns_.in == 0 && columns_.out == 1) {
      std::fill_n(out, count, *in);
    } else {
      for (int64_t i = 0; i < count; ++i) out[i * columns_.out] = in[i * columns_.in];
    }
  }

  // Rows are adjacent in the input, columns in the output.
  template <typename T>
  void Transpose(const T* in, T* out, int64_t rows, int64_t columns, Isa isa) const {
    PlaneMove<T> move;
    move.in = in;
    move.out = out;
    move.plane_stride = rows_.out;
    move.pixel_stride = columns_.in;
    move.pixels = columns;
    move.channels = rows;
    TILESMITH_DISPATCH(isa, Deinterleave<T>)(move);
  }

  std::array<StridedLoop, kMaxRank + 1> loops_;
  int rank_ = 0;
  bool is_transposed_ = false;
  StridedLoop rows_{1, 0, 0}, columns_{1, 1, 1};
  int64_t unit_rows_ = 1, unit_columns_ = 1, row_units_ = 1, column_units_ = 1;
};

class CopyKernel : public Kernel {
 public:
  CopyKernel(const KernelRequest& request, std::vector<CopyRegion> regions)
      : request_(request),
        regions_(std::move(regions)),
        element_(ElementBytes(request.layout.type())),
        tasks_(CeilDiv(ElementCount(request.output), kUnitElements)) {}

  int64_t Tasks(int) const override { return tasks_; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    switch (element_) {
      case 1:
        return RunAs<uint8_t>(args, range);
      case 2:
        return RunAs<uint16_t>(args, range);
      case 4:
        return RunAs<float>(args, range);
      default:
        return RunAs<uint64_t>(args, range);
    }
  }

 private:
  template <typename T>
  void RunAs(const KernelArgs& args, const TaskRange& range) const {
    const MemoryDims out = MemoryDimsOf(request_.output, request_.layout, args.output.batch_stride);
    for (const CopyRegion& region : regions_) {
      const InputView& view = args.inputs[region.input];
      const MemoryDims in = MemoryDimsOf(request_.inputs[region.input], request_.layout, view.batch_stride);
      int64_t from = 0, to = 0;
      for (size_t axis = 0; axis < region.in_start.size(); ++axis)
        from += region.in_start[axis] * in.stride[axis];
      for (size_t axis = 0; axis < region.out_start.size(); ++axis)
        to += region.out_start[axis] * out.stride[axis];
      StridedCopy copy;
      bool is_empty = false;
      for (const CopyLoop& loop : region.loops) {
        const int64_t step = loop.in_axis < 0 ? 0 : loop.in_step * in.stride[loop.in_axis];
        copy.Add({loop.size, step, out.stride[loop.out_axis]});
        is_empty = is_empty || loop.size == 0;
      }
      if (is_empty) continue;
      copy.Arrange();
      const int64_t units = copy.Units(), each = units / tasks_, more = units % tasks_;
      const auto first_of = [&](int64_t task) { return each * task + std::min(task, more); };
      copy.Run(view.image<T>(0) + from, args.output.image<T>(0) + to, first_of(range.begin),
               first_of(range.end), request_.cpu.isa);
    }
  }

  const KernelRequest request_;
  const std::vector<CopyRegion> regions_;
  const int64_t element_, tasks_;
};

}  // namespace

std::unique_ptr<Kernel> MakeCopyKernel(const KernelRequest& request, std::vector<CopyRegion> regions) {
  TILESMITH_CHECK(request.layout.is_nchw());
  return std::make_unique<CopyKernel>(request, std::move(regions));
}

}  // namespace tilesmith
