// What every generated conv kernel is written in: one vocabulary, whose words are instructions of the CPU
// that this is built for. `code::Assembler` has the words themselves:
//
//   General(i), Vector(i)      registers; a Reg or a Vec
//   At(base, bytes), Constant  memory operands, which are loaded where an instruction takes none
//   Begin(saved), End          a function that uses the general registers up to 9 + saved, and its position
//   Load, Store, Add, Max ...  floats of a whole vector, to = a op b; of general registers, to = to op value.
//                              Max and Min are a > b ? a : b and a < b ? a : b: b where either is NaN
//   MultiplyAdd(acc, a, b)     acc += a * b, unrounded between; MultiplySubtract acc -= a * b;
//                              MultiplyThenAdd(to, a, b) to = to * a + b
//   LoadElement(to, from)      one float that MultiplyAddElement(acc, factor, to) multiplies a vector by; the
//                              same of a pair of bf16 by MultiplyAddPair, of which LoadHalfPair, once there
//                              was PreparePairs, reads the first only
//   ElementAt(base, bytes, r)  At(base, bytes), in a shorter form where r is of LoadElementUnit
//   LoadMask(count, in_vector) says how many lanes are real in what is loaded or stored as `partial`. Where
//                              masks_in_vectors, in_vector is the mask, needed at every use; elsewhere one
//                              LoadMask may serve a whole kernel, and nothing is kept in vectors
//   LoadStored, StoreAs        elements stored as f32 or bf16, which are floats in registers; lanes that are
//                              not real are zero, and not touched in memory. Storing bf16 rounds to nearest
//                              even and destroys `from`, and `scratch` where RoundsInSteps; NaNs stay NaNs
//   ClearLanesFrom(count, v)   zeroes the other lanes; needs no mask
//   ReserveStack(bytes)        from Stack() on, whole cache lines; uses General(6) until ReleaseStack
//   EmitConstants              once, after the last instruction
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ops/base/activation.h"

#ifdef TILESMITH_ARM
#include "templates/arm/assembler.h"
namespace tilesmith {
namespace code = arm;
}
#else
#include "templates/x86/assembler.h"
namespace tilesmith {
namespace code = x86;
}
#endif

namespace tilesmith {

class VectorCode : public code::Assembler {
 protected:
  using Assembler::Assembler;

  // A memory operand of one vector, every lane `value`.
  code::Address Splat(float value);

  // Loads constants of `activation` into registers [first, first + count), if all of them fit; Apply uses
  // them until the next call.
  void HoldConstants(const Activation& activation, int first, int count);
  // value = activation(value), NaN where it was NaN. Preconditions: activation.fusable(); scratch holds
  // nothing, but may be a register of HoldConstants.
  void Apply(const Activation& activation, const code::Vec& value, const code::Vec& scratch);

  // Code that runs `body` count times; `counter` is touched only when that is more than once.
  template <typename Body>
  void Repeat(int64_t count, const code::Reg& counter, const Body& body) {
    if (count <= 1) return body();
    code::Label again;
    Move(counter, count);
    Align(16);
    Bind(again);
    body();
    CountDown(counter, again);
  }

 private:
  // The register that holds `value` in every lane, or else scratch, which then does.
  code::Vec InRegister(float value, const code::Vec& scratch);

  std::vector<std::pair<float, code::Vec>> held_;
};

}  // namespace tilesmith
