// Overlapping blocks put together into an image: what lies on one pixel is added up. Plain, through the
// reference.
#include <fmt/format.h>

#include <algorithm>

#include "ops/base/elements.h"
#include "ops/base/import_util.h"
#include "ops/base/op_registry.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

// out[n, c, p] = sum of in[n, c * block + tap, window] over the windows whose tap lies on pixel p. Input:
// {N, C * elements of a block, windows}; output {N, C, sizes...}.
class Col2ImOp : public Op {
 public:
  Col2ImOp(Shape sizes, std::vector<AxisWindow> windows)
      : sizes_(std::move(sizes)), windows_(std::move(windows)) {}
  std::string_view Type() const override { return "Col2Im"; }
  std::string Signature() const override {
    std::string text = "Col2Im " + ShapeToString(sizes_);
    for (const AxisWindow& w : windows_) {
      text += fmt::format(" k{}s{}d{}p{},{}", w.kernel, w.stride, w.dilation, w.begin, w.end);
    }
    return text;
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    const Shape& in = inputs[0];
    Checked block = 1, count = 1;
    for (size_t axis = 0; axis < windows_.size(); ++axis) {
      block *= windows_[axis].kernel;
      count *= windows_[axis].Count(sizes_[axis]);
    }
    if (in.size() != 3 || in[1] % block.value() != 0 || in[2] != count.value()) {
      throw Error(ErrorCode::kBadModel, fmt::format("{} of {}", Signature(), ShapeToString(in)));
    }
    Shape out = {in[0], in[1] / block.value()};
    out.insert(out.end(), sizes_.begin(), sizes_.end());
    return out;
  }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const Tensor& in = *inputs[0];
    const Shape shapes[] = {in.shape()};
    Tensor out(InferShape(shapes));
    const size_t axes = windows_.size();
    Shape kernel, counts;
    for (size_t axis = 0; axis < axes; ++axis) {
      kernel.push_back(windows_[axis].kernel);
      counts.push_back(windows_[axis].Count(sizes_[axis]));
    }
    const std::vector<int64_t> kernel_strides = DenseStrides(kernel), strides = DenseStrides(counts);
    const int64_t block = ElementCount(kernel), count = ElementCount(counts), plane = ElementCount(sizes_);
    const int64_t planes = out.shape()[0] * out.shape()[1];
    std::vector<double> sums(plane);
    for (int64_t p = 0; p < planes; ++p) {
      std::ranges::fill(sums, 0.0);
      for (int64_t tap = 0; tap < block; ++tap) {
        for (int64_t window = 0; window < count; ++window) {
          int64_t to = 0;
          bool inside = true;
          for (size_t a = 0; a < axes; ++a) {
            const int64_t at = window / strides[a] % counts[a] * windows_[a].stride - windows_[a].begin +
                               tap / kernel_strides[a] % kernel[a] * windows_[a].dilation;
            inside = inside && at >= 0 && at < sizes_[a];
            to = to * sizes_[a] + at;
          }
          if (inside) sums[to] += in.floats()[(p * block + tap) * count + window];
        }
      }
      for (int64_t i = 0; i < plane; ++i) out.floats()[p * plane + i] = static_cast<float>(sums[i]);
    }
    return out;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  auto Parameters() const { return std::tie(sizes_, windows_); }

 private:
  Shape sizes_;
  std::vector<AxisWindow> windows_;
};

BuiltOp BuildCol2Im(const NodeSpec& spec) {
  NeedInputs(spec, 3, 3);
  const Shape sizes = ConstantInts(spec, 1);
  const std::vector<int64_t> block = ConstantInts(spec, 2);
  if (sizes.empty() || std::ranges::min(sizes) < 1) Refuse(spec, "its image's sizes must be positive");
  Shape image = {1, 1};
  image.insert(image.end(), sizes.begin(), sizes.end());
  return BuiltWithInputs(std::make_shared<Col2ImOp>(sizes, ImportAxisWindows(spec, block, image)), 1);
}

}  // namespace

// Col2Im.
std::vector<OpImporter> Col2ImImporters() { return {{"Col2Im", BuildCol2Im}}; }

std::vector<SavedOp> Col2ImOps() { return {Saved<Col2ImOp>("Col2Im")}; }

}  // namespace tilesmith
