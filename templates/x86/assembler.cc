#include "templates/x86/assembler.h"

#include <bit>

#include "layouts/base/check.h"
#include "templates/base/image_strides.h"

namespace tilesmith::x86 {

constexpr int kFirstSaved = 9;

int Offset(int64_t bytes) {
  TILESMITH_CHECK(bytes >= INT32_MIN && bytes <= INT32_MAX, "{}", bytes);
  return static_cast<int>(bytes);
}

Assembler::Assembler(const Target& cpu, size_t buffer_bytes)
    : CodeGenerator(buffer_bytes),
      wide_(cpu.isa == Isa::kAvx512),
      rounds_(cpu.bf16),
      registers_(cpu.vector_registers()),
      vector_bytes_(cpu.vector_floats() * kFloatBytes) {}

Vec Assembler::Vector(int index) const {
  if (wide_) return Xbyak::Zmm(index);
  return Xbyak::Ymm(index);
}

size_t Assembler::Begin(int saved) {
  align(64);
  saved_ = saved;
  const size_t start = getSize();
  for (int i = 0; i < saved; ++i) push(General(kFirstSaved + i));
  return start;
}

void Assembler::End() {
  for (int i = saved_; i-- > 0;) pop(General(kFirstSaved + i));
  vzeroupper();
  ret();
}

void Assembler::ReserveStack(int64_t bytes) {
  constexpr int kLine = 64;
  mov(rax, rsp);
  sub(rsp, Offset(bytes + kLine));
  and_(rsp, -kLine);
}

Address Assembler::ElementAt(const Reg& base, int64_t bytes, const Reg& unit) const {
  constexpr int64_t kReach = kUnit / 2;
  for (int scale : {1, 2, 4}) {
    const int64_t rest = bytes - scale * kUnit;
    if (wide() && rest >= -kReach && rest < kReach) return At(base, unit, scale, rest);
  }
  return At(base, bytes);
}

void Assembler::PreparePairs() {
  mov(eax, 0x55555555);  // the first of each pair
  kmovd(k2, eax);
}

void Assembler::Zero(const Vec& value) {
  const Vec low(value.getIdx());
  value.getIdx() > 15 ? vpxord(value, value, value) : vxorps(low, low, low);
}

void Assembler::SwapLanes(const Vec& value, int distance) {
  constexpr uint8_t kNeighbours = 0xB1, kPairs = 0x4E;  // of four elements
  if (distance < 4) return vpermilps(value, value, distance == 1 ? kNeighbours : kPairs);
  if (!wide_)
    return vperm2f128(Xbyak::Ymm(value.getIdx()), Xbyak::Ymm(value.getIdx()), Xbyak::Ymm(value.getIdx()), 1);
  const Xbyak::Zmm wide_value(value.getIdx());
  vshuff32x4(wide_value, wide_value, wide_value, distance == 4 ? kNeighbours : kPairs);
}

Address Assembler::Constant(const std::vector<uint32_t>& pattern) {
  TILESMITH_CHECK(static_cast<int>(pattern.size()) == vector_floats());
  return ptr[rip + constants_[pattern]];
}

Address Assembler::Lanes(int count) {
  std::vector<uint32_t> pattern(vector_floats(), 0);
  for (int lane = 0; lane < count; ++lane) pattern[lane] = UINT32_MAX;
  return Constant(pattern);
}

void Assembler::LoadMask(int count, const Vec& register_for_avx2) {
  masked_lanes_ = count;
  if (!wide_) return vmovups(register_for_avx2, Lanes(count));
  mov(eax, static_cast<uint32_t>((1ULL << count) - 1));
  kmovw(k1, eax);
}

void Assembler::LoadPartial(const Vec& to, const Address& from, const Vec& mask) {
  wide_ ? vmovups(to | k1 | T_z, from) : vmaskmovps(to, mask, from);
}

void Assembler::StorePartial(const Address& to, const Vec& from, const Vec& mask) {
  wide_ ? vmovups(to | k1, from) : vmaskmovps(to, mask, from);
}

void Assembler::LoadStored(DataType type, const Vec& to, const Address& from, bool partial, const Vec& mask) {
  if (type == DataType::kF32) return partial ? LoadPartial(to, from, mask) : vmovups(to, from);
  constexpr uint8_t kHalfFloat = 16;
  if (partial && !wide_) {
    const Vec words(to.getIdx());
    LoadWords(words, from, masked_lanes_);
    vpmovzxwd(to, words);
  } else {
    partial ? vpmovzxwd(to | k1 | T_z, from) : vpmovzxwd(to, from);
  }
  vpslld(to, to, kHalfFloat);
}

void Assembler::StoreAs(DataType type, const Address& to, const Vec& from, bool partial, const Vec& mask,
                        const Vec& scratch) {
  if (type == DataType::kF32) return partial ? StorePartial(to, from, mask) : vmovups(to, from);
  if (rounds_) {
    const Xbyak::Ymm narrow(from.getIdx());
    vcvtneps2bf16(narrow, from);
    partial ? vmovdqu16(to | k1, narrow) : vmovdqu16(to, narrow);
    return;
  }
  RoundToWords(scratch, from);
  const Xbyak::Ymm narrow(scratch.getIdx());
  const Vec low(scratch.getIdx());
  if (wide_) {
    partial ? vmovdqu16(to | k1, narrow) : vmovdqu16(to, narrow);
  } else {
    partial ? StoreWords(to, low, masked_lanes_) : vmovdqu(to, low);
  }
}

// Half of the last place that stays is added, less one bit where the number below it is even: what carries
// over rounds up. Where that would make a NaN something else, all bits are set, which is another NaN.
void Assembler::RoundToWords(const Vec& words, const Vec& from) {
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

void Assembler::LoadWords(const Vec& to, const Address& from, int count) {
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

void Assembler::StoreWords(const Address& to, const Vec& from, int count) {
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

void Assembler::ClearLanesFrom(int count, const Vec& value) {
  wide_ ? vpandd(value, value, Lanes(count)) : vandps(value, value, Lanes(count));
}

void Assembler::EmitConstants() {
  align(64);
  for (auto& [pattern, label] : constants_) {
    L(label);
    for (const uint32_t word : pattern) dd(word);
  }
}

}  // namespace tilesmith::x86
