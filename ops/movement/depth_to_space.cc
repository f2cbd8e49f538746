#include "ops/movement/depth_to_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "layouts/base/error.h"
#include "ops/base/import_util.h"
#include "ops/base/saved_op.h"
#include "ops/kernels/block_kernel.h"
#include "ops/kernels/lane_copy.h"

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

std::vector<OpImporter> DepthToSpaceImporters() { return {{"DepthToSpace", BuildDepthToSpace}}; }

namespace {

// A task is one row of one output block; it takes the row's columns phase by phase.
class DepthToSpaceKernel : public Kernel {
 public:
  DepthToSpaceKernel(const KernelRequest& request, const DepthToSpaceOp& op)
      : params_(op.params()),
        in_(BlockDimsOf(request.inputs[0], request.layout)),
        out_(BlockDimsOf(request.output, request.layout)) {
    for (int64_t i = 0; i < params_.bh && out_.channels > 0; ++i) {
      for (int64_t j = 0; j < params_.bw; ++j) {
        runs_.push_back(LaneRuns(out_.channels, {in_.lanes, out_.lanes},
                                 [&](int64_t o) { return op.Channel(out_.channels, o, i, j); }));
      }
    }
  }

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override {
    return {.images = out_.images, .channels = out_.blocks, .rows = out_.height, .height = out_.height};
  }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t y = task % out_.height, plane = task / out_.height;
      const int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const float* in =
          args.inputs[0].image<float>(image) + (y + params_.top) / params_.bh * in_.width * in_.lanes;
      float* out = args.output.image<float>(image) + (block * out_.height + y) * out_.width * out_.lanes;
      const int64_t row_phase = (y + params_.top) % params_.bh * params_.bw;
      for (int64_t x = 0; x < std::min(params_.bw, out_.width); ++x) {
        CopyPhase(runs_[row_phase + (x + params_.left) % params_.bw][block], in, out, x);
      }
      const int64_t used = out_.UsedLanes(block);
      if (used < out_.lanes) ZeroLanes(out, used, out_.lanes, out_.width);
    }
  }

 private:
  // Columns x, x + bw, x + 2 * bw, ... of an output row.
  void CopyPhase(const std::vector<LaneRun>& runs, const float* in, float* out, int64_t x) const {
    const int64_t pixels = (out_.width - x + params_.bw - 1) / params_.bw;
    in += (x + params_.left) / params_.bw * in_.lanes;
    for (const LaneRun& run : runs) {
      const float* const from = in + run.source_block * in_.block_floats() + run.source_lane;
      float* const to = out + x * out_.lanes + run.lane;
      CopyLanes(ElementLanes({reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(to),
                              in_.lanes, params_.bw * out_.lanes, run.count, pixels},
                             sizeof(float)));
    }
  }

  const DepthToSpaceParams params_;
  const BlockDims in_, out_;
  std::vector<std::vector<std::vector<LaneRun>>> runs_;  // by phase i * bw + j, then by output block
};

}  // namespace

std::unique_ptr<Kernel> DepthToSpaceOp::MakeKernel(const KernelRequest& request) const {
  return std::make_unique<DepthToSpaceKernel>(request, *this);
}

std::vector<SavedOp> DepthToSpaceOps() { return {Saved<DepthToSpaceOp>("DepthToSpace")}; }

}  // namespace tilesmith
