#include "ops/movement/col2im.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/base/elements.h"

namespace tilesmith {
namespace {

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

std::string Col2ImOp::Signature() const {
  std::string text = "Col2Im " + ShapeToString(sizes_);
  for (const AxisWindow& w : windows_) {
    text += fmt::format(" k{}s{}d{}p{},{}", w.kernel, w.stride, w.dilation, w.begin, w.end);
  }
  return text;
}

Shape Col2ImOp::InferShape(std::span<const Shape> inputs) const {
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

Tensor Col2ImOp::Reference(std::span<const Tensor* const> inputs) const {
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

std::vector<OpImporter> Col2ImImporters() { return {{"Col2Im", BuildCol2Im}}; }

}  // namespace tilesmith
