// Enlarging and shrinking by the nearest element or by interpolating between two, one axis after the other:
//
//   out[i] = (1 - w) * in[low] + w * in[high]            low, high and w of position i as ResizeTaps gives
//   them
//
// or, for cubic interpolation, antialiasing and crops, by a weighted sum over more of them (ResizeSums). Any
// layout where only H and W of a rank-4 tensor change and two elements are enough; otherwise plain and slow.
#pragma once

#include "ops/base/op.h"
#include "ops/resize/resize_loops.h"

namespace tilesmith {

enum class ResizeMode { kNearest, kLinear, kCubic };

// The input position p that output position i stands for, with scale s and n input, m output elements. Where
// s is 1, p = i. All in float, as ONNX Runtime computes it.
enum class ResizeCoordinates {
  kAsymmetric,          // i / s
  kHalfPixel,           // (i + 0.5) / s - 0.5
  kPytorchHalfPixel,    // the same; 0 where m is 1
  kAlignCorners,        // i * (n - 1) / (m - 1); 0 where m is 1
  kTfHalfPixelForNn,    // (i + 0.5) / s
  kHalfPixelSymmetric,  // (i + 0.5) / s - 0.5 + (n - m / s) / 2, so that the centers meet
  kCropAndResize,       // from begin * (n - 1) to end * (n - 1) in m - 1 steps; their middle where m is 1
};

// From p to the nearest element, which is then clamped to [0, n).
enum class ResizeRounding { kPreferFloor, kPreferCeil, kFloor, kCeil };  // the first two differ at .5

struct ResizeParams {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kAsymmetric;
  ResizeRounding rounding = ResizeRounding::kFloor;  // of kNearest
  Shape input, output;
  std::vector<float> scales;  // one per axis
  float cubic = -0.75f;       // a of Keys, "Cubic convolution interpolation" (1981), equation 5
  bool antialias = false;  // shrinking, linear and cubic reach over as much of the input as an element covers
  bool exclude_outside = false;   // of kCubic: what lies outside has no weight, where else it is the edge's
  std::vector<float> begin, end;  // of kCropAndResize, one per axis
  float extrapolation = 0;        // what it gives for positions outside
};

class ResizeOp : public Op {
 public:
  explicit ResizeOp(ResizeParams params) : params_(std::move(params)) {}
  const ResizeParams& params() const { return params_; }

  std::string_view Type() const override { return "Resize"; }
  std::string Signature() const override;
  Shape InferShape(std::span<const Shape> inputs) const override;
  Tensor Reference(std::span<const Tensor* const> inputs) const override;
  Tensor RoundingBound(const OpRun& run) const override;
  double Flops(std::span<const Shape> inputs) const override;
  bool RunsIn(const Layout& layout, std::span<const Shape>) const override {
    return layout == Layout::Nchw() || ChangesOnlyImages();
  }
  bool AnyTypeInAnyLayout() const override { return true; }
  bool KernelTakes(std::span<const DataType> inputs) const override {
    return ChangesOnlyImages() ? AreFloatsOrBf16(inputs) : Op::KernelTakes(inputs);
  }
  std::unique_ptr<Kernel> MakeKernel(const KernelRequest& request) const override;
  bool HasFastKernel() const override { return ChangesOnlyImages(); }
  std::optional<RowWindows> RowsReadOf(size_t slot, std::span<const Shape> inputs,
                                       const Shape& output) const override;
  auto Parameters() const { return std::tie(params_); }

 private:
  bool ChangesOnlyImages() const;
  ResizeParams params_;
};

// One for each output position along `axis`. For kNearest all weights are 0; for kLinear p is clamped to
// [0, n - 1], low = floor(p) and w = p - low.
std::vector<ResizeTap> ResizeTaps(const ResizeParams& params, size_t axis);

}  // namespace tilesmith
