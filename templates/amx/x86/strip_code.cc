#include "templates/amx/x86/strip_code.h"

#include <algorithm>
#include <set>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"
#include "templates/x86/tile_unit.h"

namespace tilesmith::amx {
namespace {

using x86::Offset;
using Xbyak::Reg64;
using Xbyak::Tmm;

constexpr size_t kBufferBytes = 64 << 10;
constexpr int64_t kCacheLine = 64, kWordBytes = 4;
constexpr int64_t kStepsAhead = 8;  // of weights that are fetched

// rbx, rbp, r12-r15 are the caller's.
const Reg64 kWindows(Xbyak::Operand::RSI);
const Reg64 kLowerWindows(Xbyak::Operand::RDX);
const Reg64 kWeights(Xbyak::Operand::RCX);
const Reg64 kStep(Xbyak::Operand::R8);
const Reg64 kStepsLeft(Xbyak::Operand::R9);
const Reg64 kWindowPitch(Xbyak::Operand::R10);
const Reg64 kWeightPitch(Xbyak::Operand::R11);
const Reg64 kPixelsLeft(Xbyak::Operand::R12);

Tmm SumTmm(int row, int vector) { return Tmm(row * 2 + vector); }
Tmm WindowTmm(int row) { return Tmm(kFirstWindowTile + row); }
Tmm WeightTmm(int vector) { return Tmm(kFirstWeightTile + vector); }

}  // namespace

const Reg64 StripCode::kArgs(Xbyak::Operand::RDI);
const Reg64 StripCode::kPlaces(Xbyak::Operand::RBP);
const Reg64 StripCode::kStoredSums(Xbyak::Operand::R13);
const Reg64 StripCode::kOutput(Xbyak::Operand::R14);
const Reg64 StripCode::kResidual(Xbyak::Operand::R15);
const Reg64 StripCode::kAddress(Xbyak::Operand::RAX);
const Reg64 StripCode::kOther(Xbyak::Operand::RBX);

StripCode::StripCode(const Schedule& schedule, const Target& cpu, int max_pixels)
    : VectorCode(cpu, kBufferBytes + StepsOf(schedule).offsets.size() * sizeof(int32_t)),
      schedule_(schedule),
      steps_(StepsOf(schedule)),
      max_pixels_(max_pixels) {}

void StripCode::EmitAll() {
  for (const int64_t channels : StripFunctions::BlockChannels(schedule_.plan)) {
    const Vectors vectors = VectorsOf(channels);
    for (int tiles = 0; tiles < StripFunctions::kTileCounts; ++tiles) {
      align(64);
      starts_.push_back(getSize());
      Emit(vectors, tiles);
    }
  }
  EmitConstants();
  align(sizeof(int32_t));
  L(step_offsets_);
  for (const int32_t offset : steps_.offsets) dd(static_cast<uint32_t>(offset));
}

std::vector<int64_t> StripFunctions::BlockChannels(const WindowPlan& plan) {
  std::set<int64_t> counts;
  for (int64_t block = 0; block < plan.blocks; ++block)
    counts.insert(std::min(plan.lanes, plan.group_out - block * plan.lanes));
  return {counts.begin(), counts.end()};
}

StripFunctions::Function StripFunctions::Find(int64_t channels, int64_t tiles) const {
  const auto found = std::ranges::find(channels_, channels);
  TILESMITH_CHECK(found != channels_.end(), "{} channels, {} tiles", channels, tiles);
  return code_.Get<Function>((found - channels_.begin()) * kTileCounts + tiles);
}

// Blocks of the layout begin where blocks of the template do, or inside of them.
StripCode::Vectors StripCode::VectorsOf(int64_t channels) const {
  const ConvWorkload& w = schedule_.workload;
  const Layout& out = schedule_.out;
  const ImageStrides strides(out, w.oc, w.oh, w.ow);
  const int64_t vector = vector_floats();
  const int64_t written =
      out.is_nhwc() ? channels : std::min(RoundUp(channels, strides.block), schedule_.plan.lanes);
  Vectors vectors{.channels = channels, .real = {}, .offsets = {}};
  for (int64_t first = 0; first < written; first += vector) {
    vectors.real.push_back(static_cast<int>(std::clamp<int64_t>(channels - first, 0, vector)));
    vectors.offsets.push_back(out.is_nhwc() ? first * strides.element_bytes : strides.ChannelOffset(first));
  }
  vectors.adjacent = vectors.offsets.size() == 2 && vectors.offsets[1] == vector * strides.element_bytes;
  return vectors;
}

void StripCode::Emit(const Vectors& vectors, int tiles) {
  const Reg64 saved[] = {kOther, kPlaces, kPixelsLeft, kStoredSums, kOutput, kResidual};
  const auto argument = [&](const Reg64& to, size_t offset) { mov(to, ptr[kArgs + offset]); };
  const int products = vectors.channels > kTileRows ? 2 : 1;  // of each tile of windows
  for (const Reg64& reg : saved) push(reg);
  argument(kPlaces, offsetof(StripArgs, places));
  argument(kPixelsLeft, offsetof(StripArgs, pixels));
  argument(kStoredSums, offsetof(StripArgs, stored_sums));
  argument(kOutput, offsetof(StripArgs, output));
  argument(kResidual, offsetof(StripArgs, residual));
  EmitConstantsOf(vectors);
  if (tiles > 0) {
    EmitStart(tiles, products);
    EmitSteps(vectors, tiles, products);
  }
  EmitEnd(vectors, tiles, products);
  for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
  vzeroupper();
  ret();
}

void StripCode::EmitStart(int tiles, int products) {
  mov(kWeightPitch, schedule_.plan.lanes * kWordBytes);
  mov(kAddress, ptr[kArgs + offsetof(StripArgs, bias)]);
  xor_(kOther, kOther);
  for (int row = 0; row < tiles; ++row)  // all rows of a sum begin as the same one
    for (int v = 0; v < products; ++v)
      tileloadd(SumTmm(row, v), ptr[kAddress + kOther + Offset(v * kCacheLine)]);
  mov(kWindows, ptr[kArgs + offsetof(StripArgs, input)]);
  mov(kLowerWindows, ptr[kArgs + offsetof(StripArgs, lower_input)]);
  add(kLowerWindows, kWindows);
  mov(kWeights, ptr[kArgs + offsetof(StripArgs, weights)]);
  mov(kWindowPitch, steps_.position_bytes);
  lea(kStep, ptr[rip + step_offsets_]);
  mov(kStepsLeft, steps_.offsets.size());
}

// What is stored between steps: few enough instructions for the next step's tiles to be loaded meanwhile, as
// measured.
void StripCode::EmitSteps(const Vectors& vectors, int tiles, int products) {
  const auto steps = static_cast<int64_t>(steps_.offsets.size());
  const auto pixels = static_cast<int>(std::min<int64_t>(CeilDiv(schedule_.plan.pixels, steps), max_pixels_));
  const int64_t step_weights = schedule_.plan.step_words * schedule_.plan.lanes * kWordBytes;
  Xbyak::Label next, none;
  align(32);
  L(next);
  for (int v = 0; v < products; ++v)
    tileloadd(WeightTmm(v), ptr[kWeights + kWeightPitch + Offset(v * kCacheLine)]);
  movsxd(kOther, dword[kStep]);
  for (int row = 0; row < tiles; ++row) {
    lea(kAddress, ptr[(row == 0 ? kWindows : kLowerWindows) + kOther]);
    tileloadd(WindowTmm(row), ptr[kAddress + kWindowPitch]);
    for (int v = 0; v < products; ++v) EmitProduct(SumTmm(row, v), WindowTmm(row), WeightTmm(v));
  }
  EmitPrefetch(tiles);
  cmp(kPixelsLeft, pixels);
  jl(none, T_NEAR);
  EmitAdvance(vectors, pixels);
  L(none);
  add(kWeights, Offset(step_weights));
  add(kStep, sizeof(int32_t));
  dec(kStepsLeft);
  jnz(next, T_NEAR);
}

// Stores what was summed, once products are ready, and what pixels the steps had no room for meanwhile and
// behind.
void StripCode::EmitEnd(const Vectors& vectors, int tiles, int products) {
  Xbyak::Label rest, last, end;
  for (int row = 0; row < tiles; ++row) {
    for (int v = 0; v < products; ++v) {
      Xbyak::Label none;
      cmp(kPixelsLeft, max_pixels_);
      jl(none, T_NEAR);
      EmitAdvance(vectors, max_pixels_);
      L(none);
      mov(kAddress, ptr[kArgs + (row == 0 ? offsetof(StripArgs, sums) : offsetof(StripArgs, lower_sums))]);
      tilestored(ptr[kAddress + kWeightPitch + Offset(v * kCacheLine)], SumTmm(row, v));
    }
  }
  L(rest);
  cmp(kPixelsLeft, max_pixels_);
  jl(last, T_NEAR);
  EmitAdvance(vectors, max_pixels_);
  jmp(rest, T_NEAR);
  L(last);
  test(kPixelsLeft, kPixelsLeft);
  jz(end, T_NEAR);
  EmitAdvance(vectors, 1);
  jmp(last, T_NEAR);
  L(end);
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

void StripCode::EmitAdvance(const Vectors& vectors, int count) {
  EmitPixels(vectors, count);
  add(kPlaces, Offset(count * sizeof(PixelPlace)));
  sub(kPixelsLeft, count);
}

}  // namespace tilesmith::amx
