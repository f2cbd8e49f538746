#include <algorithm>
#include <vector>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"
#include "templates/few_outputs/config.h"

namespace tilesmith::few_outputs {
namespace {

// The few_outputs kernel's code generator: some neighbouring rows of some output channels.
//
// For each register tile of the rows:  acc[output][row][vector] = bias (+ residual)
//   for input channel, input row (skipped when outside the input), kernel column:
//     x[vector] = input row, shifted by the kernel column; lanes outside the row zero
//     acc[output][row][vector] += x[vector] * weight[output]   for all kernel rows that read the input row
//   out = activation(acc)
// Nothing is read or written outside rows: edge tiles are emitted on their own, with masks.
struct TileArgs {
  const float* source = nullptr;    // first tap of the first output row, which may lie outside; column 0
  const float* weights = nullptr;   // packed, of the chunk
  float* output = nullptr;          // first output channel of the chunk, first row, column 0
  const float* residual = nullptr;  // like output
  const float* bias = nullptr;      // of the chunk's first channel
  uint64_t rows_inside = 0;         // bit i: row i of InputRowsOf(workload, rows) lies inside the input
  int64_t source_plane = 0;         // bytes from a channel to the next one
  int64_t output_plane = 0, residual_plane = 0;
};
using TileKernel = void (*)(const TileArgs*);

// One kernel: what distinguishes it from the others of the same conv.
struct KernelVariant {
  int64_t outputs = 1;
  int64_t rows = 1;
};

// All kernels of one conv, in one code buffer.
class Generator : public VectorCode {
 public:
  Generator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes);

  // Emits a kernel and returns its offset in the code.
  size_t Emit(const KernelVariant& variant);
  // After the last kernel.
  void Finish() { EmitConstants(); }

 private:
  Xbyak::Xmm Accumulator(int64_t output, int64_t row, int vector) const {
    return Vector(static_cast<int>((output * variant_.rows + row) * vectors_ + vector));
  }
  // Has kPlane point to this output's plane, the last one's or the first, and base where the first one lies.
  void NextPlane(const Xbyak::Reg64& base, int64_t output, size_t step);
  Xbyak::Address InPlane(int64_t row, int vector) const;
  Xbyak::Xmm Mask() const { return Vector(plan_.mask); }  // for AVX2
  bool IsPartial(const TileRun& tile, int vector) const {
    return schedule_.RealLanes(tile.first + vector) < schedule_.config.lanes;
  }

  void EmitTile(const TileRun& tile);
  void EmitStart(const TileRun& tile);
  void EmitChannels(const TileRun& tile);
  void EmitChannel(const TileRun& tile);
  void EmitPrefetch();
  void EmitColumn(const TileRun& tile, const InputRow& row, int64_t column);
  void EmitFinish(const TileRun& tile);
  void LoadLanes(const Xbyak::Xmm& to, const Xbyak::Address& from, uint32_t lanes);

  const Schedule& schedule_;
  KernelVariant variant_;
  std::vector<InputRow> input_rows_;  // of the variant
  int vectors_ = 0;                   // of the tile being emitted
  RegisterPlan plan_;
  int next_input_ = 0;
};

using x86::Offset;
using Xbyak::Address;
using Xbyak::Reg64;
using Xbyak::Xmm;

// General registers by purpose. The only argument arrives in rdi; kSaved are the caller's.
const Reg64 kArgs(Xbyak::Operand::RDI);
const Reg64 kBias(Xbyak::Operand::RDI);  // once the arguments are read
const Reg64 kSource(Xbyak::Operand::RSI);
const Reg64 kWeights(Xbyak::Operand::RDX);
const Reg64 kOutput(Xbyak::Operand::RCX);
const Reg64 kResidual(Xbyak::Operand::R8);
const Reg64 kRowsInside(Xbyak::Operand::R9);
const Reg64 kTilesLeft(Xbyak::Operand::R10);
const Reg64 kSourceNow(Xbyak::Operand::R11);
const Reg64 kWeightsNow(Xbyak::Operand::RBX);
const Reg64 kChannelsLeft(Xbyak::Operand::R12);
const Reg64 kSourcePlane(Xbyak::Operand::R13);
const Reg64 kPlaneArgs(Xbyak::Operand::R14);  // the arguments, where steps from plane to plane are read
const Reg64 kPlane(Xbyak::Operand::R15);
const Reg64 kSaved[] = {kWeightsNow, kChannelsLeft, kSourcePlane, kPlaneArgs, kPlane};

Generator::Generator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes), schedule_(schedule) {}

void Generator::NextPlane(const Reg64& base, int64_t output, size_t step) {
  output == 0 ? mov(kPlane, base) : add(kPlane, ptr[kPlaneArgs + step]);
}

Address Generator::InPlane(int64_t row, int vector) const {
  return ptr[kPlane + Offset(row * schedule_.out_row_bytes + vector * vector_bytes())];
}

void Generator::LoadLanes(const Xmm& to, const Address& from, uint32_t lanes) {
  if (wide()) {
    mov(eax, lanes);
    kmovw(k2, eax);
    vmovups(to | k2 | T_z, from);
    return;
  }
  std::vector<uint32_t> pattern(vector_floats());
  for (int lane = 0; lane < vector_floats(); ++lane)
    pattern[lane] = (lanes >> lane & 1) != 0 ? UINT32_MAX : 0;
  vmovups(Mask(), Constant(pattern));
  vmaskmovps(to, Mask(), from);
}

size_t Generator::Emit(const KernelVariant& variant) {
  variant_ = variant;
  input_rows_ = InputRowsOf(schedule_.workload, variant.rows);
  align(64);
  const size_t start = getSize();
  for (const Reg64& reg : kSaved) push(reg);
  mov(kSource, ptr[kArgs + offsetof(TileArgs, source)]);
  mov(kWeights, ptr[kArgs + offsetof(TileArgs, weights)]);
  mov(kOutput, ptr[kArgs + offsetof(TileArgs, output)]);
  mov(kResidual, ptr[kArgs + offsetof(TileArgs, residual)]);
  mov(kRowsInside, ptr[kArgs + offsetof(TileArgs, rows_inside)]);
  mov(kSourcePlane, ptr[kArgs + offsetof(TileArgs, source_plane)]);
  mov(kPlaneArgs, kArgs);
  mov(kBias, ptr[kArgs + offsetof(TileArgs, bias)]);
  for (const TileRun& tile : schedule_.tiles) {
    Repeat(tile.count, kTilesLeft, [&] {
      EmitTile(tile);
      add(kSource, Offset(tile.width * vector_bytes()));
      add(kOutput, Offset(tile.width * vector_bytes()));
      if (schedule_.workload.post.sum) add(kResidual, Offset(tile.width * vector_bytes()));
    });
  }
  for (size_t i = std::size(kSaved); i-- > 0;) pop(kSaved[i]);
  vzeroupper();
  ret();
  return start;
}

void Generator::EmitTile(const TileRun& tile) {
  vectors_ = tile.width;
  plan_ = PlanRegisters(schedule_, {variant_.outputs, variant_.rows, vectors_});
  TILESMITH_CHECK(plan_.fits);
  next_input_ = 0;
  EmitStart(tile);
  EmitChannels(tile);
  EmitFinish(tile);
}

void Generator::EmitStart(const TileRun& tile) {
  const PostOps& post = schedule_.workload.post;
  const Xmm bias = Vector(plan_.first_input), loaded = Vector(plan_.first_input + 1);
  for (int64_t output = 0; output < variant_.outputs; ++output) {
    if (post.bias) vbroadcastss(bias, ptr[kBias + Offset(output * kFloatBytes)]);
    if (post.sum) NextPlane(kResidual, output, offsetof(TileArgs, residual_plane));
    for (int64_t row = 0; row < variant_.rows; ++row) {
      for (int vector = 0; vector < vectors_; ++vector) {
        const Xmm acc = Accumulator(output, row, vector);
        if (post.bias) {
          vmovaps(acc, bias);
        } else {
          Zero(acc);
        }
        if (!post.sum) continue;
        const Address residual = InPlane(row, vector);
        if (IsPartial(tile, vector)) {
          LoadLanes(loaded, residual, (1U << schedule_.RealLanes(tile.first + vector)) - 1);
          vaddps(acc, acc, loaded);
        } else {
          vaddps(acc, acc, residual);
        }
      }
    }
  }
}

void Generator::EmitChannels(const TileRun& tile) {
  const int64_t unroll = std::min(schedule_.config.ic_unroll, schedule_.workload.ic);
  const int64_t times = schedule_.workload.ic / unroll, rest = schedule_.workload.ic % unroll;
  mov(kSourceNow, kSource);
  mov(kWeightsNow, kWeights);
  Xbyak::Label next;
  if (times > 1) {
    mov(kChannelsLeft, times);
    align(32);
    L(next);
  }
  for (int64_t i = 0; i < unroll; ++i) EmitChannel(tile);
  if (times > 1) {
    dec(kChannelsLeft);
    jnz(next, T_NEAR);
  }
  for (int64_t i = 0; i < rest; ++i) EmitChannel(tile);
}

void Generator::EmitChannel(const TileRun& tile) {
  for (size_t i = 0; i < input_rows_.size(); ++i) {
    Xbyak::Label outside;
    bt(kRowsInside, static_cast<uint8_t>(i));
    jnc(outside, T_NEAR);
    for (int64_t column = 0; column < schedule_.workload.kw; ++column)
      EmitColumn(tile, input_rows_[i], column);
    L(outside);
  }
  EmitPrefetch();
  add(kSourceNow, kSourcePlane);
  add(kWeightsNow, Offset(schedule_.WeightBytes(variant_.outputs, schedule_.workload.kh, 0)));
}

void Generator::EmitPrefetch() {
  if (schedule_.config.prefetch == Prefetch::kNone) return;
  constexpr int64_t kLineBytes = 64;
  const int64_t down = variant_.rows * schedule_.workload.sh;
  for (const InputRow& row : input_rows_) {
    const int64_t next = row.offset + down;
    if (next <= input_rows_.back().offset) continue;
    for (int64_t byte = 0; byte < vectors_ * vector_bytes(); byte += kLineBytes) {
      const Address at = ptr[kSourceNow + Offset(next * schedule_.in_row_bytes + byte)];
      schedule_.config.prefetch == Prefetch::kFirstLevel ? prefetcht0(at) : prefetcht1(at);
    }
  }
}

void Generator::EmitColumn(const TileRun& tile, const InputRow& row, int64_t column) {
  const auto outputs = static_cast<int>(variant_.outputs);
  const int weights = static_cast<int>(row.taps.size()) * outputs;
  for (int i = 0; i < weights; ++i) {
    const int64_t bytes = schedule_.WeightBytes(outputs, row.taps[i / outputs].kernel_row, column);
    vbroadcastss(Vector(plan_.first_weight + i),
                 ptr[kWeightsNow + Offset(bytes + i % outputs * kFloatBytes)]);
  }
  const int64_t shift = column * (schedule_.workload.dw + 1) - schedule_.workload.pw;
  const int64_t base = row.offset * schedule_.in_row_bytes + shift * kFloatBytes;
  for (int vector = 0; vector < vectors_; ++vector) {
    const auto all = static_cast<uint32_t>((uint64_t{1} << vector_floats()) - 1);
    const uint32_t lanes = tile.edge ? schedule_.InputLanes(tile.first + vector, column) : all;
    if (lanes == 0) continue;
    const Xmm input = Vector(plan_.first_input + next_input_);
    next_input_ = (next_input_ + 1) % plan_.inputs;
    const Address from = ptr[kSourceNow + Offset(base + vector * vector_bytes())];
    if (lanes == all) {
      vmovups(input, from);
    } else {
      LoadLanes(input, from, lanes);
    }
    for (int i = 0; i < weights; ++i) {
      vfmadd231ps(Accumulator(i % outputs, row.taps[i / outputs].output_row, vector), input,
                  Vector(plan_.first_weight + i));
    }
  }
}

void Generator::EmitFinish(const TileRun& tile) {
  const Activation& activation = schedule_.workload.post.activation;
  for (int vector = 0; vector < vectors_; ++vector) {
    const bool partial = IsPartial(tile, vector);
    if (partial) LoadMask(static_cast<int>(schedule_.RealLanes(tile.first + vector)), Mask());
    for (int64_t output = 0; output < variant_.outputs; ++output) {
      NextPlane(kOutput, output, offsetof(TileArgs, output_plane));
      for (int64_t row = 0; row < variant_.rows; ++row) {
        const Xmm acc = Accumulator(output, row, vector);
        const Address to = InPlane(row, vector);
        Apply(activation, acc, Vector(plan_.first_input));
        partial ? StorePartial(to, acc, Mask()) : vmovups(to, acc);
      }
    }
  }
}

size_t PackedBytes(const Schedule& g) {
  return static_cast<size_t>(g.workload.oc * g.workload.ic * g.workload.kh * g.workload.kw) * sizeof(float);
}

// For chunk of output channels, input channel, kernel row, kernel column, output channel of the chunk.
AlignedBuffer PackWeights(const Schedule& g, const float* weights) {
  const ConvWorkload& w = g.workload;
  const int64_t taps = w.kh * w.kw;
  AlignedBuffer packed(PackedBytes(g));
  float* to = packed.floats();
  for (int64_t first = 0; first < w.oc; first += g.config.outputs) {
    const int64_t outputs = std::min(g.config.outputs, w.oc - first);
    for (int64_t i = 0; i < w.ic * taps; ++i) {
      for (int64_t output = 0; output < outputs; ++output)
        *to++ = weights[(first + output) * w.ic * taps + i];
    }
  }
  return packed;
}

class FewOutputsKernel : public ConvKernel {
 public:
  FewOutputsKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        weights_(DataPart(
            weights.parts, PackedBytes(schedule_), [&] { return PackWeights(schedule_, weights.weights); },
            [&] {
              return PartKey("few_outputs weights")
                  .Add(schedule_.config.outputs, schedule_.workload.oc, schedule_.workload.ic,
                       schedule_.workload.kh, schedule_.workload.kw);
            })),
        bias_(FloatsPart(weights.parts, weights.bias, schedule_.workload.oc, schedule_.workload.oc)),
        input_rows_(InputRowsOf(schedule_.workload, schedule_.config.tile_rows)),
        last_input_rows_(InputRowsOf(schedule_.workload, schedule_.last_rows())) {
    code_ = NextCode(weights.parts, [&](std::vector<size_t>& starts) { return Emit(cpu, starts); });
    for (int i = 0; i < 4; ++i) kernels_[i / 2][i % 2] = code_.Get<TileKernel>(i);
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    const int64_t chunks = schedule_.chunks(), row_blocks = schedule_.row_blocks();
    for (int64_t task = range.begin; task < range.end; ++task)
      RunTask(args, task / chunks / row_blocks, task / chunks % row_blocks, task % chunks);
  }

  std::vector<CodeBlob> Code() const override {
    return {{"few_outputs " + WorkloadToString(schedule_.workload), code_.bytes()}};
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  // One kernel for each of kernels_, in its order; where there is none, it begins with the first.
  std::unique_ptr<Generator> Emit(const Target& cpu, std::vector<size_t>& starts) const {
    constexpr int64_t kFixedBytes = 4096;  // prologues, constants, loops
    // Vectors of 8 on AVX-512 are AVX2's.
    const Target cpu_of_lanes = schedule_.config.lanes < cpu.vector_floats() ? CapIsa(cpu, Isa::kAvx2) : cpu;
    auto code = std::make_unique<Generator>(schedule_, cpu_of_lanes,
                                            4 * (2 * EstimateCodeBytes(schedule_) + kFixedBytes));
    for (const int64_t rows : {schedule_.config.tile_rows, schedule_.last_rows()}) {
      for (const int64_t outputs : {schedule_.config.outputs, schedule_.last_outputs()})
        starts.push_back(outputs > 0 && rows > 0 ? code->Emit({outputs, rows}) : 0);
    }
    code->Finish();
    return code;
  }

  // Some tiles of rows of one chunk of output channels of one image.
  void RunTask(const KernelArgs& args, int64_t image, int64_t row_block, int64_t chunk) const {
    const ConvWorkload& w = schedule_.workload;
    const int64_t first_output = chunk * schedule_.config.outputs;
    const bool less_outputs = first_output + schedule_.config.outputs > w.oc;
    const int64_t first_row = row_block * schedule_.rows_per_task();
    const int64_t end_row = std::min(w.oh, first_row + schedule_.rows_per_task());
    TileArgs tile;
    tile.weights = weights_.floats() + first_output * w.ic * w.kh * w.kw;
    tile.bias = bias_.floats() + first_output;
    tile.source_plane = schedule_.in_plane_bytes + args.inputs[0].block_shift;
    tile.output_plane = schedule_.out_plane_bytes + args.output.block_shift;
    float* const output = BytesPast(args.output.image<float>(image), first_output * tile.output_plane);
    const float* residual = nullptr;
    if (w.post.sum) {
      tile.residual_plane = schedule_.out_plane_bytes + args.inputs[1].block_shift;
      residual = BytesPast(args.inputs[1].image<float>(image), first_output * tile.residual_plane);
    }
    for (int64_t row = first_row; row < end_row; row += schedule_.config.tile_rows) {
      const bool less_rows = row + schedule_.config.tile_rows > w.oh;
      const int64_t top = row * w.sh - w.ph;
      const int64_t out_offset = row * schedule_.out_row_bytes;
      tile.source = BytesPast(args.inputs[0].image<float>(image), top * schedule_.in_row_bytes);
      tile.output = BytesPast(output, out_offset);
      if (w.post.sum) tile.residual = BytesPast(residual, out_offset);
      tile.rows_inside = RowsInside(less_rows ? last_input_rows_ : input_rows_, top, w.ih);
      kernels_[less_rows ? 1 : 0][less_outputs ? 1 : 0](&tile);
    }
  }

  Schedule schedule_;
  SharedBuffer weights_, bias_;
  std::vector<InputRow> input_rows_, last_input_rows_;  // of a whole tile, and of one cut off by the bottom
  GeneratedCode code_;
  TileKernel kernels_[2][2] = {};  // [cut off by the bottom][last, smaller chunk]
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<FewOutputsKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::few_outputs
