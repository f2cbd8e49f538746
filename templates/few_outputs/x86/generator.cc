#include "templates/few_outputs/x86/generator.h"

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"

namespace tilesmith::few_outputs {
namespace {

using x86::Offset;
using Xbyak::Address;
using Xbyak::Reg64;
using Xbyak::Xmm;

// General registers by purpose. The only argument arrives in rdi; rbx, r12 and r13 are the caller's.
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
const Reg64 kSaved[] = {Reg64(Xbyak::Operand::RBX), Reg64(Xbyak::Operand::R12)};

}  // namespace

Generator::Generator(const Schedule& schedule, const Target& cpu, size_t buffer_bytes)
    : VectorCode(cpu, buffer_bytes), schedule_(schedule) {}

Address Generator::OutputAt(const Reg64& base, int64_t output, int64_t row, int vector) const {
  return ptr[base + Offset(output * schedule_.out_plane_bytes + row * schedule_.out_row_bytes +
                           vector * vector_bytes())];
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
    for (int64_t row = 0; row < variant_.rows; ++row) {
      for (int vector = 0; vector < vectors_; ++vector) {
        const Xmm acc = Accumulator(output, row, vector);
        if (post.bias) {
          vmovaps(acc, bias);
        } else {
          Zero(acc);
        }
        if (!post.sum) continue;
        const Address residual = OutputAt(kResidual, output, row, vector);
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
  add(kSourceNow, Offset(schedule_.in_plane_bytes));
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
      for (int64_t row = 0; row < variant_.rows; ++row) {
        const Xmm acc = Accumulator(output, row, vector);
        const Address to = OutputAt(kOutput, output, row, vector);
        Apply(activation, acc, Vector(plan_.first_input));
        partial ? StorePartial(to, acc, Mask()) : vmovups(to, acc);
      }
    }
  }
}

}  // namespace tilesmith::few_outputs
