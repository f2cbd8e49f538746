#include <algorithm>
#include <cstring>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/data_type.h"
#include "templates/base/image_strides.h"
#include "templates/code/generated_code.h"
#include "templates/code/vector_code.h"
#include "templates/grouped/config.h"
#include "templates/grouped/lane_swaps.h"

namespace tilesmith::grouped {
namespace {

// The grouped kernel's code generator: some neighbouring output rows of one vector of output channels.
//
// For each register tile of the rows:  acc[row][position] = bias (+ residual)
//   for channel of the group, for input row (skipped when outside the input), for input column:
//     x = that channel's element of every group in the vector, spread over the group's lanes
//     acc[row][position] += x * weights[kernel row][channel][kernel column]   for all taps that read x
//   out = activation(acc)
// With several sums x is the input vector with its lanes swapped in one way after the other, and a position
// has several acc, whose lanes are swapped and added in the end (lane_swaps.h).
// In bf16 an element is a pair of channels, whose products are summed at once.
// Columns outside the input are skipped when emitting (edge tiles are emitted on their own). So there is no
// padded copy of the input, and an input element is loaded once for all kernel rows and columns in the tile.
struct TileArgs {
  const float* source = nullptr;    // first tap of the first output row, which may lie outside; column 0
  const float* weights = nullptr;   // packed, of the vector
  float* output = nullptr;          // first output row, column 0
  const float* residual = nullptr;  // like output
  const float* bias = nullptr;      // one vector
  uint64_t rows_inside = 0;         // bit i: row i of InputRowsOf(workload, rows) lies inside the input
  int64_t block_shift = 0;          // of the input, where a group lies in several blocks
};
using TileKernel = void (*)(const TileArgs*);

// One kernel: what distinguishes it from the others of the same conv.
struct KernelVariant {
  int64_t rows = 1;      // output rows
  bool partial = false;  // of the last vector, of which only partial_lanes lanes are real
  bool operator==(const KernelVariant&) const = default;
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
  Xbyak::Xmm Accumulator(int64_t sum, int64_t row, int position) const {
    return Vector(static_cast<int>((sum * variant_.rows + row) * positions_ + position));
  }
  Xbyak::Address Weight(int kernel_row, int64_t term, int kernel_column) const;
  Xbyak::Address OutputAt(const Xbyak::Reg64& base, int row, int position) const;
  DataType in_type() const { return schedule_.config.types.in; }
  DataType out_type() const { return schedule_.config.types.out; }
  // The mask of a partial vector: k1, or the plan's register.
  Xbyak::Xmm Mask() const { return Vector(plan_.mask); }

  void EmitTile(const TileRun& tile);
  void EmitStart();
  void EmitRows(const TileRun& tile);
  // One spread of the elements of an input row, times all weights of it.
  void EmitInputByInput(const InputRow& row, const std::vector<InputColumn>& columns, int64_t spread);
  void EmitWeightByWeight(const InputRow& row, const std::vector<InputColumn>& columns, int64_t spread);
  // Which element of an input vector each lane gets.
  void EmitIndex(int64_t spread);
  // sums += input * weights, a float or a pair in each lane.
  void Multiply(const Xbyak::Xmm& sums, const Xbyak::Xmm& input, const Xbyak::Operand& weights);
  void EmitInput(const Xbyak::Xmm& to, int64_t column, int64_t spread);
  void EmitSumOfSums();
  void EmitFinish();

  const Schedule& schedule_;
  KernelVariant variant_;
  int positions_ = 0;  // of the tile being emitted
  RegisterPlan plan_;
  int next_input_ = 0, next_weight_ = 0;  // to be used next where they take turns
};

using x86::Offset;
using Xbyak::Address;
using Xbyak::Reg64;
using Xbyak::Xmm;

// General registers by purpose, all free to overwrite. The only argument arrives in rdi.
const Reg64 kArgs(Xbyak::Operand::RDI);
const Reg64 kSource(Xbyak::Operand::RSI);
const Reg64 kSourceNow(Xbyak::Operand::R11);
const Reg64 kWeights(Xbyak::Operand::RDX);
const Reg64 kOutput(Xbyak::Operand::RCX);
const Reg64 kResidual(Xbyak::Operand::R8);
const Reg64 kRowsInside(Xbyak::Operand::R9);
const Reg64 kTilesLeft(Xbyak::Operand::R10);
const Reg64 kBias(Xbyak::Operand::RDI);  // once the arguments are read
// The caller's, and free only where a group lies in several blocks.
const Reg64 kBlockShift(Xbyak::Operand::R12);

Generator::Generator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes), schedule_(schedule) {}

Address Generator::Weight(int kernel_row, int64_t term, int kernel_column) const {
  const int64_t floats = schedule_.WeightOffset(kernel_row, term, kernel_column);
  return ptr[kWeights + Offset(floats * kFloatBytes)];
}

Address Generator::OutputAt(const Reg64& base, int row, int position) const {
  return ptr[base + Offset(row * schedule_.out.row_bytes + position * schedule_.out.pixel_bytes)];
}

size_t Generator::Emit(const KernelVariant& variant) {
  variant_ = variant;
  align(64);
  const size_t start = getSize();
  if (schedule_.GroupBlocks() > 1) {
    push(kBlockShift);
    mov(kBlockShift, ptr[kArgs + offsetof(TileArgs, block_shift)]);
  }
  mov(kSource, ptr[kArgs + offsetof(TileArgs, source)]);
  mov(kWeights, ptr[kArgs + offsetof(TileArgs, weights)]);
  mov(kOutput, ptr[kArgs + offsetof(TileArgs, output)]);
  mov(kResidual, ptr[kArgs + offsetof(TileArgs, residual)]);
  mov(kRowsInside, ptr[kArgs + offsetof(TileArgs, rows_inside)]);
  mov(kBias, ptr[kArgs + offsetof(TileArgs, bias)]);
  for (const TileRun& tile : schedule_.tiles) {
    Repeat(tile.count, kTilesLeft, [&] {
      EmitTile(tile);
      add(kSource, Offset(tile.width * schedule_.workload.sw * schedule_.in.pixel_bytes));
      add(kOutput, Offset(tile.width * schedule_.out.pixel_bytes));
      if (schedule_.workload.post.sum) add(kResidual, Offset(tile.width * schedule_.out.pixel_bytes));
    });
  }
  if (schedule_.GroupBlocks() > 1) pop(kBlockShift);
  vzeroupper();
  ret();
  return start;
}

void Generator::EmitTile(const TileRun& tile) {
  positions_ = tile.width;
  plan_ = PlanRegisters(schedule_, positions_, variant_.rows);
  TILESMITH_CHECK(plan_.fits);
  next_input_ = next_weight_ = 0;
  if (variant_.partial && (schedule_.in_layout.is_nhwc() || schedule_.out_layout.is_nhwc()))
    LoadMask(schedule_.partial_lanes, Mask());
  EmitStart();
  EmitRows(tile);
  EmitSumOfSums();
  EmitFinish();
}

void Generator::EmitStart() {
  const PostOps& post = schedule_.workload.post;
  const bool masked = variant_.partial && schedule_.out_layout.is_nhwc();
  const Xmm loaded = Vector(plan_.first_input);
  for (int row = 0; row < variant_.rows; ++row) {
    for (int position = 0; position < positions_; ++position) {
      const Xmm acc = Accumulator(0, row, position);
      for (int64_t sum = 1; sum < schedule_.config.sums; ++sum) Zero(Accumulator(sum, row, position));
      if (post.bias) {
        vmovups(acc, ptr[kBias]);
      } else {
        Zero(acc);
      }
      if (!post.sum) continue;
      const Address residual = OutputAt(kResidual, row, position);
      if (!masked && out_type() == DataType::kF32) {
        vaddps(acc, acc, residual);
        continue;
      }
      LoadStored(out_type(), loaded, residual, masked, Mask());
      vaddps(acc, acc, loaded);
    }
  }
}

void Generator::EmitRows(const TileRun& tile) {
  const std::vector<InputColumn> columns = InputColumnsOf(schedule_.workload, tile);
  const std::vector<InputRow> rows = InputRowsOf(schedule_.workload, variant_.rows);
  for (int64_t spread = 0; spread < schedule_.spreads(); ++spread) {
    if (schedule_.spread == Spread::kIndex) EmitIndex(spread);
    int64_t offset = 0;
    mov(kSourceNow, kSource);
    for (int64_t block = spread * schedule_.GroupBlocks() / schedule_.spreads(); block > 0; --block)
      add(kSourceNow, kBlockShift);
    for (size_t i = 0; i < rows.size(); ++i) {
      Xbyak::Label outside;
      if (rows[i].offset > offset)
        add(kSourceNow, Offset((rows[i].offset - offset) * schedule_.in.row_bytes));
      offset = rows[i].offset;
      bt(kRowsInside, static_cast<uint8_t>(i));
      jnc(outside, T_NEAR);
      schedule_.config.hold == Hold::kInputs ? EmitWeightByWeight(rows[i], columns, spread)
                                             : EmitInputByInput(rows[i], columns, spread);
      L(outside);
    }
  }
}

void Generator::EmitInputByInput(const InputRow& row, const std::vector<InputColumn>& columns,
                                 int64_t spread) {
  const auto kernel_columns = static_cast<int>(schedule_.workload.kw);
  const auto sums = static_cast<int>(schedule_.config.sums);
  const int of_tap = sums * kernel_columns;
  const auto weight = [&](int i) {
    return Weight(row.taps[i / of_tap].kernel_row, spread * sums + i / kernel_columns % sums,
                  i % kernel_columns);
  };
  const bool held = schedule_.config.hold == Hold::kWeights;
  const int weights = static_cast<int>(row.taps.size()) * of_tap;
  for (int i = 0; i < weights && held; ++i) vmovups(Vector(plan_.first_weight + i), weight(i));
  for (const InputColumn& column : columns) {
    const Xmm input = Vector(plan_.first_input + next_input_);
    next_input_ = (next_input_ + 1) % plan_.inputs;
    EmitInput(input, column.offset - schedule_.workload.pw, spread);
    for (int first = 0; first < weights; first += kernel_columns) {
      for (const InputColumn::Tap& tap : column.taps) {
        const Xmm acc =
            Accumulator(first / kernel_columns % sums, row.taps[first / of_tap].output_row, tap.position);
        const int i = first + tap.kernel_column;
        held ? Multiply(acc, input, Vector(plan_.first_weight + i)) : Multiply(acc, input, weight(i));
      }
    }
  }
}

void Generator::EmitWeightByWeight(const InputRow& row, const std::vector<InputColumn>& columns,
                                   int64_t spread) {
  for (size_t i = 0; i < columns.size(); ++i) {
    EmitInput(Vector(plan_.first_input + static_cast<int>(i)), columns[i].offset - schedule_.workload.pw,
              spread);
  }
  const auto multiply = [&](const InputRow::Tap& row_tap, int kernel_column, int64_t sum) {
    const Xmm weight = Vector(plan_.first_weight + next_weight_);
    next_weight_ = (next_weight_ + 1) % plan_.weights;
    vmovups(weight, Weight(row_tap.kernel_row, spread * schedule_.config.sums + sum, kernel_column));
    for (size_t i = 0; i < columns.size(); ++i) {
      for (const InputColumn::Tap& tap : columns[i].taps) {
        if (tap.kernel_column != kernel_column) continue;
        Multiply(Accumulator(sum, row_tap.output_row, tap.position),
                 Vector(plan_.first_input + static_cast<int>(i)), weight);
      }
    }
  };
  for (const InputRow::Tap& tap : row.taps) {
    for (int column = 0; column < schedule_.workload.kw; ++column) {
      for (int64_t sum = 0; sum < schedule_.config.sums; ++sum) multiply(tap, column, sum);
    }
  }
}

void Generator::Multiply(const Xmm& sums, const Xmm& input, const Xbyak::Operand& weights) {
  schedule_.config.pairs ? vdpbf16ps(sums, input, weights) : vfmadd231ps(sums, input, weights);
}

void Generator::EmitIndex(int64_t spread) {
  const int64_t terms = schedule_.terms();
  std::vector<uint32_t> index(vector_floats());
  for (int lane = 0; lane < vector_floats(); ++lane) {
    const int64_t term = schedule_.config.sums > 1 ? (lane ^ spread) % terms : spread;
    index[lane] = static_cast<uint32_t>(lane / schedule_.channels * terms + term);
  }
  vmovups(Vector(plan_.index), Constant(index));
}

void Generator::EmitInput(const Xmm& to, int64_t column, int64_t spread) {
  const int64_t pixel = column * schedule_.in.pixel_bytes;
  if (schedule_.spread == Spread::kBroadcast) {
    const int64_t channel = spread * schedule_.step_channels();
    return vbroadcastss(to, ptr[kSourceNow + Offset(pixel + schedule_.in.ChannelOffset(channel))]);
  }
  const Address from = ptr[kSourceNow + Offset(pixel)];
  const bool masked = variant_.partial && schedule_.in_layout.is_nhwc();
  if (schedule_.config.pairs) {
    const Xbyak::Ymm pairs(to.getIdx());
    masked ? vmovdqu16(pairs | k1 | T_z, from) : vmovdqu16(pairs, from);
    return vpermd(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(plan_.index), Xbyak::Zmm(to.getIdx()));
  }
  const bool loads = masked || in_type() != DataType::kF32;
  if (loads) LoadStored(in_type(), to, from, masked, Mask());
  const Xbyak::Operand& packed = loads ? static_cast<const Xbyak::Operand&>(to) : from;
  constexpr int kPairPattern[] = {0xA0, 0xF5};
  switch (schedule_.spread) {
    case Spread::kPairs:
      return vpermilps(to, packed, static_cast<uint8_t>(kPairPattern[spread]));
    case Spread::kQuads:
      return vpermilps(to, packed, static_cast<uint8_t>(spread * 0x55));
    case Spread::kIndex:
      return vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(plan_.index), packed);
    case Spread::kSwaps:
      if (spread > 0) return vpermilps(to, packed, kSwapPattern[spread]);
      if (!loads) vmovups(to, from);
      return;
    case Spread::kBroadcast:
      break;
  }
}

// Halves the sums until one is left: sum t takes in that of t ^ distance, whose lanes lie that far off.
void Generator::EmitSumOfSums() {
  for (int64_t half = schedule_.config.sums / 2; half > 0; half /= 2) {
    const auto distance = static_cast<int>(half * schedule_.spreads());
    for (int64_t sum = 0; sum < half; ++sum) {
      for (int row = 0; row < variant_.rows; ++row) {
        for (int position = 0; position < positions_; ++position) {
          const Xmm acc = Accumulator(sum, row, position), other = Accumulator(sum + half, row, position);
          SwapLanes(other, distance);
          vaddps(acc, acc, other);
        }
      }
    }
  }
}

void Generator::EmitFinish() {
  const Activation& activation = schedule_.workload.post.activation;
  const bool masked = variant_.partial && schedule_.out_layout.is_nhwc();
  const bool clears = variant_.partial && !masked && activation.Apply(0.0F) != 0.0F;
  for (int row = 0; row < variant_.rows; ++row) {
    for (int position = 0; position < positions_; ++position) {
      const Xmm acc = Accumulator(0, row, position);
      Apply(activation, acc, Vector(plan_.first_input));
      if (clears) ClearLanesFrom(schedule_.partial_lanes, acc);
      StoreAs(out_type(), OutputAt(kOutput, row, position), acc, masked, Mask(), Vector(plan_.first_input));
    }
  }
}

size_t PackedBytes(const Schedule& g) {
  return static_cast<size_t>(g.vectors * g.weights_per_vector()) * sizeof(float);
}

// For every output vector: by kernel row, term, kernel column, lane. Lanes past the last channel are zero;
// pairs are of bf16, the first channel's lower.
AlignedBuffer PackWeights(const Schedule& g, const float* weights) {
  const ConvWorkload& w = g.workload;
  AlignedBuffer packed(PackedBytes(g));
  for (int64_t output = 0; output < w.oc; ++output) {
    float* vector = packed.floats() + output / g.vector_floats * g.weights_per_vector();
    for (int64_t channel = 0; channel < g.channels; ++channel) {
      const int64_t step = g.step_channels();
      const Term term = TermOf(g.terms(), g.config.sums, output % g.vector_floats, channel / step);
      for (int64_t row = 0; row < w.kh; ++row) {
        for (int64_t column = 0; column < w.kw; ++column) {
          const float weight = weights[((output * g.channels + channel) * w.kh + row) * w.kw + column];
          float& lane = vector[g.WeightOffset(row, term.index, column) + term.lane];
          if (g.config.pairs) {
            reinterpret_cast<uint16_t*>(&lane)[channel % step] = Bf16Bits(weight);
          } else {
            lane = weight;
          }
        }
      }
    }
  }
  return packed;
}

struct Task {
  int64_t image, vector, row_block;
};

class GroupedKernel : public ConvKernel {
 public:
  GroupedKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights)
      : schedule_(std::move(schedule)),
        weights_(DataPart(weights.parts, PackedBytes(schedule_),
                          [&] { return PackWeights(schedule_, weights.weights); })),
        bias_(FloatsPart(weights.parts, weights.bias, schedule_.workload.oc,
                         schedule_.vectors * schedule_.vector_floats)),
        input_rows_(InputRowsOf(schedule_.workload, schedule_.config.tile_rows)),
        last_input_rows_(InputRowsOf(schedule_.workload, schedule_.last_rows())) {
    const bool partial = schedule_.partial_lanes > 0;
    std::vector<KernelVariant> variants;
    for (const int64_t rows : {schedule_.config.tile_rows, schedule_.last_rows()}) {
      if (rows == 0) continue;
      if (schedule_.vectors > (partial ? 1 : 0)) variants.push_back({rows, false});
      if (partial) variants.push_back({rows, true});
    }
    code_ = NextCode(weights.parts, [&](std::vector<size_t>& starts) {
      constexpr int64_t kFixedBytes = 4096;  // prologues, constants, loops
      auto code = std::make_unique<Generator>(
          schedule_, CpuOfLanes(cpu), variants.size() * (2 * EstimateCodeBytes(schedule_) + kFixedBytes));
      for (const KernelVariant& variant : variants) starts.push_back(code->Emit(variant));
      code->Finish();
      return code;
    });
    for (size_t i = 0; i < variants.size(); ++i) {
      const bool whole = variants[i].rows == schedule_.config.tile_rows;
      kernels_[whole ? 0 : 1][variants[i].partial ? 1 : 0] = code_.Get<TileKernel>(i);
    }
  }

  int64_t Tasks(int) const override { return Grid(0).tasks(); }
  TaskGrid Grid(int) const override { return GridOf(schedule_); }
  bool ShiftsBlocks() const override { return true; }

  void Run(const KernelArgs& args, int, TaskRange range) const override {
    for (int64_t task = range.begin; task < range.end; ++task) RunTask(args, Locate(task));
  }

  std::vector<CodeBlob> Code() const override {
    return {{"grouped " + WorkloadToString(schedule_.workload), code_.bytes()}};
  }
  std::span<const std::byte> PackedWeights() const override { return weights_.bytes(); }

 private:
  // Vectors of 8 on AVX-512 are AVX2's.
  Target CpuOfLanes(const Target& cpu) const {
    return schedule_.vector_floats < cpu.vector_floats() ? CapIsa(cpu, Isa::kAvx2) : cpu;
  }

  Task Locate(int64_t task) const {
    const int64_t vectors = schedule_.vectors, row_blocks = schedule_.row_blocks();
    if (schedule_.config.oc_inner)
      return {task / vectors / row_blocks, task % vectors, task / vectors % row_blocks};
    return {task / row_blocks / vectors, task / row_blocks % vectors, task % row_blocks};
  }

  void RunTask(const KernelArgs& args, const Task& task) const {
    const ConvWorkload& w = schedule_.workload;
    const int64_t first_row = task.row_block * schedule_.rows_per_task();
    const int64_t end_row = std::min(w.oh, first_row + schedule_.rows_per_task());
    const bool last_vector = task.vector + 1 == schedule_.vectors;
    const bool partial = last_vector && schedule_.partial_lanes > 0;
    const InputView& input = args.inputs[0];
    const float* source =
        BytesPast(input.image<float>(task.image),
                  schedule_.in.ChannelOffset(schedule_.FirstInput(task.vector), input.block_shift));
    const auto offset_in = [&](const auto& view) {
      return schedule_.out.ChannelOffset(task.vector * schedule_.vector_floats, view.block_shift);
    };
    float* output = BytesPast(args.output.image<float>(task.image), offset_in(args.output));
    const float* residual = nullptr;
    if (w.post.sum) residual = BytesPast(args.inputs[1].image<float>(task.image), offset_in(args.inputs[1]));

    TileArgs tile;
    tile.block_shift = input.block_shift;
    tile.weights = weights_.floats() + task.vector * schedule_.weights_per_vector();
    tile.bias = bias_.floats() + task.vector * schedule_.vector_floats;
    for (int64_t row = first_row; row < end_row; row += schedule_.config.tile_rows) {
      const bool whole = row + schedule_.config.tile_rows <= w.oh;
      const int64_t top = row * w.sh - w.ph;
      const int64_t out_offset = row * schedule_.out.row_bytes;
      tile.source = BytesPast(source, top * schedule_.in.row_bytes);
      tile.output = BytesPast(output, out_offset);
      if (w.post.sum) tile.residual = BytesPast(residual, out_offset);
      tile.rows_inside = RowsInside(whole ? input_rows_ : last_input_rows_, top, w.ih);
      kernels_[whole ? 0 : 1][partial ? 1 : 0](&tile);
    }
    if (last_vector) ClearPadding(args.output, task.image, first_row, end_row);
  }

  // Vectors that a block has beyond the last channel.
  void ClearPadding(const OutputView& output, int64_t image, int64_t first_row, int64_t end_row) const {
    for (int64_t i = 0; i < schedule_.zero_vectors; ++i) {
      const int64_t channel = (schedule_.vectors + i) * schedule_.vector_floats;
      const int64_t first =
          schedule_.out.ChannelOffset(channel, output.block_shift) + first_row * schedule_.out.row_bytes;
      for (int64_t pixel = 0; pixel < (end_row - first_row) * schedule_.workload.ow; ++pixel) {
        std::memset(BytesPast(output.image<float>(image), first + pixel * schedule_.out.pixel_bytes), 0,
                    static_cast<size_t>(schedule_.vector_floats * schedule_.out.element_bytes));
      }
    }
  }

  Schedule schedule_;
  SharedBuffer weights_, bias_;
  std::vector<InputRow> input_rows_, last_input_rows_;  // of a whole tile, and of one cut off by the bottom
  GeneratedCode code_;
  TileKernel kernels_[2][2] = {};  // [cut off by the bottom][partial vector]
};

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(Schedule schedule, const Target& cpu, const ConvWeights& weights) {
  return std::make_unique<GroupedKernel>(std::move(schedule), cpu, weights);
}

}  // namespace tilesmith::grouped
