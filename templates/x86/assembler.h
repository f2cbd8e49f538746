// The vocabulary of generated kernels (templates/code/vector_code.h) in AVX-512 and AVX2, by Xbyak: Vector(i)
// is zmm or ymm register i. Kernels for x86 alone use its instructions beside it.
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "layouts/base/target.h"
#include "layouts/data_type.h"

namespace tilesmith::x86 {

using Address = Xbyak::Address;
using Label = Xbyak::Label;
using Operand = Xbyak::Operand;
using Reg = Xbyak::Reg64;
using Vec = Xbyak::Xmm;

// A displacement or immediate; more than 32 bits is a bug.
int Offset(int64_t bytes);

// General register number `index`: 0 to 5 are arguments, and like 6 to 8 nobody's; Begin saves those from 9
// to 14.
inline Reg General(int index) {
  using Xbyak::Operand;
  constexpr int kOrder[] = {Operand::RDI, Operand::RSI, Operand::RDX, Operand::RCX, Operand::R8,
                            Operand::R9,  Operand::RAX, Operand::R10, Operand::R11, Operand::RBX,
                            Operand::RBP, Operand::R12, Operand::R13, Operand::R14, Operand::R15};
  return Reg(kOrder[index]);
}

// Other threads are to see what was streamed before what is stored then.
inline void FenceStreams() { __builtin_ia32_sfence(); }

class Assembler : public Xbyak::CodeGenerator {
 public:
  std::span<const uint8_t> Code() { return {getCode(), getSize()}; }

 protected:
  // Precondition: cpu.isa is AVX2 or AVX-512.
  Assembler(const Target& cpu, size_t buffer_bytes);

  bool wide() const { return wide_; }  // AVX-512
  int registers() const { return registers_; }
  int64_t vector_bytes() const { return vector_bytes_; }
  int vector_floats() const { return static_cast<int>(vector_bytes_ / sizeof(float)); }
  Vec Vector(int index) const;

  size_t Begin(int saved = 0);
  void End();
  void Align(int bytes) { align(bytes); }
  size_t Position() { return getSize(); }

  Address At(const Reg& base, int64_t bytes = 0) const { return ptr[base + Offset(bytes)]; }
  Address At(const Reg& base, const Reg& index, int scale, int64_t bytes = 0) const {
    return ptr[base + index * scale + Offset(bytes)];
  }
  // EVEX compresses the displacement of a broadcast to a byte within 512 bytes; adding 1, 2 or 4 times this
  // register keeps offsets up to 4608 short, which keeps unrolled bodies inside the instruction cache.
  void LoadElementUnit(const Reg& unit) { mov(unit, kUnit); }
  Address ElementAt(const Reg& base, int64_t bytes, const Reg& unit) const;

  void Move(const Reg& to, const Reg& from) { mov(to, from); }
  void Move(const Reg& to, int64_t value) { mov(to, value); }
  void Load(const Reg& to, const Address& from) { mov(to, from); }
  void LoadAddress(const Reg& to, const Address& of) { lea(to, of); }
  void Add(const Reg& to, const Operand& value) { add(to, value); }
  void Add(const Reg& to, int64_t value) { add(to, Offset(value)); }
  void Subtract(const Reg& to, const Operand& value) { sub(to, value); }
  void Subtract(const Reg& to, int64_t value) { sub(to, Offset(value)); }
  void Multiply(const Reg& to, const Address& factor) { imul(to, factor); }
  void Bind(Label& label) { L(label); }
  void JumpTo(Label& label) { jmp(label, T_NEAR); }
  void JumpTo(const Address& code) { jmp(code); }
  void JumpIfZero(const Reg& value, Label& label) {
    test(value, value);
    jz(label, T_NEAR);
  }
  void JumpIfBelow(const Reg& value, const Address& bound, Label& label) {
    cmp(value, bound);
    jb(label, T_NEAR);
  }
  void CountDown(const Reg& left, Label& again) {
    dec(left);
    jnz(again, T_NEAR);
  }
  // So many bytes from Stack() on, whole cache lines, until ReleaseStack.
  static Reg Stack() { return Reg(Xbyak::Operand::RSP); }
  void ReserveStack(int64_t bytes);
  void ReleaseStack() { mov(rsp, rax); }
  void Prefetch(const Address& line) { prefetcht0(line); }

  void Load(const Vec& to, const Address& from) { vmovups(to, from); }
  void Store(const Address& to, const Vec& from) { vmovups(to, from); }
  void StoreStreaming(const Address& to, const Vec& from) { vmovntps(to, from); }
  void Copy(const Vec& to, const Vec& from) { vmovaps(to, from); }
  void Zero(const Vec& value);
  void Add(const Vec& to, const Vec& a, const Operand& b) { vaddps(to, a, b); }
  void Subtract(const Vec& to, const Vec& a, const Operand& b) { vsubps(to, a, b); }
  void Multiply(const Vec& to, const Vec& a, const Operand& b) { vmulps(to, a, b); }
  void Max(const Vec& to, const Vec& a, const Operand& b) { vmaxps(to, a, b); }
  void Min(const Vec& to, const Vec& a, const Operand& b) { vminps(to, a, b); }
  void MultiplyAdd(const Vec& acc, const Vec& a, const Operand& b) { vfmadd231ps(acc, a, b); }
  void MultiplySubtract(const Vec& acc, const Vec& a, const Operand& b) { vfnmadd231ps(acc, a, b); }
  void MultiplyThenAdd(const Vec& to, const Vec& factor, const Operand& b) { vfmadd213ps(to, factor, b); }
  void LoadElement(const Vec& to, const Address& from) { vbroadcastss(to, from); }
  void MultiplyAddElement(const Vec& acc, const Operand& factor, const Vec& element) {
    factor.isMEM() ? vfmadd231ps(acc, element, factor)
                   : vfmadd231ps(acc, static_cast<const Vec&>(factor), element);
  }
  void MultiplyAddElement(const Vec& acc, const Vec& factor, const Address& element) {
    vfmadd231ps(acc, factor, ptr_b[element.getRegExp()]);
  }
  void PreparePairs();
  void LoadHalfPair(const Vec& to, const Address& from) { vpbroadcastw(to | k2 | T_z, from); }
  void MultiplyAddPair(const Vec& acc, const Operand& factor, const Vec& pair) {
    factor.isMEM() ? vdpbf16ps(acc, pair, factor) : vdpbf16ps(acc, static_cast<const Vec&>(factor), pair);
  }
  void MultiplyAddPair(const Vec& acc, const Vec& factor, const Address& pair) {
    vdpbf16ps(acc, factor, ptr_b[pair.getRegExp()]);
  }
  // Lane i becomes lane i ^ distance. Precondition: distance is 1, 2, 4 or, on AVX-512, 8.
  void SwapLanes(const Vec& value, int distance);

  Address Constant(const std::vector<uint32_t>& pattern);
  void EmitConstants();

  // AVX-512 keeps the mask in k1, AVX2 in `in_vector` until that is overwritten.
  bool masks_in_vectors() const { return !wide_; }
  void LoadMask(int count, const Vec& in_vector);
  void LoadPartial(const Vec& to, const Address& from, const Vec& mask);
  void StorePartial(const Address& to, const Vec& from, const Vec& mask);
  void LoadStored(DataType type, const Vec& to, const Address& from, bool partial, const Vec& mask);
  void StoreAs(DataType type, const Address& to, const Vec& from, bool partial, const Vec& mask,
               const Vec& scratch);
  bool RoundsInSteps(DataType type) const { return type == DataType::kBf16 && !rounds_; }
  void ClearLanesFrom(int count, const Vec& value);

 private:
  static constexpr int64_t kUnit = 1024;

  // All ones in the first `count` lanes, else zero.
  Address Lanes(int count);
  // The first 2 * count bytes between memory and the register's low 16.
  void LoadWords(const Vec& to, const Address& from, int count);
  void StoreWords(const Address& to, const Vec& from, int count);  // destroys from
  // The upper half of each float, rounded, into the words of the vector's lower half. Destroys from.
  void RoundToWords(const Vec& words, const Vec& from);

  const bool wide_, rounds_;
  const int registers_;
  const int64_t vector_bytes_;
  int saved_ = 0;         // general registers, by the last Begin
  int masked_lanes_ = 0;  // of the last LoadMask
  std::map<std::vector<uint32_t>, Label> constants_;
};

}  // namespace tilesmith::x86
