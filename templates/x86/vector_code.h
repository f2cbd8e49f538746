// What every generated conv kernel shares: vectors of the CPU's width, constants, the lanes of a vector that
// is not full, activations. One generator serves AVX-512 and AVX2: Vector(i) is zmm or ymm register i.
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "layouts/base/target.h"
#include "layouts/data_type.h"
#include "ops/base/activation.h"

namespace tilesmith::x86 {

class VectorCode : public Xbyak::CodeGenerator {
 protected:
  // Precondition: cpu.isa is AVX2 or AVX-512.
  VectorCode(const Target& cpu, size_t buffer_bytes);

  bool wide() const { return wide_; }  // AVX-512
  int registers() const { return registers_; }
  int64_t vector_bytes() const { return vector_bytes_; }
  int vector_floats() const { return static_cast<int>(vector_bytes_ / sizeof(float)); }
  Xbyak::Xmm Vector(int index) const;

  void Zero(const Xbyak::Xmm& value);
  // Lane i becomes lane i ^ distance. Precondition: distance is 1, 2, 4 or, on AVX-512, 8.
  void SwapLanes(const Xbyak::Xmm& value, int distance);

  // Memory operands of one vector, placed behind the code by EmitConstants. Valid anywhere in the buffer.
  Xbyak::Address Splat(float value);  // every lane `value`
  Xbyak::Address Lanes(int count);    // all ones in the first `count` lanes, else zero
  Xbyak::Address Constant(const std::vector<uint32_t>& pattern);  // precondition: one word per lane

  // Vectors of which only the first `count` lanes are real. LoadMask says which; AVX-512 keeps the mask in k1
  // (so one LoadMask may serve a whole kernel), AVX2 in `register` until that is overwritten.
  void LoadMask(int count, const Xbyak::Xmm& register_for_avx2);
  void LoadPartial(const Xbyak::Xmm& to, const Xbyak::Address& from, const Xbyak::Xmm& mask);  // rest zeros
  void StorePartial(const Xbyak::Address& to, const Xbyak::Xmm& from, const Xbyak::Xmm& mask);
  // The same of elements stored as `type`, f32 or bf16, which are floats in the register; all lanes where not
  // `partial`: else those of the last LoadMask before it in the code.
  void LoadStored(DataType type, const Xbyak::Xmm& to, const Xbyak::Address& from, bool partial,
                  const Xbyak::Xmm& mask);
  // Storing bf16 rounds to nearest even and destroys `from`, and `scratch` where RoundsInSteps; NaNs stay
  // NaNs.
  void StoreAs(DataType type, const Xbyak::Address& to, const Xbyak::Xmm& from, bool partial,
               const Xbyak::Xmm& mask, const Xbyak::Xmm& scratch);
  // Whether no instruction rounds floats to `type`: they are by integer arithmetic.
  bool RoundsInSteps(DataType type) const { return type == DataType::kBf16 && !rounds_; }
  // Zeroes the lanes from `count` on; needs no mask.
  void ClearLanesFrom(int count, const Xbyak::Xmm& value);

  // Loads constants of `activation` into registers [first, first + count), if all of them fit; Apply uses
  // them until the next call.
  void HoldConstants(const Activation& activation, int first, int count);
  // value = activation(value), NaN where it was NaN. Preconditions: activation.fusable(); scratch holds
  // nothing, but may be a register of HoldConstants.
  void Apply(const Activation& activation, const Xbyak::Xmm& value, const Xbyak::Xmm& scratch);

  // Code that runs `body` count times; `counter` is touched only when that is more than once.
  template <typename Body>
  void Repeat(int64_t count, const Xbyak::Reg64& counter, const Body& body) {
    if (count <= 1) return body();
    Xbyak::Label again;
    mov(counter, count);
    align(16);
    L(again);
    body();
    dec(counter);
    jnz(again, T_NEAR);
  }

  // Once, after the last instruction.
  void EmitConstants();

 private:
  // The first 2 * count bytes between memory and the register's low 16.
  void LoadWords(const Xbyak::Xmm& to, const Xbyak::Address& from, int count);
  void StoreWords(const Xbyak::Address& to, const Xbyak::Xmm& from, int count);  // destroys from
  // The upper half of each float, rounded, into the words of the vector's lower half. Destroys from.
  void RoundToWords(const Xbyak::Xmm& words, const Xbyak::Xmm& from);

  const bool wide_, rounds_;
  const int registers_;
  const int64_t vector_bytes_;
  // The register that holds `value` in every lane, or else scratch, which then does.
  Xbyak::Xmm InRegister(float value, const Xbyak::Xmm& scratch);

  int masked_lanes_ = 0;  // of the last LoadMask
  std::map<std::vector<uint32_t>, Xbyak::Label> constants_;
  std::vector<std::pair<float, Xbyak::Xmm>> held_;
};

// A displacement or immediate; more than 32 bits is a bug.
int Offset(int64_t bytes);

}  // namespace tilesmith::x86
