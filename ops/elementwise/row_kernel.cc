#include "ops/elementwise/row_kernel.h"

#include <algorithm>
#include <utility>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "ops/kernels/loop_nest.h"

namespace tilesmith {
namespace {

constexpr int64_t kPieceElements = 8192;

class RowKernel : public Kernel {
 public:
  RowKernel(const KernelRequest& request, RowFunction row)
      : request_(request), row_(std::move(row)), elements_(ElementCount(request.output)) {
    TILESMITH_CHECK(request.inputs.size() <= kMaxRowInputs, "{} inputs", request.inputs.size());
  }

  int64_t Tasks(int) const override { return CeilDiv(elements_, kPieceElements); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    using Loops = OperandLoops<kMaxRowInputs + 1>;  // the output behind the inputs
    const MemoryDims out = MemoryDimsOf(request_.output, request_.layout, args.output.batch_stride);
    std::array<std::array<int64_t, kMaxRank + 1>, kMaxRowInputs> strides{};
    std::array<int64_t, kMaxRowInputs> bytes{};
    const size_t inputs = request_.inputs.size();
    for (size_t k = 0; k < inputs; ++k) {
      const Layout layout = Layout::Nchw(request_.InputType(k));
      strides[k] = BroadcastStrides(request_.inputs[k], request_.output, layout, args.inputs[k].batch_stride);
      bytes[k] = ElementBytes(layout.type());
    }
    Loops loops;
    for (int d = 0; d < out.rank; ++d) {
      Loops::Strides step{};
      for (size_t k = 0; k < inputs; ++k) step[k] = strides[k][d];
      step.back() = out.stride[d];
      loops.Add(out.size[d], step);
    }
    const int64_t out_bytes = ElementBytes(request_.layout.type());
    loops.ForEach(range.begin * kPieceElements, std::min(range.end * kPieceElements, elements_),
                  [&](const Loops::Part& part) {
                    ElementRow row{.out_step = part.column[kMaxRowInputs], .count = part.columns};
                    for (int64_t r = 0; r < part.rows; ++r) {
                      const auto first = [&](size_t k) { return part.offset[k] + r * part.row[k]; };
                      for (size_t k = 0; k < inputs; ++k) {
                        row.in[k] = args.inputs[k].image<std::byte>(0) + first(k) * bytes[k];
                        row.step[k] = part.column[k];
                      }
                      row.out = args.output.image<std::byte>(0) + first(kMaxRowInputs) * out_bytes;
                      row_(row);
                    }
                  });
  }

 private:
  const KernelRequest request_;
  const RowFunction row_;
  const int64_t elements_;
};

}  // namespace

std::unique_ptr<Kernel> MakeRowKernel(const KernelRequest& request, RowFunction row) {
  return std::make_unique<RowKernel>(request, std::move(row));
}

}  // namespace tilesmith
