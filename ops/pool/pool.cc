#include "ops/pool/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"
#include "ops/pool/pool_indices.h"
#include "ops/pool/quantized_max_pool.h"

namespace tilesmith {
namespace {

BuiltOp BuildPool(const NodeSpec& spec, PoolKind kind) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].shape.size() == 3) return BuildPoolOfOtherRank(spec);
  const bool image = spec.inputs[0].shape.size() == 4;
  const bool bytes = image && spec.output_names.size() < 2 && IsByte(spec.inputs[0].type);
  const bool fast = (image || spec.output_names.size() < 2) && spec.inputs[0].type == DataType::kF32;
  if (kind == PoolKind::kMax && (spec.output > 0 || !(fast || bytes))) return BuildIndexedMaxPool(spec);
  if (spec.inputs[0].shape.size() != 4) return BuildPoolOfOtherRank(spec);
  const Shape& input = ShapeOfRank(spec, 0, 4);
  if (!spec.Has("kernel_shape")) Refuse(spec, "the attribute kernel_shape is missing");
  const Window w = ImportWindow(spec, spec.Ints("kernel_shape", {}), input[2], input[3]);
  PoolWindow window{kind, w.kh, w.kw, w.sh, w.sw, w.dh, w.dw, w.top, w.left, w.bottom, w.right};
  window.ceil_mode = spec.Int("ceil_mode", 0) != 0;
  window.count_include_pad = kind == PoolKind::kAverage && spec.Int("count_include_pad", 0) != 0;
  if (kind == PoolKind::kMax && bytes) {
    return BuiltWithInputs(std::make_shared<QuantizedMaxPoolOp>(window), 1);
  }
  return BuiltWithInputs(std::make_shared<PoolOp>(window), 1);
}

BuiltOp BuildGlobalPool(const NodeSpec& spec, PoolKind kind) {
  NeedInputs(spec, 1, 1);
  if (spec.inputs[0].shape.size() != 4) {
    return BuildGlobalPoolOfOtherRank(spec, kind == PoolKind::kMax ? "ReduceMax" : "ReduceMean");
  }
  return BuiltWithInputs(std::make_shared<GlobalPoolOp>(kind), 1);
}

int64_t OutputSize(int64_t input, int64_t extent, int64_t stride, int64_t begin, int64_t end,
                   bool ceil_mode) {
  const int64_t room = input + begin + end - extent;
  if (room < 0) return 0;
  int64_t output = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (output - 1) * stride >= input + begin) --output;
  return output;
}

float PoolOne(const PoolWindow& w, const float* plane, const Dims4& in, int64_t y, int64_t x) {
  const int64_t y0 = y * w.sh - w.top, x0 = x * w.sw - w.left;
  const WindowTaps rows = TapsOf(y0, w.kh, w.dh, in.h, w.bottom);
  const WindowTaps columns = TapsOf(x0, w.kw, w.dw, in.w, w.right);
  double sum = 0;
  float largest = -std::numeric_limits<float>::infinity();
  int64_t inside = 0;
  for (int64_t i = rows.first; i < rows.last; ++i) {
    for (int64_t j = columns.first; j < columns.last; ++j) {
      const float value = plane[(y0 + i * w.dh) * in.w + x0 + j * w.dw];
      sum += value;
      largest = std::max(largest, value);  // which passes over a NaN
      ++inside;
    }
  }
  if (w.kind == PoolKind::kMax) return largest;
  const int64_t count = w.count_include_pad ? rows.padded * columns.padded : inside;
  return inside == 0 ? 0.0f : static_cast<float>(sum / count);
}

}  // namespace

WindowTaps TapsOf(int64_t start, int64_t kernel, int64_t dilation, int64_t size, int64_t end_pad) {
  const auto taps_before = [=](int64_t end) {
    return end <= start ? 0 : std::min(kernel, CeilDiv(end - start, dilation));
  };
  const int64_t first = start < 0 ? CeilDiv(-start, dilation) : 0, last = taps_before(size);
  const int64_t padded = taps_before(size + end_pad);
  return first < last ? WindowTaps{first, last, padded} : WindowTaps{0, 0, padded};
}

std::string PoolOp::Signature() const {
  const PoolWindow& w = window_;
  return fmt::format("{} kh{}kw{}sh{}sw{}dh{}dw{} pads {},{},{},{}{}{}", Type(), w.kh, w.kw, w.sh, w.sw, w.dh,
                     w.dw, w.top, w.left, w.bottom, w.right, w.ceil_mode ? " ceil" : "",
                     w.count_include_pad ? " include_pad" : "");
}

Shape PoolOp::InferShape(std::span<const Shape> inputs) const {
  const PoolWindow& w = window_;
  const Shape& in = inputs[0];
  if (in.size() != 4) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} needs a 2-D image, got {}", Type(), ShapeToString(in)));
  }
  const int64_t oh = OutputSize(in[2], (w.kh - 1) * w.dh + 1, w.sh, w.top, w.bottom, w.ceil_mode);
  const int64_t ow = OutputSize(in[3], (w.kw - 1) * w.dw + 1, w.sw, w.left, w.right, w.ceil_mode);
  if (oh < 1 || ow < 1) {
    throw Error(ErrorCode::kBadModel, fmt::format("{}: the window does not fit the padded input {}",
                                                  Signature(), ShapeToString(in)));
  }
  return {in[0], in[1], oh, ow};
}

Tensor PoolOp::Reference(std::span<const Tensor* const> inputs) const {
  const Dims4 in = ToDims4(inputs[0]->shape());
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes));
  const Dims4 out = ToDims4(output.shape());
  for (int64_t plane = 0; plane < in.n * in.c; ++plane) {
    const float* from = inputs[0]->floats() + plane * in.h * in.w;
    float* to = output.floats() + plane * out.h * out.w;
    for (int64_t y = 0; y < out.h; ++y) {
      for (int64_t x = 0; x < out.w; ++x) to[y * out.w + x] = PoolOne(window_, from, in, y, x);
    }
  }
  return output;
}

double PoolOp::Flops(std::span<const Shape> inputs) const {
  return static_cast<double>(ElementCount(InferShape(inputs))) * window_.kh * window_.kw;
}

std::string GlobalPoolOp::Signature() const { return std::string(Type()) + (keep_dims_ ? "" : " flattened"); }

Shape GlobalPoolOp::InferShape(std::span<const Shape> inputs) const {
  const Shape& in = inputs[0];
  if (in.size() != 4) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} needs a 2-D image, got {}", Type(), ShapeToString(in)));
  }
  return keep_dims_ ? Shape{in[0], in[1], 1, 1} : Shape{in[0], in[1]};
}

Tensor GlobalPoolOp::Reference(std::span<const Tensor* const> inputs) const {
  const Dims4 in = ToDims4(inputs[0]->shape());
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes));
  const int64_t pixels = in.h * in.w;
  for (int64_t plane = 0; plane < in.n * in.c; ++plane) {
    const float* from = inputs[0]->floats() + plane * pixels;
    double sum = 0;
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < pixels; ++i) {
      sum += from[i];
      largest = std::max(largest, from[i]);  // likewise
    }
    output.floats()[plane] = kind_ == PoolKind::kMax ? largest : static_cast<float>(sum / pixels);
  }
  return output;
}

double GlobalPoolOp::Flops(std::span<const Shape> inputs) const { return ElementCount(inputs[0]); }

std::unique_ptr<Kernel> PoolOp::MakeKernel(const KernelRequest& request) const {
  return MakePoolKernel(request, window_);
}

std::unique_ptr<Kernel> GlobalPoolOp::MakeKernel(const KernelRequest& request) const {
  return MakeGlobalPoolKernel(request, kind_);
}

std::vector<OpImporter> PoolImporters() {
  return {
      {"MaxPool", [](const NodeSpec& spec) { return BuildPool(spec, PoolKind::kMax); }, true},
      {"AveragePool", [](const NodeSpec& spec) { return BuildPool(spec, PoolKind::kAverage); }},
      {"GlobalMaxPool", [](const NodeSpec& spec) { return BuildGlobalPool(spec, PoolKind::kMax); }},
      {"GlobalAveragePool", [](const NodeSpec& spec) { return BuildGlobalPool(spec, PoolKind::kAverage); }},
  };
}

}  // namespace tilesmith
