// Deformable convolution: Dai et al., "Deformable Convolutional Networks" (2017), and version 2 with a mask.
// Plain, through the reference.
//
//   out[n, o, y, x] = bias[o] + sum over c, i, j of weights[o, c, i, j] * mask[n, g, i, j, y, x]
//                     * in[n, c] at (y*sh - top + i*dh + offset[n, g, i, j, 0, y, x],
//                                    x*sw - left + j*dw + offset[n, g, i, j, 1, y, x])
//
// between pixels bilinear, outside 0; g is the group of offsets that channel c belongs to.
#include <fmt/format.h>

#include <cmath>
#include <ranges>

#include "ops/base/import_util.h"
#include "ops/base/op.h"
#include "ops/base/saved_op.h"

namespace tilesmith {
namespace {

struct DeformConvParams {
  int64_t groups = 1, offset_groups = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool bias = false, mask = false;
};

double Bilinear(const float* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1) || !(y < static_cast<double>(height)) || !(x > -1) || !(x < static_cast<double>(width)))
    return 0;
  const int64_t top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  const double down = y - static_cast<double>(top), over = x - static_cast<double>(left);
  const auto at = [=](int64_t i, int64_t j) {
    return i < 0 || i >= height || j < 0 || j >= width ? 0.0 : static_cast<double>(plane[i * width + j]);
  };
  return (1 - down) * ((1 - over) * at(top, left) + over * at(top, left + 1)) +
         down * ((1 - over) * at(top + 1, left) + over * at(top + 1, left + 1));
}

// Inputs: data, weights {O, C / groups, kh, kw}, offsets, then bias and mask where there are any.
class DeformConvOp : public Op {
 public:
  explicit DeformConvOp(const DeformConvParams& params) : params_(params) {}
  std::string_view Type() const override { return "DeformConv"; }
  std::string Signature() const override {
    const DeformConvParams& p = params_;
    return fmt::format("DeformConv g{}of{} kh{}kw{}sh{}sw{}dh{}dw{} pads {},{},{},{}{}{}", p.groups,
                       p.offset_groups, p.kh, p.kw, p.sh, p.sw, p.dh, p.dw, p.top, p.left, p.bottom, p.right,
                       p.bias ? " bias" : "", p.mask ? " mask" : "");
  }
  Shape InferShape(std::span<const Shape> inputs) const override {
    const DeformConvParams& p = params_;
    const Shape &in = inputs[0], &weights = inputs[1], &offsets = inputs[2];
    const auto size = [](int64_t room, int64_t stride) { return room < 0 ? 0 : room / stride + 1; };
    bool fits =
        in.size() == 4 && weights.size() == 4 && offsets.size() == 4 && inputs.size() == 3u + p.bias + p.mask;
    Shape out;
    if (fits) {
      out = {in[0], weights[0], size(in[2] + p.top + p.bottom - (p.kh - 1) * p.dh - 1, p.sh),
             size(in[3] + p.left + p.right - (p.kw - 1) * p.dw - 1, p.sw)};
      const int64_t taps = (Checked(p.kh) * p.kw * p.offset_groups).value();
      fits = out[2] > 0 && out[3] > 0 && in[1] % p.groups == 0 && in[1] / p.groups == weights[1] &&
             weights[0] % p.groups == 0 && in[1] % p.offset_groups == 0 &&
             offsets == Shape{in[0], (Checked(2) * taps).value(), out[2], out[3]} &&
             (!p.bias || inputs[3] == Shape{weights[0]}) &&
             (!p.mask || inputs.back() == Shape{in[0], taps, out[2], out[3]});
    }
    if (!fits) {
      throw Error(ErrorCode::kBadModel,
                  fmt::format("{} of {} with weights {} and offsets {}", Signature(), ShapeToString(in),
                              ShapeToString(weights), ShapeToString(offsets)));
    }
    return out;
  }
  Tensor Reference(std::span<const Tensor* const> inputs) const override {
    const DeformConvParams& p = params_;
    std::vector<Shape> shapes;
    for (const Tensor* input : inputs) shapes.push_back(input->shape());
    Tensor output(InferShape(shapes));
    const Dims4 in = ToDims4(shapes[0]), out = ToDims4(output.shape());
    const int64_t taps = p.kh * p.kw, pixels = out.h * out.w, depth = shapes[1][1];
    const float *weights = inputs[1]->floats(), *offsets = inputs[2]->floats();
    const float* mask = p.mask ? inputs.back()->floats() : nullptr;
    std::vector<double> column(in.c * taps);  // of one output pixel
    for (int64_t n = 0; n < in.n; ++n) {
      for (int64_t pixel = 0; pixel < pixels; ++pixel) {
        const int64_t y = pixel / out.w * p.sh - p.top, x = pixel % out.w * p.sw - p.left;
        for (int64_t c = 0; c < in.c; ++c) {
          const int64_t group = c / (in.c / p.offset_groups);
          const float* plane = inputs[0]->floats() + (n * in.c + c) * in.h * in.w;
          for (int64_t tap = 0; tap < taps; ++tap) {
            const int64_t at = (n * p.offset_groups + group) * taps + tap;
            const double row = static_cast<double>(y + tap / p.kw * p.dh) + offsets[2 * at * pixels + pixel];
            const double col =
                static_cast<double>(x + tap % p.kw * p.dw) + offsets[(2 * at + 1) * pixels + pixel];
            const double scale = mask ? mask[at * pixels + pixel] : 1;
            column[c * taps + tap] = scale * Bilinear(plane, in.h, in.w, row, col);
          }
        }
        for (int64_t o = 0; o < out.c; ++o) {
          const double* from = column.data() + o / (out.c / p.groups) * depth * taps;
          double sum = p.bias ? inputs[3]->floats()[o] : 0;
          for (int64_t k = 0; k < depth * taps; ++k) sum += from[k] * weights[o * depth * taps + k];
          output.floats()[(n * out.c + o) * pixels + pixel] = static_cast<float>(sum);
        }
      }
    }
    return output;
  }
  Tensor RoundingBound(const OpRun& run) const override { return RoundedTwice(run); }
  double Flops(std::span<const Shape> inputs) const override {
    double taps = 1;
    for (const int64_t size : inputs[1] | std::views::drop(1)) taps *= static_cast<double>(size);
    return 2 * static_cast<double>(ElementCount(InferShape(inputs))) * taps;
  }
  auto Parameters() const { return std::tie(params_); }

 private:
  DeformConvParams params_;
};

BuiltOp BuildDeformConv(const NodeSpec& spec) {
  NeedInputs(spec, 3, 5);
  const Shape &input = ShapeOfRank(spec, 0, 4), &weights = ShapeOfRank(spec, 1, 4);
  const Window w =
      ImportWindow(spec, spec.Ints("kernel_shape", {weights[2], weights[3]}), input[2], input[3]);
  DeformConvParams p{spec.Int("group", 1),
                     spec.Int("offset_group", 1),
                     w.kh,
                     w.kw,
                     w.sh,
                     w.sw,
                     w.dh,
                     w.dw,
                     w.top,
                     w.left,
                     w.bottom,
                     w.right,
                     spec.HasInput(3),
                     spec.HasInput(4)};
  if (p.kh != weights[2] || p.kw != weights[3] || p.groups < 1 || p.offset_groups < 1) {
    Refuse(spec, fmt::format("weights {}, {} groups and {} of offsets", ShapeToString(weights), p.groups,
                             p.offset_groups));
  }
  BuiltOp built{std::make_shared<DeformConvOp>(p), {0, 1, 2}};
  if (p.bias) built.data_inputs.push_back(3);
  if (p.mask) built.data_inputs.push_back(4);
  return built;
}

}  // namespace

// DeformConv.
std::vector<OpImporter> DeformConvImporters() { return {{"DeformConv", BuildDeformConv}}; }

std::vector<SavedOp> DeformConvOps() { return {Saved<DeformConvOp>("DeformConv")}; }

}  // namespace tilesmith
