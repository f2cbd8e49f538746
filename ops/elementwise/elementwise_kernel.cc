#include "ops/elementwise/elementwise_kernel.h"

#include <algorithm>
#include <functional>

#include "layouts/base/check.h"
#include "ops/kernels/block_kernel.h"

namespace tilesmith {
namespace {

// One value per channel, zero in padding lanes, so that padding stays zero.
std::vector<float> PaddedTo(const BlockDims& dims, const std::vector<float>& values) {
  std::vector<float> padded = values;
  padded.resize(dims.blocks * dims.lanes, 0.0f);
  return padded;
}

class ActivationKernel : public BlockKernel {
 public:
  ActivationKernel(const BlockDims& dims, const Activation& activation, Isa isa)
      : BlockKernel(dims, activation.Apply(0) != 0),
        activation_(activation),
        loop_(TILESMITH_DISPATCH(isa, ActivateRun)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    loop_(At(args.inputs[0], piece), At(args.output, piece), piece.pixels * dims().lanes, activation_);
  }
  const Activation activation_;
  void (*const loop_)(const float*, float*, int64_t, Activation);
};

class ExpKernel : public BlockKernel {
 public:
  ExpKernel(const BlockDims& dims, Isa isa)
      : BlockKernel(dims, false), loop_(TILESMITH_DISPATCH(isa, ExpRun)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    loop_(At(args.inputs[0], piece), At(args.output, piece), piece.pixels);
  }
  void (*const loop_)(const float*, float*, int64_t);
};

class ScaleShiftKernel : public BlockKernel {
 public:
  ScaleShiftKernel(const BlockDims& dims, const std::vector<float>& scale, const std::vector<float>& shift,
                   const Activation& activation, Isa isa)
      : BlockKernel(dims, activation.Apply(0) != 0),
        scale_(PaddedTo(dims, scale)),
        shift_(PaddedTo(dims, shift)),
        activation_(activation),
        loop_(TILESMITH_DISPATCH(isa, ScaleShiftLanes)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const int64_t lanes = dims().lanes, channel = piece.block * lanes;
    loop_({At(args.inputs[0], piece), At(args.output, piece), &scale_[channel], &shift_[channel], lanes,
           piece.pixels},
          activation_);
  }
  const std::vector<float> scale_, shift_;
  const Activation activation_;
  void (*const loop_)(const LaneLoop&, Activation);
};

class PReluKernel : public BlockKernel {
 public:
  PReluKernel(const BlockDims& dims, const std::vector<float>& slopes, Isa isa)
      : BlockKernel(dims, false),
        slopes_(PaddedTo(dims, slopes)),
        loop_(TILESMITH_DISPATCH(isa, PReluLanes)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const int64_t lanes = dims().lanes;
    const float* slopes = &slopes_[piece.block * lanes];
    loop_({At(args.inputs[0], piece), At(args.output, piece), slopes, slopes, lanes, piece.pixels});
  }
  const std::vector<float> slopes_;
  void (*const loop_)(const LaneLoop&);
};

class BinaryKernel : public BlockKernel {
 public:
  BinaryKernel(const BlockDims& dims, BinaryKind op, Isa isa)
      : BlockKernel(dims, op == BinaryKind::kDiv), op_(op), loop_(TILESMITH_DISPATCH(isa, BinaryRun)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    loop_(op_, At(args.inputs[0], piece), At(args.inputs[1], piece), At(args.output, piece),
          piece.pixels * dims().lanes);
  }
  const BinaryKind op_;
  void (*const loop_)(BinaryKind, const float*, const float*, float*, int64_t);
};

class GateKernel : public BlockKernel {
 public:
  GateKernel(const BlockDims& dims, BinaryKind op, int gate, Isa isa)
      : BlockKernel(dims, op == BinaryKind::kDiv),
        op_(op),
        gate_(gate),
        loop_(TILESMITH_DISPATCH(isa, GateLanes)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const InputView& view = args.inputs[gate_];
    const float* gate = view.image<float>(piece.image) + piece.block * dims().lanes;
    loop_(
        op_, gate_ == 0,
        {At(args.inputs[1 - gate_], piece), At(args.output, piece), gate, gate, dims().lanes, piece.pixels});
  }
  const BinaryKind op_;
  const int gate_;  // which input
  void (*const loop_)(BinaryKind, bool, const LaneLoop&);
};

class SumKernel : public BlockKernel {
 public:
  SumKernel(const BlockDims& dims, Isa isa)
      : BlockKernel(dims, false), loop_(TILESMITH_DISPATCH(isa, SumRun)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    loop_(args.inputs.data(), static_cast<int64_t>(args.inputs.size()), piece.image, piece.offset,
          At(args.output, piece), piece.pixels);
  }
  void (*const loop_)(const InputView*, int64_t, int64_t, int64_t, float*, int64_t);
};

// Which input is a gate {N, C, 1, 1} to the other's {N, C, H, W}; -1 when none is.
int GateOf(std::span<const Shape> inputs) {
  for (const int gate : {1, 0}) {
    const Shape &shape = inputs[gate], &data = inputs[1 - gate];
    if (shape.size() == 4 && data.size() == 4 && shape == Shape{data[0], data[1], 1, 1}) return gate;
  }
  return -1;
}

}  // namespace

std::unique_ptr<Kernel> MakeActivationKernel(const KernelRequest& request, const Activation& activation) {
  const bool flat = activation.Apply(0) == 0;
  const BlockDims dims =
      flat ? FlatDimsOf(request.output, request.layout) : BlockDimsOf(request.output, request.layout);
  return std::make_unique<ActivationKernel>(dims, activation, request.cpu.isa);
}

std::unique_ptr<Kernel> MakeExpKernel(const KernelRequest& request) {
  return std::make_unique<ExpKernel>(FlatDimsOf(request.output, request.layout), request.cpu.isa);
}

std::unique_ptr<Kernel> MakeScaleShiftKernel(const KernelRequest& request, const std::vector<float>& scale,
                                             const std::vector<float>& shift, const Activation& activation) {
  const auto differs = [](const std::vector<float>& values) {
    return std::ranges::adjacent_find(values, std::not_equal_to()) != values.end();
  };
  BlockDims dims = BlockDimsOf(request.output, request.layout);
  if (!dims.has_padding() && !scale.empty() && !differs(scale) && !differs(shift))
    dims = FlatDimsOf(request.output, request.layout);
  return std::make_unique<ScaleShiftKernel>(dims, scale, shift, activation, request.cpu.isa);
}

std::unique_ptr<Kernel> MakePReluKernel(const KernelRequest& request, const std::vector<float>& slopes) {
  return std::make_unique<PReluKernel>(BlockDimsOf(request.output, request.layout), slopes, request.cpu.isa);
}

bool HasBinaryKernel(std::span<const Shape> inputs) { return inputs[0] == inputs[1] || GateOf(inputs) >= 0; }

std::unique_ptr<Kernel> MakeBinaryKernel(const KernelRequest& request, BinaryKind op) {
  TILESMITH_CHECK(HasBinaryKernel(request.inputs));
  const BlockDims dims = BlockDimsOf(request.output, request.layout);
  if (request.inputs[0] != request.inputs[1]) {
    return std::make_unique<GateKernel>(dims, op, GateOf(request.inputs), request.cpu.isa);
  }
  const bool flat = op != BinaryKind::kDiv;
  return std::make_unique<BinaryKernel>(flat ? FlatDimsOf(request.output, request.layout) : dims, op,
                                        request.cpu.isa);
}

std::unique_ptr<Kernel> MakeSumKernel(const KernelRequest& request) {
  return std::make_unique<SumKernel>(FlatDimsOf(request.output, request.layout), request.cpu.isa);
}

}  // namespace tilesmith
