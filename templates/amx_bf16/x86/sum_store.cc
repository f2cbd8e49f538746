#include "templates/amx_bf16/x86/sum_store.h"

#include <algorithm>
#include <set>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"

namespace tilesmith::amx_bf16 {
namespace {

using x86::Offset;
using Xbyak::Reg64;
using Xbyak::Xmm;

constexpr size_t kBufferBytes = 16 << 10;
constexpr int kPixelsAtOnce = 4;

// All of these are the callee's to change.
const Reg64 kArgs(Xbyak::Operand::RDI);
const Reg64 kSums(Xbyak::Operand::RSI);
const Reg64 kOutput(Xbyak::Operand::RDX);
const Reg64 kResidual(Xbyak::Operand::RCX);
const Reg64 kPixelsLeft(Xbyak::Operand::R8);

}  // namespace

// The vectors of a block that the output has room for.
struct SumStore::Vectors {
  std::vector<int> real;        // lanes of each
  std::vector<int64_t> offsets;  // bytes, of each from the first
  int64_t pixel_bytes = 0;
  int scratch = 0;  // registers from here on hold no sums
};

SumStore::SumStore(const Schedule& schedule, const Target& cpu)
    : VectorCode(cpu, kBufferBytes), schedule_(schedule) {
  const WindowPlan& plan = schedule.plan;
  std::set<int64_t> counts;
  for (int64_t block = 0; block < plan.blocks; ++block)
    counts.insert(std::min(plan.lanes, plan.group_out - block * plan.lanes));
  for (const int64_t channels : counts) {
    align(64);
    starts_.emplace_back(channels, getSize());
    Emit(channels);
  }
  EmitConstants();
  ready();
}

StoreSums SumStore::Find(int64_t channels) const {
  const auto found = std::ranges::find(starts_, channels, &std::pair<int64_t, size_t>::first);
  TILESMITH_CHECK(found != starts_.end(), "{} channels", channels);
  return reinterpret_cast<StoreSums>(const_cast<uint8_t*>(getCode()) + found->second);
}

void SumStore::Emit(int64_t channels) {
  const ConvWorkload& w = schedule_.workload;
  const ImageStrides strides(schedule_.out, w.oc, w.oh, w.ow);
  Vectors vectors;
  vectors.pixel_bytes = strides.pixel_bytes;
  const int64_t vector = vector_floats();
  // Blocks of the layout begin where blocks of the template do, or inside of them.
  const int64_t written = schedule_.out.is_nhwc() ? channels : RoundUp(channels, strides.block);
  for (int64_t first = 0; first < std::min(written, schedule_.plan.lanes); first += vector) {
    vectors.real.push_back(static_cast<int>(std::clamp<int64_t>(channels - first, 0, vector)));
    vectors.offsets.push_back(schedule_.out.is_nhwc() ? first * strides.element_bytes
                                                      : strides.ChannelOffset(first));
  }
  vectors.scratch = kPixelsAtOnce * static_cast<int>(vectors.real.size());
  mov(kSums, ptr[kArgs + offsetof(StoreArgs, sums)]);
  mov(kOutput, ptr[kArgs + offsetof(StoreArgs, output)]);
  mov(kResidual, ptr[kArgs + offsetof(StoreArgs, residual)]);
  mov(kPixelsLeft, ptr[kArgs + offsetof(StoreArgs, pixels)]);
  if (channels % vector != 0) LoadMask(static_cast<int>(channels % vector), Vector(0));
  const int held = vectors.scratch + 1;
  HoldConstants(w.post.activation, held, registers() - held);
  Xbyak::Label many, one, end;
  L(many);
  cmp(kPixelsLeft, kPixelsAtOnce);
  jl(one, T_NEAR);
  EmitPixels(vectors, kPixelsAtOnce);
  jmp(many, T_NEAR);
  L(one);
  test(kPixelsLeft, kPixelsLeft);
  jz(end, T_NEAR);
  EmitPixels(vectors, 1);
  jmp(one, T_NEAR);
  L(end);
  vzeroupper();
  ret();
}

void SumStore::EmitPixels(const Vectors& vectors, int count) {
  const Activation& activation = schedule_.workload.post.activation;
  const DataType type = schedule_.out.type();
  const bool sum = schedule_.workload.post.sum, nhwc = schedule_.out.is_nhwc();
  const Xmm scratch = Vector(vectors.scratch);
  const int64_t sums_pitch = schedule_.plan.lanes * kFloatBytes;
  const auto size = static_cast<int>(vectors.real.size());
  for (int pixel = 0; pixel < count; ++pixel) {
    for (int v = 0; v < size; ++v) {
      const Xmm acc = Vector(pixel * size + v);
      const bool partial = vectors.real[v] < vector_floats();
      const int64_t at = pixel * vectors.pixel_bytes + vectors.offsets[v];
      vmovups(acc, ptr[kSums + Offset(pixel * sums_pitch + v * vector_bytes())]);
      if (sum) {
        LoadStored(type, scratch, ptr[kResidual + Offset(at)], partial && nhwc, scratch);
        vaddps(acc, acc, scratch);
      }
      Apply(activation, acc, scratch);
      if (partial && !nhwc) ClearLanesFrom(vectors.real[v], acc);
      StoreAs(type, ptr[kOutput + Offset(at)], acc, partial && nhwc, scratch);
    }
  }
  add(kSums, Offset(count * sums_pitch));
  add(kOutput, Offset(count * vectors.pixel_bytes));
  if (sum) add(kResidual, Offset(count * vectors.pixel_bytes));
  sub(kPixelsLeft, count);
}

}  // namespace tilesmith::amx_bf16
