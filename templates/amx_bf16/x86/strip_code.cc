#include "templates/amx_bf16/x86/strip_code.h"

#include <algorithm>
#include <set>

#include "layouts/base/check.h"
#include "ops/kernels/tile_products.h"
#include "templates/base/image_strides.h"

namespace tilesmith::amx_bf16 {
namespace {

using x86::Offset;
using Xbyak::Reg64;
using Xbyak::Tmm;
using Xbyak::Xmm;

constexpr size_t kBufferBytes = 64 << 10;
constexpr int64_t kCacheLine = 64, kWordBytes = 4;
constexpr int64_t kStepsAhead = 8;  // of weights that are fetched

// General registers by purpose. The only argument arrives in rdi; rbx, rbp, r12-r15 are the caller's.
const Reg64 kArgs(Xbyak::Operand::RDI);
const Reg64 kWindows(Xbyak::Operand::RSI);
const Reg64 kLowerWindows(Xbyak::Operand::RDX);
const Reg64 kWeights(Xbyak::Operand::RCX);
const Reg64 kStep(Xbyak::Operand::R8);
const Reg64 kStepsLeft(Xbyak::Operand::R9);
const Reg64 kWindowPitch(Xbyak::Operand::R10);
const Reg64 kWeightPitch(Xbyak::Operand::R11);
const Reg64 kPlaces(Xbyak::Operand::RBP);
const Reg64 kPixelsLeft(Xbyak::Operand::R12);
const Reg64 kStoredSums(Xbyak::Operand::R13);
const Reg64 kOutput(Xbyak::Operand::R14);
const Reg64 kResidual(Xbyak::Operand::R15);
const Reg64 kAddress(Xbyak::Operand::RAX);
const Reg64 kOther(Xbyak::Operand::RBX);
const Reg64 kSaved[] = {kOther, kPlaces, kPixelsLeft, kStoredSums, kOutput, kResidual};

Tmm SumTile(int row, int vector) { return Tmm(row * 2 + vector); }
Tmm WindowTile(int row) { return Tmm(kFirstWindowTile + row); }
Tmm WeightTile(int vector) { return Tmm(kFirstWeightTile + vector); }

}  // namespace

StripCode::StripCode(const Schedule& schedule, const WindowSteps& steps, const Target& cpu)
    : VectorCode(cpu, kBufferBytes), schedule_(schedule), steps_(steps) {
  const WindowPlan& plan = schedule.plan;
  std::set<int64_t> counts;
  for (int64_t block = 0; block < plan.blocks; ++block)
    counts.insert(std::min(plan.lanes, plan.group_out - block * plan.lanes));
  for (const int64_t channels : counts) {
    const Vectors vectors = VectorsOf(channels);
    for (const int tiles : {0, 1, 2}) {
      align(64);
      starts_[{channels, tiles}] = getSize();
      Emit(vectors, channels, tiles);
    }
  }
  EmitConstants();
}

StripCode::Function StripCode::Find(int64_t channels, int64_t tiles) const {
  const auto found = starts_.find({channels, tiles});
  TILESMITH_CHECK(found != starts_.end(), "{} channels, {} tiles", channels, tiles);
  return reinterpret_cast<Function>(const_cast<uint8_t*>(getCode()) + found->second);
}

// Blocks of the layout begin where blocks of the template do, or inside of them.
StripCode::Vectors StripCode::VectorsOf(int64_t channels) const {
  const ConvWorkload& w = schedule_.workload;
  const Layout& out = schedule_.out;
  const ImageStrides strides(out, w.oc, w.oh, w.ow);
  const int64_t vector = vector_floats();
  const int64_t written =
      out.is_nhwc() ? channels : std::min(RoundUp(channels, strides.block), schedule_.plan.lanes);
  Vectors vectors;
  for (int64_t first = 0; first < written; first += vector) {
    vectors.real.push_back(static_cast<int>(std::clamp<int64_t>(channels - first, 0, vector)));
    vectors.offsets.push_back(out.is_nhwc() ? first * strides.element_bytes : strides.ChannelOffset(first));
  }
  vectors.together = out.type() == DataType::kBf16 && vectors.offsets.size() == 2 &&
                     vectors.offsets[1] == vector * strides.element_bytes &&
                     (!out.is_nhwc() || vectors.real[1] == vector);
  return vectors;
}

void StripCode::Emit(const Vectors& vectors, int64_t channels, int tiles) {
  const Activation& activation = schedule_.workload.post.activation;
  const auto argument = [&](const Reg64& to, size_t offset) { mov(to, ptr[kArgs + offset]); };
  const int products = channels > kTileRows ? 2 : 1;  // of each tile of windows
  for (const Reg64& reg : kSaved) push(reg);
  argument(kPlaces, offsetof(StripArgs, places));
  argument(kPixelsLeft, offsetof(StripArgs, pixels));
  argument(kStoredSums, offsetof(StripArgs, stored_sums));
  argument(kOutput, offsetof(StripArgs, output));
  argument(kResidual, offsetof(StripArgs, residual));
  if (channels % vector_floats() != 0) LoadMask(static_cast<int>(channels % vector_floats()), Vector(0));
  constexpr int kHeld = 20;  // behind what pixels use
  HoldConstants(activation, kHeld, registers() - kHeld);
  if (tiles > 0) EmitSteps(vectors, tiles, products);
  Xbyak::Label rest, end;
  L(rest);
  test(kPixelsLeft, kPixelsLeft);
  jz(end, T_NEAR);
  EmitPixels(vectors, 1);
  jmp(rest, T_NEAR);
  L(end);
  for (int row = 0; row < tiles; ++row) {
    argument(kAddress, row == 0 ? offsetof(StripArgs, sums) : offsetof(StripArgs, lower_sums));
    for (int v = 0; v < products; ++v)
      tilestored(ptr[kAddress + kWeightPitch + Offset(v * kCacheLine)], SumTile(row, v));
  }
  for (size_t i = std::size(kSaved); i-- > 0;) pop(kSaved[i]);
  vzeroupper();
  ret();
}

// What is stored between steps: few enough instructions for the next step's tiles to be loaded meanwhile, as
// measured.
void StripCode::EmitSteps(const Vectors& vectors, int tiles, int products) {
  constexpr int64_t kMaxPixels = 4;
  const auto steps = static_cast<int64_t>(steps_.offsets.size());
  const auto pixels = static_cast<int>(std::min(CeilDiv(schedule_.plan.pixels, steps), kMaxPixels));
  const int64_t step_weights = schedule_.plan.step_words * schedule_.plan.lanes * kWordBytes;
  mov(kWeightPitch, schedule_.plan.lanes * kWordBytes);
  mov(kAddress, ptr[kArgs + offsetof(StripArgs, bias)]);
  xor_(kOther, kOther);
  for (int row = 0; row < tiles; ++row)  // all rows of a sum begin as the same one
    for (int v = 0; v < products; ++v)
      tileloadd(SumTile(row, v), ptr[kAddress + kOther + Offset(v * kCacheLine)]);
  mov(kWindows, ptr[kArgs + offsetof(StripArgs, input)]);
  mov(kLowerWindows, ptr[kArgs + offsetof(StripArgs, lower_input)]);
  add(kLowerWindows, kWindows);
  mov(kWeights, ptr[kArgs + offsetof(StripArgs, weights)]);
  mov(kWindowPitch, steps_.position_bytes);
  mov(kStep, reinterpret_cast<uint64_t>(steps_.offsets.data()));
  mov(kStepsLeft, steps);
  Xbyak::Label next, none;
  align(32);
  L(next);
  for (int v = 0; v < products; ++v)
    tileloadd(WeightTile(v), ptr[kWeights + kWeightPitch + Offset(v * kCacheLine)]);
  movsxd(kOther, dword[kStep]);
  for (int row = 0; row < tiles; ++row) {
    lea(kAddress, ptr[(row == 0 ? kWindows : kLowerWindows) + kOther]);
    tileloadd(WindowTile(row), ptr[kAddress + kWindowPitch]);
    for (int v = 0; v < products; ++v) tdpbf16ps(SumTile(row, v), WindowTile(row), WeightTile(v));
  }
  EmitPrefetch(tiles);
  cmp(kPixelsLeft, pixels);
  jl(none, T_NEAR);
  EmitPixels(vectors, pixels);
  L(none);
  add(kWeights, Offset(step_weights));
  add(kStep, sizeof(int32_t));
  dec(kStepsLeft);
  jnz(next, T_NEAR);
}

void StripCode::EmitPrefetch(int tiles) {
  const WindowPlan& plan = schedule_.plan;
  if (schedule_.config.prefetch == Prefetch::kWeights) {
    const int64_t bytes = plan.step_words * plan.lanes * kWordBytes;
    for (int64_t line = 0; line < bytes; line += kCacheLine)
      prefetcht0(ptr[kWeights + Offset(kStepsAhead * bytes + line)]);
  }
  if (schedule_.config.prefetch == Prefetch::kWindows) {
    mov(kAddress, ptr[kArgs + offsetof(StripArgs, next_input)]);
    add(kAddress, kOther);
    for (int64_t i = 0; i < tiles * kTileRows; ++i)
      prefetcht0(ptr[kAddress + Offset(i * steps_.position_bytes)]);
  }
}

void StripCode::EmitPixels(const Vectors& vectors, int count) {
  const Activation& activation = schedule_.workload.post.activation;
  const DataType type = schedule_.out.type();
  const bool sum = schedule_.workload.post.sum, nhwc = schedule_.out.is_nhwc();
  const auto size = static_cast<int>(vectors.real.size());
  const Xmm scratch = Vector(8);
  for (int pixel = 0; pixel < count; ++pixel) {
    movsxd(kAddress, dword[kPlaces + pixel * sizeof(PixelPlace) + offsetof(PixelPlace, sums)]);
    movsxd(kOther, dword[kPlaces + pixel * sizeof(PixelPlace) + offsetof(PixelPlace, output)]);
    for (int v = 0; v < size; ++v) {
      const Xmm acc = Vector(pixel * size + v);
      const bool partial = vectors.real[v] < vector_floats();
      const int at = Offset(vectors.offsets[v]);
      vmovups(acc, ptr[kStoredSums + kAddress + Offset(v * vector_bytes())]);
      if (sum) {
        LoadStored(type, scratch, ptr[kResidual + kOther + at], partial && nhwc, scratch);
        vaddps(acc, acc, scratch);
      }
      Apply(activation, acc, scratch);
      if (partial && !nhwc) ClearLanesFrom(vectors.real[v], acc);
      if (!vectors.together) StoreAs(type, ptr[kOutput + kOther + at], acc, partial && nhwc, scratch);
    }
    if (vectors.together) {
      const Xmm first = Vector(pixel * size);
      vcvtne2ps2bf16(first, Vector(pixel * size + 1), first);
      vmovups(ptr[kOutput + kOther], first);
    }
  }
  add(kPlaces, Offset(count * sizeof(PixelPlace)));
  sub(kPixelsLeft, count);
}

}  // namespace tilesmith::amx_bf16
