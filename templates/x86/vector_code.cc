#include "templates/x86/vector_code.h"

#include <bit>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"

namespace tilesmith::x86 {

using Xbyak::Address;
using Xbyak::Xmm;

int Offset(int64_t bytes) {
  TILESMITH_CHECK(bytes >= INT32_MIN && bytes <= INT32_MAX, "{}", bytes);
  return static_cast<int>(bytes);
}

VectorCode::VectorCode(const Target& cpu, size_t buffer_bytes)
    : CodeGenerator(buffer_bytes),
      wide_(cpu.isa == Isa::kAvx512),
      rounds_(cpu.bf16),
      registers_(cpu.vector_registers()),
      vector_bytes_(cpu.vector_floats() * kFloatBytes) {}

Xmm VectorCode::Vector(int index) const {
  if (wide_) return Xbyak::Zmm(index);
  return Xbyak::Ymm(index);
}

void VectorCode::Zero(const Xmm& value) {
  const Xmm low(value.getIdx());
  value.getIdx() > 15 ? vpxord(value, value, value) : vxorps(low, low, low);
}

void VectorCode::SwapLanes(const Xmm& value, int distance) {
  constexpr uint8_t kNeighbours = 0xB1, kPairs = 0x4E;  // of four elements
  if (distance < 4) return vpermilps(value, value, distance == 1 ? kNeighbours : kPairs);
  if (!wide_)
    return vperm2f128(Xbyak::Ymm(value.getIdx()), Xbyak::Ymm(value.getIdx()), Xbyak::Ymm(value.getIdx()), 1);
  const Xbyak::Zmm wide_value(value.getIdx());
  vshuff32x4(wide_value, wide_value, wide_value, distance == 4 ? kNeighbours : kPairs);
}

Address VectorCode::Constant(const std::vector<uint32_t>& pattern) {
  TILESMITH_CHECK(static_cast<int>(pattern.size()) == vector_floats());
  return ptr[rip + constants_[pattern]];
}

Address VectorCode::Splat(float value) {
  return Constant(std::vector<uint32_t>(vector_floats(), std::bit_cast<uint32_t>(value)));
}

Address VectorCode::Lanes(int count) {
  std::vector<uint32_t> pattern(vector_floats(), 0);
  for (int lane = 0; lane < count; ++lane) pattern[lane] = UINT32_MAX;
  return Constant(pattern);
}

void VectorCode::LoadMask(int count, const Xmm& register_for_avx2) {
  masked_lanes_ = count;
  if (!wide_) return vmovups(register_for_avx2, Lanes(count));
  mov(eax, static_cast<uint32_t>((1ULL << count) - 1));
  kmovw(k1, eax);
}

void VectorCode::LoadPartial(const Xmm& to, const Address& from, const Xmm& mask) {
  wide_ ? vmovups(to | k1 | T_z, from) : vmaskmovps(to, mask, from);
}

void VectorCode::StorePartial(const Address& to, const Xmm& from, const Xmm& mask) {
  wide_ ? vmovups(to | k1, from) : vmaskmovps(to, mask, from);
}

void VectorCode::LoadStored(DataType type, const Xmm& to, const Address& from, bool partial,
                            const Xmm& mask) {
  if (type == DataType::kF32) return partial ? LoadPartial(to, from, mask) : vmovups(to, from);
  constexpr uint8_t kHalfFloat = 16;
  if (partial && !wide_) {
    const Xmm words(to.getIdx());
    LoadWords(words, from, masked_lanes_);
    vpmovzxwd(to, words);
  } else {
    partial ? vpmovzxwd(to | k1 | T_z, from) : vpmovzxwd(to, from);
  }
  vpslld(to, to, kHalfFloat);
}

void VectorCode::StoreAs(DataType type, const Address& to, const Xmm& from, bool partial, const Xmm& mask,
                         const Xmm& scratch) {
  if (type == DataType::kF32) return partial ? StorePartial(to, from, mask) : vmovups(to, from);
  if (rounds_) {
    const Xbyak::Ymm narrow(from.getIdx());
    vcvtneps2bf16(narrow, from);
    partial ? vmovdqu16(to | k1, narrow) : vmovdqu16(to, narrow);
    return;
  }
  RoundToWords(scratch, from);
  const Xbyak::Ymm narrow(scratch.getIdx());
  const Xmm low(scratch.getIdx());
  if (wide_) {
    partial ? vmovdqu16(to | k1, narrow) : vmovdqu16(to, narrow);
  } else {
    partial ? StoreWords(to, low, masked_lanes_) : vmovdqu(to, low);
  }
}

// Half of the last place that stays is added, less one bit where the number below it is even: what carries
// over rounds up. Where that would make a NaN something else, all bits are set, which is another NaN.
void VectorCode::RoundToWords(const Xmm& words, const Xmm& from) {
  constexpr uint8_t kHalfFloat = 16, kUnordered = 3, kAllOnes = 0xff, kLowQuadwords = 0x08;
  const auto splat = [&](uint32_t value) { return Constant(std::vector<uint32_t>(vector_floats(), value)); };
  vpsrld(words, from, kHalfFloat);
  wide_ ? vpandd(words, words, splat(1)) : vpand(words, words, splat(1));
  vpaddd(words, words, splat(0x7fff));
  vpaddd(words, words, from);
  if (wide_) {
    vcmpps(k3, from, from, kUnordered);
    vpternlogd(words | k3, words, words, kAllOnes);
    vpsrld(words, words, kHalfFloat);
    vpmovdw(Xbyak::Ymm(words.getIdx()), Xbyak::Zmm(words.getIdx()));
    return;
  }
  vcmpps(from, from, from, kUnordered);
  vorps(words, words, from);
  vpsrld(words, words, kHalfFloat);
  vpackusdw(words, words, words);
  const Xbyak::Ymm all(words.getIdx());
  vpermq(all, all, kLowQuadwords);
}

void VectorCode::LoadWords(const Xmm& to, const Address& from, int count) {
  const auto at = [&](int word) { return ptr[from.getRegExp() + size_t{2} * word]; };
  const int odd = count - 1;
  if (count >= 4) {
    vmovq(to, from);
    if (count & 2) vpinsrd(to, to, at(4), 2);
  } else if (count & 2) {
    vmovd(to, from);
  } else {
    vpxor(to, to, to);
  }
  if (count & 1) vpinsrw(to, to, at(odd), static_cast<uint8_t>(odd));
}

void VectorCode::StoreWords(const Address& to, const Xmm& from, int count) {
  constexpr uint8_t kFourWords = 8, kTwoWords = 4;  // bytes
  int done = 0;
  const auto rest = [&] { return ptr[to.getRegExp() + size_t{2} * done]; };
  if (count & 4) {
    vmovq(rest(), from);
    vpsrldq(from, from, kFourWords);
    done += 4;
  }
  if (count & 2) {
    vmovd(rest(), from);
    vpsrldq(from, from, kTwoWords);
    done += 2;
  }
  if (count & 1) vpextrw(rest(), from, 0);
}

void VectorCode::ClearLanesFrom(int count, const Xmm& value) {
  wide_ ? vpandd(value, value, Lanes(count)) : vandps(value, value, Lanes(count));
}

void VectorCode::HoldConstants(const Activation& activation, int first, int count) {
  held_.clear();
  std::vector<float> constants;
  if (activation.kind == ActivationKind::kRelu) constants = {0.0F};
  if (activation.kind == ActivationKind::kClip) constants = {activation.alpha, activation.beta};
  if (static_cast<int>(constants.size()) > count) return;
  for (const float value : constants) {
    const Xmm to = Vector(first + static_cast<int>(held_.size()));
    std::bit_cast<uint32_t>(value) == 0 ? Zero(to) : vmovups(to, Splat(value));
    held_.emplace_back(value, to);
  }
}

Xmm VectorCode::InRegister(float value, const Xmm& scratch) {
  for (const auto& [constant, held] : held_) {
    if (std::bit_cast<uint32_t>(constant) == std::bit_cast<uint32_t>(value)) return held;
  }
  std::bit_cast<uint32_t>(value) == 0 ? Zero(scratch) : vmovups(scratch, Splat(value));
  return scratch;
}

// Maximum and minimum return their last operand when either is NaN, so the bound stands before the value.
void VectorCode::Apply(const Activation& activation, const Xmm& value, const Xmm& scratch) {
  const auto at_least = [&](float low) { vmaxps(value, InRegister(low, scratch), value); };
  const auto at_most = [&](float high) { vminps(value, InRegister(high, scratch), value); };
  switch (activation.kind) {
    case ActivationKind::kNone:
      return;
    case ActivationKind::kRelu:
      at_least(0.0F);
      return;
    case ActivationKind::kClip:
      at_least(activation.alpha);
      at_most(activation.beta);
      return;
    case ActivationKind::kLeakyRelu:
      vmulps(scratch, value, Splat(activation.alpha));
      activation.alpha <= 1 ? vmaxps(value, value, scratch) : vminps(value, value, scratch);
      return;
    case ActivationKind::kHardSigmoid:
      vmovups(scratch, Splat(activation.alpha));
      vfmadd213ps(value, scratch, Splat(activation.beta));
      at_least(0.0F);
      at_most(1.0F);
      return;
    case ActivationKind::kHardSwish:  // a NaN comes back with the last product
      vmovups(scratch, Splat(1.0F / 6.0F));
      vfmadd213ps(scratch, value, Splat(0.5F));
      vmaxps(scratch, scratch, Splat(0.0F));
      vminps(scratch, scratch, Splat(1.0F));
      vmulps(value, value, scratch);
      return;
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
    case ActivationKind::kSilu:
      break;
  }
  TILESMITH_CHECK(false, "activation {} is not fusable", ActivationToString(activation));
}

void VectorCode::EmitConstants() {
  align(64);
  for (auto& [pattern, label] : constants_) {
    L(label);
    for (const uint32_t word : pattern) dd(word);
  }
}

}  // namespace tilesmith::x86
