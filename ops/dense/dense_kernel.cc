#include "ops/dense/dense_kernel.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/dense/dense_loops.h"

namespace tilesmith {
namespace {

class GemmKernel : public Kernel {
 public:
  GemmKernel(const KernelRequest& request, const Tensor& weights, const Tensor* bias,
             const Activation& activation)
      : k_(weights.shape()[0]),
        n_(weights.shape()[1]),
        rows_(n_ == 0 ? 0 : ElementCount(request.output) / n_),
        rows_per_image_(std::max<int64_t>(rows_ / std::max<int64_t>(request.output[0], 1), 1)),
        panels_((n_ + kPanelColumns - 1) / kPanelColumns),
        packed_(panels_ * k_ * kPanelColumns * sizeof(float)),
        bias_(panels_ * kPanelColumns, 0.0f),
        activation_(activation),
        loop_(TILESMITH_DISPATCH(request.cpu.isa, GemmPanel)) {
    if (bias) std::copy_n(bias->floats(), n_, bias_.begin());
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t first = panel * kPanelColumns, columns = std::min(kPanelColumns, n_ - first);
      for (int64_t k = 0; k < k_; ++k) {
        std::memcpy(packed_.floats() + (panel * k_ + k) * kPanelColumns, weights.floats() + k * n_ + first,
                    columns * sizeof(float));
      }
    }
  }

  int64_t Tasks(int) const override { return panels_ * RowGroups(); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const float* rows[kPanelRows];
    float* outputs[kPanelRows];
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t panel = task / RowGroups(), first_row = task % RowGroups() * kPanelRows;
      GemmPanelArgs panel_args;
      panel_args.rows = rows;
      panel_args.outputs = outputs;
      panel_args.panel = packed_.floats() + panel * k_ * kPanelColumns;
      panel_args.bias = bias_.data() + panel * kPanelColumns;
      panel_args.row_count = std::min(kPanelRows, rows_ - first_row);
      panel_args.columns = std::min(kPanelColumns, n_ - panel * kPanelColumns);
      panel_args.k = k_;
      for (int64_t r = 0; r < panel_args.row_count; ++r) {
        const int64_t image = (first_row + r) / rows_per_image_, row = (first_row + r) % rows_per_image_;
        rows[r] = args.inputs[0].image<float>(image) + row * k_;
        outputs[r] = args.output.image<float>(image) + row * n_ + panel * kPanelColumns;
      }
      loop_(panel_args, activation_);
    }
  }

 private:
  int64_t RowGroups() const { return (rows_ + kPanelRows - 1) / kPanelRows; }

  const int64_t k_, n_, rows_, rows_per_image_, panels_;
  const AlignedBuffer packed_;
  std::vector<float> bias_;
  const Activation activation_;
  void (*const loop_)(const GemmPanelArgs&, Activation);
};

}  // namespace

std::unique_ptr<Kernel> MakeGemmKernel(const KernelRequest& request, const Tensor& weights,
                                       const Tensor* bias, const Activation& activation) {
  return std::make_unique<GemmKernel>(request, weights, bias, activation);
}

}  // namespace tilesmith
