#include "layouts/convert_transform.h"

#include <algorithm>
#include <concepts>

#include "layouts/base/check.h"
#include "layouts/convert_runs.h"
#include "layouts/transform_moves.h"

namespace tilesmith {
namespace {

// Transposes are of floats, on the side of the floats; what lies on the other side is converted a piece at a
// time by way of a buffer.
constexpr int64_t kPiecePixels = 64, kPieceChannels = 16;

template <typename From, typename To>
class ConvertKernel : public Kernel {
 public:
  ConvertKernel(MovePlan plan, Isa isa)
      : plan_(std::move(plan)),
        interleave_(TILESMITH_DISPATCH(isa, Interleave<float>)),
        deinterleave_(TILESMITH_DISPATCH(isa, Deinterleave<float>)),
        convert_(TILESMITH_DISPATCH(isa, ConvertRuns<From, To>)) {
    const bool transposes = plan_.kind == MoveKind::kInterleave || plan_.kind == MoveKind::kDeinterleave;
    for (const ChannelMove& move : plan_.moves) TILESMITH_CHECK(!transposes || move.length <= kPieceChannels);
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return plan_.Grid(); }
  bool ShiftsBlocks() const override { return plan_.kind != MoveKind::kFlat; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    TILESMITH_CHECK(args.inputs.size() == 1, "{} inputs", args.inputs.size());
    const MoveShifts shifts = MoveShiftsOf(args, sizeof(From), sizeof(To));
    for (int64_t task = range.begin; task < range.end; ++task) {
      const int64_t image = task / plan_.TasksPerImage();
      const MovePlan::TaskPart part = plan_.PartOf(task % plan_.TasksPerImage());
      const From* in = args.inputs[0].template image<From>(image);
      To* out = args.output.image<To>(image);
      for (int64_t i = part.first_move; i < part.last_move; ++i)
        MoveChunk(in, out, plan_.Shifted(static_cast<size_t>(i), shifts), part, shifts);
    }
  }

 private:
  void MoveChunk(const From* in, To* out, const ChannelMove& move, const MovePlan::TaskPart& part,
                 const MoveShifts& shifts) const {
    in += move.in_offset, out += move.out_offset;
    if (plan_.kind == MoveKind::kFlat)
      return convert_({.in = in, .out = out, .length = move.length, .padded = move.padded});
    if (plan_.kind == MoveKind::kRuns) {
      return convert_({.in = in + part.first_pixel * plan_.in_pixel_stride,
                       .out = out + part.first_pixel * plan_.out_pixel_stride,
                       .in_pixel_stride = plan_.in_pixel_stride,
                       .out_pixel_stride = plan_.out_pixel_stride,
                       .in_run_stride = move.in_run_stride,
                       .out_run_stride = move.out_run_stride,
                       .pixels = part.last_pixel - part.first_pixel,
                       .runs = move.runs,
                       .length = move.length,
                       .padded = move.padded});
    }
    for (int64_t run = 0; run < move.runs; ++run) {
      for (int64_t p = part.first_pixel; p < part.last_pixel; p += kPiecePixels) {
        const int64_t pixels = std::min(kPiecePixels, part.last_pixel - p);
        const From* from = in + run * move.in_run_stride;
        To* to = out + run * move.out_run_stride;
        if (plan_.kind == MoveKind::kInterleave) {
          InterleavePiece(from + p, to + p * plan_.out_pixel_stride, pixels, move, plan_.pixels + shifts.in);
        } else {
          DeinterleavePiece(from + p * plan_.in_pixel_stride, to + p, pixels, move.length,
                            plan_.pixels + shifts.out);
        }
      }
    }
  }

  void InterleavePiece(const From* in, To* out, int64_t pixels, const ChannelMove& move,
                       int64_t plane_stride) const {
    alignas(64) float piece[kPiecePixels * kPieceChannels];
    const int64_t channels = move.length;
    if constexpr (std::same_as<From, float>) {
      interleave_({.in = in,
                   .out = piece,
                   .plane_stride = plane_stride,
                   .pixel_stride = channels,
                   .pixels = pixels,
                   .channels = channels,
                   .padded = channels});
      convert_({.in = piece,
                .out = out,
                .in_pixel_stride = channels,
                .out_pixel_stride = plan_.out_pixel_stride,
                .pixels = pixels,
                .length = channels,
                .padded = move.padded});
    } else {
      ConvertPlanes(in, piece, plane_stride, kPiecePixels, {pixels, channels});
      interleave_({.in = piece,
                   .out = out,
                   .plane_stride = kPiecePixels,
                   .pixel_stride = plan_.out_pixel_stride,
                   .pixels = pixels,
                   .channels = channels,
                   .padded = move.padded});
    }
  }

  void DeinterleavePiece(const From* in, To* out, int64_t pixels, int64_t channels,
                         int64_t plane_stride) const {
    alignas(64) float piece[kPiecePixels * kPieceChannels];
    if constexpr (std::same_as<From, float>) {
      deinterleave_({.in = in,
                     .out = piece,
                     .plane_stride = kPiecePixels,
                     .pixel_stride = plan_.in_pixel_stride,
                     .pixels = pixels,
                     .channels = channels,
                     .padded = channels});
      ConvertPlanes(piece, out, kPiecePixels, plane_stride, {pixels, channels});
    } else {
      convert_({.in = in,
                .out = piece,
                .in_pixel_stride = plan_.in_pixel_stride,
                .out_pixel_stride = channels,
                .pixels = pixels,
                .length = channels,
                .padded = channels});
      deinterleave_({.in = piece,
                     .out = out,
                     .plane_stride = plane_stride,
                     .pixel_stride = channels,
                     .pixels = pixels,
                     .channels = channels,
                     .padded = channels});
    }
  }

  struct PieceSize {
    int64_t pixels, channels;
  };
  void ConvertPlanes(const From* in, To* out, int64_t in_stride, int64_t out_stride,
                     const PieceSize& size) const {
    convert_({.in = in,
              .out = out,
              .in_pixel_stride = in_stride,
              .out_pixel_stride = out_stride,
              .pixels = size.channels,
              .length = size.pixels,
              .padded = size.pixels});
  }

  const MovePlan plan_;
  void (*const interleave_)(const PlaneMove<float>&);
  void (*const deinterleave_)(const PlaneMove<float>&);
  void (*const convert_)(const ConvertMove<From, To>&);
};

}  // namespace

bool AreConverted(DataType from, DataType to) {
  const auto has_16_bits = [](DataType type) { return type == DataType::kBf16 || type == DataType::kF16; };
  return (from == DataType::kF32 && has_16_bits(to)) || (has_16_bits(from) && to == DataType::kF32);
}

std::unique_ptr<Kernel> MakeConvertKernel(MovePlan plan, TypePair types, const Target& cpu) {
  const auto make = [&]<typename From, typename To>(From, To) -> std::unique_ptr<Kernel> {
    return std::make_unique<ConvertKernel<From, To>>(std::move(plan), cpu.isa);
  };
  if (types.from == DataType::kF16) return make(HalfBits(), float());
  if (types.from == DataType::kBf16) return make(uint16_t(), float());
  return types.to == DataType::kF16 ? make(float(), HalfBits()) : make(float(), uint16_t());
}

}  // namespace tilesmith
