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

// As tensors hold what is computed in double.
void Store(double value, float& out) { out = static_cast<float>(value); }
void Store(double value, uint16_t& out) { out = ConvertElement<Bf16>(value).bits; }
double Load(float stored) { return stored; }
double Load(uint16_t stored) { return FromBf16Bits(stored); }

// Kernels are templates of what tensors hold, as their loops are (elementwise_loops.h).
template <typename T>
class ActivationKernel : public BlockKernel {
 public:
  ActivationKernel(const BlockDims& dims, const Activation& activation, const Target& cpu)
      : BlockKernel(dims),
        activation_(activation),
        keeps_zero_(activation.Apply(0) == 0),
        loop_(TILESMITH_DISPATCH_STORED(T, cpu, ActivateRun<T>)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    T* const out = At<T>(args.output, piece);
    loop_(At<T>(args.inputs[0], piece), out, piece.pixels * dims().lanes, activation_);
    if (!keeps_zero_) ZeroPadding(dims(), piece, out);
  }
  const Activation activation_;
  const bool keeps_zero_;
  void (*const loop_)(const T*, T*, int64_t, Activation);
};

template <typename T>
class FunctionKernel : public BlockKernel {
 public:
  FunctionKernel(const BlockDims& dims, const Function& function, const Target& cpu)
      : BlockKernel(dims),
        function_(function),
        keeps_zero_(Apply(function, 0) == 0),
        loop_(HasVectorFunction(function.kind) ? TILESMITH_DISPATCH_STORED(T, cpu, FunctionRun<T>)
                                               : nullptr) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const T* in = At<T>(args.inputs[0], piece);
    T* const out = At<T>(args.output, piece);
    const int64_t count = piece.pixels * dims().lanes;
    if (loop_ != nullptr) {
      loop_(in, out, count, function_);
    } else {
      for (int64_t i = 0; i < count; ++i) Store(Apply(function_, Load(in[i])), out[i]);
    }
    if (!keeps_zero_) ZeroPadding(dims(), piece, out);
  }
  const Function function_;
  const bool keeps_zero_;
  void (*const loop_)(const T*, T*, int64_t, Function);
};

template <typename T>
class ScaleShiftKernel : public BlockKernel {
 public:
  ScaleShiftKernel(const BlockDims& dims, const std::vector<float>& scale, const std::vector<float>& shift,
                   const Activation& activation, const Target& cpu)
      : BlockKernel(dims),
        scale_(PaddedTo(dims, scale)),
        shift_(PaddedTo(dims, shift)),
        activation_(activation),
        keeps_zero_(activation.Apply(0) == 0),
        loop_(TILESMITH_DISPATCH_STORED(T, cpu, ScaleShiftLanes<T>)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const int64_t lanes = dims().lanes, channel = piece.block * lanes;
    T* const out = At<T>(args.output, piece);
    loop_({At<T>(args.inputs[0], piece), out, &scale_[channel], &shift_[channel], lanes, piece.pixels},
          activation_);
    if (!keeps_zero_) ZeroPadding(dims(), piece, out);
  }
  const std::vector<float> scale_, shift_;
  const Activation activation_;
  const bool keeps_zero_;
  void (*const loop_)(const LaneLoop<T>&, Activation);
};

template <typename T>
class PReluKernel : public BlockKernel {
 public:
  PReluKernel(const BlockDims& dims, const std::vector<float>& slopes, const Target& cpu)
      : BlockKernel(dims),
        slopes_(PaddedTo(dims, slopes)),
        loop_(TILESMITH_DISPATCH_STORED(T, cpu, PReluLanes<T>)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    const int64_t lanes = dims().lanes;
    const float* slopes = &slopes_[piece.block * lanes];
    loop_({At<T>(args.inputs[0], piece), At<T>(args.output, piece), slopes, slopes, lanes, piece.pixels});
  }
  const std::vector<float> slopes_;
  void (*const loop_)(const LaneLoop<T>&);
};

// Two inputs, or more of an op that is commutative and associative. Tasks are pieces of the output's blocks,
// padding included; those side by side are computed as one.
template <typename T>
class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const KernelRequest& request, BinaryKind op)
      : request_(request),
        op_(op),
        dims_(BlockDimsOf(request.output, request.layout)),
        zero_padding_(dims_.has_padding()),
        piece_pixels_(PiecePixels(dims_)),
        loop_(TILESMITH_DISPATCH_STORED(T, request.cpu, BinaryRows<T>)) {}

  int64_t Tasks(int stage) const override { return Grid(stage).tasks(); }
  TaskGrid Grid(int) const override { return GridOfPieces(dims_, piece_pixels_); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t begin = FirstElement(range.begin), end = FirstElement(range.end);
    MemoryDims out = MemoryDimsOf(request_.output, request_.layout, args.output.batch_stride);
    ShiftBlocks(args.output.block_shift, out.stride);
    const size_t count = request_.inputs.size();
    // An input that is overwritten comes first.
    size_t first = 0;
    while (count > 2 && first + 1 < count && args.inputs[first].data != args.output.data) ++first;
    if (args.inputs[first].data != args.output.data) first = 0;
    T* const result = args.output.image<T>(0);
    const T* a = args.inputs[first].image<T>(0);
    auto a_strides = StridesOf(args, first);
    for (size_t slot = 0; slot < count; ++slot) {
      if (slot == first) continue;
      const T* b = args.inputs[slot].image<T>(0);
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
    if (zero_padding_) ZeroPaddingOf(args.output, begin, end);
  }

 private:
  int64_t FirstElement(int64_t task) const {
    const int64_t pieces = Grid(0).rows;
    return task / pieces * dims_.block_floats() + task % pieces * piece_pixels_ * dims_.lanes;
  }

  // Blocks are the second dimension in any layout; what repeats has no stride.
  void ShiftBlocks(int64_t block_shift, std::array<int64_t, kMaxRank + 1>& strides) const {
    if (dims_.blocks > 1 && strides[1] != 0) strides[1] += block_shift / int64_t{sizeof(T)};
  }

  std::array<int64_t, kMaxRank + 1> StridesOf(const KernelArgs& args, size_t slot) const {
    const InputView& view = args.inputs[slot];
    auto strides =
        BroadcastStrides(request_.inputs[slot], request_.output, request_.layout, view.batch_stride);
    ShiftBlocks(view.block_shift, strides);
    return strides;
  }

  // In elements [begin, end), which are whole pixels: the lanes of the last block that hold no channel.
  void ZeroPaddingOf(const OutputView& output, int64_t begin, int64_t end) const {
    const int64_t image = dims_.blocks * dims_.block_floats(), last = image - dims_.block_floats();
    for (int64_t n = begin / image; n * image < end; ++n) {
      const int64_t first = std::max(begin - n * image, last), limit = std::min(end - n * image, image);
      if (first >= limit) continue;
      const int64_t shift = (dims_.blocks - 1) * output.block_shift / int64_t{sizeof(T)};
      ZeroLanes(output.image<T>(n) + first + shift, dims_.UsedLanes(dims_.blocks - 1), dims_.lanes,
                (limit - first) / dims_.lanes);
    }
  }

  const KernelRequest request_;
  const BinaryKind op_;
  const BlockDims dims_;
  const bool zero_padding_;
  const int64_t piece_pixels_;
  void (*const loop_)(BinaryKind, const BinaryLoop<T>&);
};

template <typename T>
class SumKernel : public BlockKernel {
 public:
  SumKernel(const BlockDims& dims, const Target& cpu)
      : BlockKernel(dims), loop_(TILESMITH_DISPATCH_STORED(T, cpu, SumRun<T>)) {}

 private:
  void RunPiece(const KernelArgs& args, const BlockPiece& piece) const override {
    loop_(args.inputs.data(), static_cast<int64_t>(args.inputs.size()), piece.image, piece.offset,
          At<T>(args.output, piece), piece.pixels * dims().lanes);
  }
  void (*const loop_)(const InputView*, int64_t, int64_t, int64_t, T*, int64_t);
};

// A kernel of the class template for what the request's tensors hold.
template <template <typename> class ClassOf, typename... Arguments>
std::unique_ptr<Kernel> KernelOf(const KernelRequest& request, const Arguments&... arguments) {
  if (request.layout.type() == DataType::kBf16) return std::make_unique<ClassOf<uint16_t>>(arguments...);
  return std::make_unique<ClassOf<float>>(arguments...);
}

}  // namespace

std::unique_ptr<Kernel> MakeActivationKernel(const KernelRequest& request, const Activation& activation) {
  return KernelOf<ActivationKernel>(request, DimsFor(request, activation.Apply(0) == 0), activation,
                                    request.cpu);
}

std::unique_ptr<Kernel> MakeFunctionKernel(const KernelRequest& request, const Function& function) {
  return KernelOf<FunctionKernel>(request, DimsFor(request, Apply(function, 0) == 0), function, request.cpu);
}

std::unique_ptr<Kernel> MakeScaleShiftKernel(const KernelRequest& request, const std::vector<float>& scale,
                                             const std::vector<float>& shift, const Activation& activation) {
  const auto differs = [](const std::vector<float>& values) {
    return std::ranges::adjacent_find(values, std::not_equal_to()) != values.end();
  };
  BlockDims dims = BlockDimsOf(request.output, request.layout);
  if (!dims.has_padding() && !scale.empty() && !differs(scale) && !differs(shift))
    dims = FlatDimsOf(request.output, request.layout);
  return KernelOf<ScaleShiftKernel>(request, dims, scale, shift, activation, request.cpu);
}

std::unique_ptr<Kernel> MakePReluKernel(const KernelRequest& request, const std::vector<float>& slopes) {
  return KernelOf<PReluKernel>(request, BlockDimsOf(request.output, request.layout), slopes, request.cpu);
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
  return KernelOf<BinaryKernel>(request, request, op);
}

std::unique_ptr<Kernel> MakeSumKernel(const KernelRequest& request) {
  return KernelOf<SumKernel>(request, FlatDimsOf(request.output, request.layout), request.cpu);
}

}  // namespace tilesmith
