#include "templates/amx_bf16/x86/bf16_strip_code.h"

namespace tilesmith::amx_bf16 {
namespace {

constexpr int kMaxPixels = 4;

}  // namespace

using x86::Offset;
using Xbyak::Xmm;

Bf16StripCode::Bf16StripCode(const Schedule& schedule, const Target& cpu)
    : StripCode(schedule, cpu, kMaxPixels) {
  EmitAll();
}

void Bf16StripCode::EmitProduct(const Xbyak::Tmm& sums, const Xbyak::Tmm& windows,
                                const Xbyak::Tmm& weights) {
  tdpbf16ps(sums, windows, weights);
}

bool Bf16StripCode::Together(const Vectors& vectors) const {
  return schedule().out.type() == DataType::kBf16 && vectors.adjacent &&
         (!schedule().out.is_nhwc() || vectors.real[1] == vector_floats());
}

void Bf16StripCode::EmitConstantsOf(const Vectors& vectors) {
  const auto last = static_cast<int>(vectors.channels % vector_floats());
  if (last != 0) LoadMask(last, Vector(0));
  constexpr int kHeld = 20;  // behind what pixels use
  HoldConstants(schedule().workload.post.activation, kHeld, registers() - kHeld);
}

void Bf16StripCode::EmitPixels(const Vectors& vectors, int count) {
  const Activation& activation = schedule().workload.post.activation;
  const DataType type = schedule().out.type();
  const bool sum = schedule().workload.post.sum, nhwc = schedule().out.is_nhwc(),
             together = Together(vectors);
  const auto size = static_cast<int>(vectors.real.size());
  const Xmm scratch = Vector(2 * kMaxPixels);
  for (int pixel = 0; pixel < count; ++pixel) {
    movsxd(kAddress, dword[kPlaces + PlaceOffset(pixel, offsetof(amx::PixelPlace, sums))]);
    movsxd(kOther, dword[kPlaces + PlaceOffset(pixel, offsetof(amx::PixelPlace, output))]);
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
      if (!together) StoreAs(type, ptr[kOutput + kOther + at], acc, partial && nhwc, scratch, scratch);
    }
    if (together) {
      const Xmm first = Vector(pixel * size);
      vcvtne2ps2bf16(first, Vector(pixel * size + 1), first);
      vmovups(ptr[kOutput + kOther], first);
    }
  }
}

}  // namespace tilesmith::amx_bf16
