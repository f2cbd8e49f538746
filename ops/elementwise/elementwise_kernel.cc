#include "ops/elementwise/elementwise_kernel.h"

#include <algorithm>
#include <array>
#include <functional>

#include "layouts/base/check.h"
#include "ops/elementwise/functions.h"
#include "ops/kernels/block_kernel.h"
#include "ops/kernels/loop_nest.h"

namespace tilesmith {
namespace {

// One value per channel, zero in padding lanes, so that padding stays zero.
std::vector<float> PaddedTo(const BlockDims& dims, const std::vector<float>& values) {
  std::vector<float> padded = values;
  padded.resize(dims.blocks * dims.lanes, 0.0f);
  return padded;
}

// For a function of single numbers: in blocks only where their padding matters or they are worth a task each.
BlockDims DimsFor(const KernelRequest& request, bool keeps_zero) {
  constexpr int64_t kWorthATask = 64;
  const BlockDims dims = BlockDimsOf(request.output, request.layout);
  const bool tiny = !dims.has_padding() && dims.block_floats() < kWorthATask;
  return keeps_zero || tiny ? FlatDimsOf(request.output, request.layout) : dims;
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

class FunctionKernel : public BlockKernel {
 public:
  FunctionKernel(const BlockDims& dims, const Function& function, Isa isa)
      : BlockKernel(dims, Apply(function, 0) != 0),
        function_(function),
        loop_(HasVectorFunction(function.kind) ? TILESMITH_DISPATCH(isa, FunctionRun) : nullptr) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const float* in = At(args.inputs[0], piece);
    float* out = At(args.output, piece);
    const int64_t count = piece.pixels * dims().lanes;
    if (loop_ != nullptr) return loop_(in, out, count, function_);
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(Apply(function_, in[i]));
  }
  const Function function_;
  void (*const loop_)(const float*, float*, int64_t, Function);
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

// Two inputs, or more of an op that is commutative and associative. Tasks are pieces of the output's blocks,
// padding included; those side by side are computed as one.
class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const KernelRequest& request, BinaryKind op)
      : request_(request),
        op_(op),
        dims_(BlockDimsOf(request.output, request.layout)),
        zero_padding_(dims_.has_padding()),
        piece_pixels_(PiecePixels(dims_)),
        loop_(TILESMITH_DISPATCH(request.cpu.isa, BinaryRows)) {}

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return GridOfPieces(dims_, piece_pixels_); }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t begin = FirstElement(range.begin), end = FirstElement(range.end);
    const MemoryDims out = MemoryDimsOf(request_.output, request_.layout, args.output.batch_stride);
    const size_t count = request_.inputs.size();
    // An input that is overwritten comes first.
    size_t first = 0;
    while (count > 2 && first + 1 < count && args.inputs[first].data != args.output.data) ++first;
    if (args.inputs[first].data != args.output.data) first = 0;
    float* const result = args.output.image<float>(0);
    const float* a = args.inputs[first].image<float>(0);
    auto a_strides = StridesOf(args, first);
    for (size_t slot = 0; slot < count; ++slot) {
      if (slot == first) continue;
      const float* b = args.inputs[slot].image<float>(0);
      const auto b_strides = StridesOf(args, slot);
      OperandLoops<3> nest;
      for (int i = 0; i < out.rank; ++i) nest.Add(out.size[i], {a_strides[i], b_strides[i], out.stride[i]});
      nest.ForEach(begin, end, [&](const OperandLoops<3>::Part& part) {
        loop_(op_, {a + part.offset[0], b + part.offset[1], result + part.offset[2], part.rows, part.columns,
                    part.row[0], part.row[1], part.row[2], part.column[0], part.column[1], part.column[2]});
      });
      a = result;
      a_strides = out.stride;
    }
    if (zero_padding_) ZeroPadding(args.output, begin, end);
  }

 private:
  int64_t FirstElement(int64_t task) const {
    const int64_t pieces = Grid(0).rows;
    return task / pieces * dims_.block_floats() + task % pieces * piece_pixels_ * dims_.lanes;
  }

  std::array<int64_t, kMaxRank + 1> StridesOf(const KernelArgs& args, size_t slot) const {
    return BroadcastStrides(request_.inputs[slot], request_.output, request_.layout,
                            args.inputs[slot].batch_stride);
  }

  // In elements [begin, end), which are whole pixels: the lanes of the last block that hold no channel.
  void ZeroPadding(const OutputView& output, int64_t begin, int64_t end) const {
    const int64_t image = dims_.blocks * dims_.block_floats(), last = image - dims_.block_floats();
    for (int64_t n = begin / image; n * image < end; ++n) {
      const int64_t first = std::max(begin - n * image, last), limit = std::min(end - n * image, image);
      if (first >= limit) continue;
      ZeroLanes(output.image<float>(n) + first, dims_.UsedLanes(dims_.blocks - 1), dims_.lanes,
                (limit - first) / dims_.lanes);
    }
  }

  const KernelRequest request_;
  const BinaryKind op_;
  const BlockDims dims_;
  const bool zero_padding_;
  const int64_t piece_pixels_;
  void (*const loop_)(BinaryKind, const BinaryLoop&);
};

class SumKernel : public BlockKernel {
 public:
  SumKernel(const BlockDims& dims, Isa isa)
      : BlockKernel(dims, false), loop_(TILESMITH_DISPATCH(isa, SumRun)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    loop_(args.inputs.data(), static_cast<int64_t>(args.inputs.size()), piece.image, piece.offset,
          At(args.output, piece), piece.pixels * dims().lanes);
  }
  void (*const loop_)(const InputView*, int64_t, int64_t, int64_t, float*, int64_t);
};

}  // namespace

std::unique_ptr<Kernel> MakeActivationKernel(const KernelRequest& request, const Activation& activation) {
  return std::make_unique<ActivationKernel>(DimsFor(request, activation.Apply(0) == 0), activation,
                                            request.cpu.isa);
}

std::unique_ptr<Kernel> MakeFunctionKernel(const KernelRequest& request, const Function& function) {
  return std::make_unique<FunctionKernel>(DimsFor(request, Apply(function, 0) == 0), function,
                                          request.cpu.isa);
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

bool BroadcastsIn(const Layout& layout, std::span<const Shape> inputs, const Shape& output) {
  if (layout.is_nchw()) return true;
  return output.size() <= 4 && std::ranges::all_of(inputs, [&](const Shape& input) {
           return input.size() == output.size() &&
                  (input.size() < 2 || input[1] == 1 || input[1] == output[1]);
         });
}

std::unique_ptr<Kernel> MakeBinaryKernel(const KernelRequest& request, BinaryKind op) {
  TILESMITH_CHECK(BroadcastsIn(request.layout, request.inputs, request.output));
  return std::make_unique<BinaryKernel>(request, op);
}

std::unique_ptr<Kernel> MakeSumKernel(const KernelRequest& request) {
  return std::make_unique<SumKernel>(FlatDimsOf(request.output, request.layout), request.cpu.isa);
}

}  // namespace tilesmith
