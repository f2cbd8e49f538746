#include "templates/grouped/x86/generator.h"

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/grouped/lane_swaps.h"

namespace tilesmith::grouped {
namespace {

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
}  // namespace

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
  int64_t offset = 0;
  mov(kSourceNow, kSource);
  const std::vector<InputRow> rows = InputRowsOf(schedule_.workload, variant_.rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    Xbyak::Label outside;
    if (rows[i].offset > offset) add(kSourceNow, Offset((rows[i].offset - offset) * schedule_.in.row_bytes));
    offset = rows[i].offset;
    bt(kRowsInside, static_cast<uint8_t>(i));
    jnc(outside, T_NEAR);
    for (int64_t spread = 0; spread < schedule_.spreads(); ++spread) {
      if (schedule_.spread == Spread::kIndex) EmitIndex(spread);
      schedule_.config.hold == Hold::kInputs ? EmitWeightByWeight(rows[i], columns, spread)
                                             : EmitInputByInput(rows[i], columns, spread);
    }
    L(outside);
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

}  // namespace tilesmith::grouped
