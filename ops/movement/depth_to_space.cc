#include "ops/movement/depth_to_space.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"
#include "ops/movement/copying.h"

namespace tilesmith {
namespace {

BuiltOp BuildDepthToSpace(const NodeSpec& spec) {
  NeedInputs(spec, 1, 1);
  ShapeOfRank(spec, 0, 4);
  if (spec.inputs[0].type != DataType::kF32) Refuse(spec, "only float inputs are supported");
  DepthToSpaceParams params;
  params.bh = params.bw = spec.Int("blocksize", 0);
  if (params.bh < 1 || params.bh > kMaxWindow) {
    Refuse(spec, fmt::format("blocksize is {}, allowed are 1 to {}", params.bh, kMaxWindow));
  }
  const std::string mode = spec.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    Refuse(spec, fmt::format("mode \"{}\" is unknown (known: DCR, CRD)", mode));
  }
  params.order = mode == "DCR" ? DepthOrder::kDcr : DepthOrder::kCrd;
  return BuiltWithInputs(std::make_shared<DepthToSpaceOp>(params), 1);
}

}  // namespace

int64_t DepthToSpaceOp::Channel(int64_t oc, int64_t o, int64_t i, int64_t j) const {
  const int64_t phase = i * params_.bw + j;
  return params_.order == DepthOrder::kDcr ? phase * oc + o : o * params_.bh * params_.bw + phase;
}

std::string DepthToSpaceOp::Signature() const {
  const DepthToSpaceParams& p = params_;
  const bool whole = p.top == 0 && p.left == 0 && p.bottom == 0 && p.right == 0;
  return fmt::format("DepthToSpace {}x{} {}{}", p.bh, p.bw, p.order == DepthOrder::kDcr ? "DCR" : "CRD",
                     whole ? "" : fmt::format(" crop {},{},{},{}", p.top, p.left, p.bottom, p.right));
}

Shape DepthToSpaceOp::InferShape(std::span<const Shape> inputs) const {
  const DepthToSpaceParams& p = params_;
  const Shape& in = inputs[0];
  if (in.size() != 4 || in[1] % (p.bh * p.bw) != 0) {
    throw Error(ErrorCode::kBadModel, fmt::format("{} of {}: {} must divide the channels of a 2-D image",
                                                  Signature(), ShapeToString(in), p.bh * p.bw));
  }
  const int64_t oh = (Checked(in[2]) * p.bh - p.top - p.bottom).value();
  const int64_t ow = (Checked(in[3]) * p.bw - p.left - p.right).value();
  if (oh < (in[2] > 0) || ow < (in[3] > 0)) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} of {}: nothing is left", Signature(), ShapeToString(in)));
  }
  return {in[0], in[1] / (p.bh * p.bw), oh, ow};
}

Tensor DepthToSpaceOp::Reference(std::span<const Tensor* const> inputs) const {
  const Dims4 in = ToDims4(inputs[0]->shape());
  const Shape shapes[] = {inputs[0]->shape()};
  Tensor output(InferShape(shapes));
  const Dims4 out = ToDims4(output.shape());
  float* to = output.floats();
  for (int64_t n = 0; n < out.n; ++n) {
    for (int64_t o = 0; o < out.c; ++o) {
      for (int64_t y = params_.top; y < params_.top + out.h; ++y) {
        for (int64_t x = params_.left; x < params_.left + out.w; ++x) {
          const int64_t c = Channel(out.c, o, y % params_.bh, x % params_.bw);
          *to++ = inputs[0]->floats()[((n * in.c + c) * in.h + y / params_.bh) * in.w + x / params_.bw];
        }
      }
    }
  }
  return output;
}

std::unique_ptr<Kernel> DepthToSpaceOp::MakeKernel(const KernelRequest& request) const {
  return MakeDepthToSpaceKernel(request, *this);
}

std::vector<OpImporter> DepthToSpaceImporters() { return {{"DepthToSpace", BuildDepthToSpace}}; }

}  // namespace tilesmith
