#include "templates/grouped/generator.h"

#ifdef TILESMITH_X86

#include "layouts/base/check.h"

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

Generator::Generator(const Geometry& geometry, const CpuInfo& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes), geometry_(geometry) {}

Address Generator::Weight(int kernel_row, int64_t channel, int kernel_column) const {
  const int64_t floats = geometry_.WeightOffset(kernel_row, channel, kernel_column);
  return ptr[kWeights + Offset(floats * static_cast<int64_t>(sizeof(float)))];
}

Address Generator::OutputAt(const Reg64& base, int row, int position) const {
  return ptr[base + Offset(row * geometry_.out.row_bytes + position * geometry_.out.pixel_bytes)];
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
  for (const TileRun& tile : geometry_.tiles) {
    Repeat(tile.count, kTilesLeft, [&] {
      EmitTile(tile);
      add(kSource, Offset(tile.width * geometry_.workload.sw * geometry_.in.pixel_bytes));
      add(kOutput, Offset(tile.width * geometry_.out.pixel_bytes));
      if (geometry_.workload.post.sum) add(kResidual, Offset(tile.width * geometry_.out.pixel_bytes));
    });
  }
  vzeroupper();
  ret();
  return start;
}

void Generator::EmitTile(const TileRun& tile) {
  positions_ = tile.width;
  plan_ = PlanRegisters(geometry_, positions_, variant_.rows);
  TILESMITH_CHECK(plan_.fits);
  next_input_ = 0;
  if (variant_.partial && (geometry_.in_layout.is_nhwc() || geometry_.out_layout.is_nhwc()))
    LoadMask(geometry_.partial_lanes, Mask());
  EmitStart();
  EmitRows(tile);
  EmitFinish();
}

void Generator::EmitStart() {
  const PostOps& post = geometry_.workload.post;
  const bool masked = variant_.partial && geometry_.out_layout.is_nhwc();
  const Xmm loaded = Vector(plan_.first_input);
  for (int row = 0; row < variant_.rows; ++row) {
    for (int position = 0; position < positions_; ++position) {
      const Xmm acc = Accumulator(row, position);
      if (post.bias) {
        vmovups(acc, ptr[kBias]);
      } else {
        Zero(acc);
      }
      if (!post.sum) continue;
      if (masked) {
        LoadPartial(loaded, OutputAt(kResidual, row, position), Mask());
        vaddps(acc, acc, loaded);
      } else {
        vaddps(acc, acc, OutputAt(kResidual, row, position));
      }
    }
  }
}

void Generator::EmitRows(const TileRun& tile) {
  const std::vector<InputColumn> columns = InputColumnsOf(geometry_.workload, tile);
  int64_t offset = 0;
  mov(kSourceNow, kSource);
  const std::vector<InputRow> rows = InputRowsOf(geometry_.workload, variant_.rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    Xbyak::Label outside;
    if (rows[i].offset > offset) add(kSourceNow, Offset((rows[i].offset - offset) * geometry_.in.row_bytes));
    offset = rows[i].offset;
    bt(kRowsInside, static_cast<uint8_t>(i));
    jnc(outside, T_NEAR);
    EmitInputRow(rows[i], columns);
    L(outside);
  }
}

void Generator::EmitInputRow(const InputRow& row, const std::vector<InputColumn>& columns) {
  const auto kernel_columns = static_cast<int>(geometry_.workload.kw);
  const auto taps = static_cast<int>(row.taps.size());
  for (int64_t channel = 0; channel < geometry_.channels; ++channel) {
    for (int i = 0; i < taps * kernel_columns && plan_.weights > 0; ++i) {
      vmovups(Vector(plan_.first_weight + i),
              Weight(row.taps[i / kernel_columns].kernel_row, channel, i % kernel_columns));
    }
    if (geometry_.spread == Spread::kIndex) {
      std::vector<uint32_t> index(vector_floats());
      for (int lane = 0; lane < vector_floats(); ++lane)
        index[lane] = static_cast<uint32_t>(lane / geometry_.channels * geometry_.channels + channel);
      vmovups(Vector(plan_.index), Constant(index));
    }
    for (const InputColumn& column : columns) {
      const Xmm input = Vector(plan_.first_input + next_input_);
      next_input_ = (next_input_ + 1) % plan_.inputs;
      EmitInput(input, column.offset - geometry_.workload.pw, channel);
      for (int i = 0; i < taps; ++i) {
        for (const InputColumn::Tap& tap : column.taps) {
          const Xmm acc = Accumulator(row.taps[i].output_row, tap.position);
          if (plan_.weights > 0) {
            vfmadd231ps(acc, input, Vector(plan_.first_weight + i * kernel_columns + tap.kernel_column));
          } else {
            vfmadd231ps(acc, input, Weight(row.taps[i].kernel_row, channel, tap.kernel_column));
          }
        }
      }
    }
  }
}

void Generator::EmitInput(const Xmm& to, int64_t column, int64_t channel) {
  const int64_t pixel = column * geometry_.in.pixel_bytes;
  if (geometry_.spread == Spread::kBroadcast) {
    return vbroadcastss(to, ptr[kSourceNow + Offset(pixel + geometry_.in.ChannelOffset(channel))]);
  }
  const Address from = ptr[kSourceNow + Offset(pixel)];
  const bool masked = variant_.partial && geometry_.in_layout.is_nhwc();
  if (masked) LoadPartial(to, from, Mask());
  const Xbyak::Operand& packed = masked ? static_cast<const Xbyak::Operand&>(to) : from;
  constexpr int kPairPattern[] = {0xA0, 0xF5};
  switch (geometry_.spread) {
    case Spread::kPairs:
      return vpermilps(to, packed, static_cast<uint8_t>(kPairPattern[channel]));
    case Spread::kQuads:
      return vpermilps(to, packed, static_cast<uint8_t>(channel * 0x55));
    case Spread::kIndex:
      return vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(plan_.index), packed);
    case Spread::kBroadcast:
      break;
  }
}

void Generator::EmitFinish() {
  const Activation& activation = geometry_.workload.post.activation;
  const bool masked = variant_.partial && geometry_.out_layout.is_nhwc();
  const bool clears = variant_.partial && !masked && activation.Apply(0.0F) != 0.0F;
  for (int row = 0; row < variant_.rows; ++row) {
    for (int position = 0; position < positions_; ++position) {
      const Xmm acc = Accumulator(row, position);
      Apply(activation, acc, Vector(plan_.first_input));
      if (masked) {
        StorePartial(OutputAt(kOutput, row, position), acc, Mask());
        continue;
      }
      if (clears) ClearLanesFrom(geometry_.partial_lanes, acc);
      vmovups(OutputAt(kOutput, row, position), acc);
    }
  }
}

}  // namespace tilesmith::grouped

#endif  // TILESMITH_X86
