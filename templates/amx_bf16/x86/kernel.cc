#include "templates/amx/x86/strip_code.h"
#include "templates/amx/x86/strip_kernel.h"
#include "templates/amx_bf16/config.h"
#include "templates/amx_bf16/copied_input.h"
#include "templates/base/window_plan.h"

namespace tilesmith::amx_bf16 {
namespace {

using x86::Offset;
using Xbyak::Xmm;

constexpr int kMaxPixels = 4;

// Strips whose products are of bf16.
class Bf16StripCode final : public amx::StripCode {
 public:
  Bf16StripCode(const Schedule& schedule, const Target& cpu);

 private:
  void EmitProduct(const Xbyak::Tmm& sums, const Xbyak::Tmm& windows, const Xbyak::Tmm& weights) override;
  void EmitConstantsOf(const Vectors& vectors) override;
  void EmitPixels(const Vectors& vectors, int count) override;
  // Two vectors are stored as one.
  bool Together(const Vectors& vectors) const;
};

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

}  // namespace

std::unique_ptr<ConvKernel> BuildKernel(const Schedule& schedule, const Target& cpu,
                                        const ConvWeights& weights) {
  const WindowPlan& plan = schedule.plan;
  amx::StripParts parts{.name = "amx_bf16", .code = {}, .copy = nullptr, .parameters = {}};
  parts.code = amx::StripFunctions(schedule, weights.parts,
                                   [&] { return std::make_unique<Bf16StripCode>(schedule, cpu); });
  if (!schedule.as_it_is) parts.copy = std::make_unique<CopiedInput>(schedule, cpu, weights);
  const auto pack = [&](const PackedParameters::Memory& to) {
    const int64_t numbers = BlockWeightNumbers(plan), terms = plan.group_in * plan.conv.kh * plan.conv.kw;
    for (int64_t o = 0; o < plan.conv.oc; ++o) {
      const BlockLane at = BlockLaneOf(plan, o);
      auto* const packed = reinterpret_cast<uint16_t*>(to.weights) + at.block * numbers;
      PackWindowWeights(plan, weights.weights + o * terms, packed + at.lane * plan.word, Bf16Bits);
      if (weights.bias != nullptr) to.bias_floats()[at.block * plan.lanes + at.lane] = weights.bias[o];
    }
  };
  parts.parameters = PackedParameters(weights.parts, amx::ParameterSizes(plan, false), pack);
  return amx::MakeStripKernel(schedule, std::move(parts));
}

}  // namespace tilesmith::amx_bf16
