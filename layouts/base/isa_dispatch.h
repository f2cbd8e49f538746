// Run-time choice among the builds of a *_isa.cc file.
//
// CMake compiles each such file once per instruction set, with TILESMITH_ISA set to portable, portable_fused,
// avx2 or avx512. The file defines its functions inside `namespace tilesmith::TILESMITH_ISA`; it includes no
// header with inline code (no standard containers), since the linker could keep the AVX-512 copy of that code
// for every caller.
//
// In the header:  TILESMITH_DECLARE_ISA(void AddRows(const float* a, const float* b, float* out, int64_t n))
// At the call:    TILESMITH_DISPATCH(cpu.isa, AddRows)(a, b, out, n);
//
// On AArch64, where every CPU has NEON and fused products, the portable build has them and is the only one.
//
// A few are built for AVX-512 VNNI too (CMake lists them), which Target::vnni stands for:
//
// In the header:  TILESMITH_DECLARE_VNNI(void MultiplyBytes(...))
// At the call:    TILESMITH_DISPATCH_VNNI(cpu, MultiplyBytes)(...);
//
// Templates of what tensors hold, float or bf16 (as uint16_t), may be built for AVX-512 BF16 too, for bf16
// only (CMake lists them), which Target::bf16 stands for:
//
// In the header:  TILESMITH_DECLARE_STORED(template <typename T> void ClipRun(const T* in, T* out))
// In the file:    TILESMITH_INSTANTIATE_STORED(INSTANCES), a macro of T for the explicit instantiations
// At the call:    TILESMITH_DISPATCH_STORED(T, cpu, ClipRun<T>)(...);
#pragma once

#include "layouts/base/target.h"

#ifdef TILESMITH_X86
#define TILESMITH_DECLARE_ISA(...) \
  namespace portable {             \
  __VA_ARGS__;                     \
  }                                \
  namespace portable_fused {       \
  __VA_ARGS__;                     \
  }                                \
  namespace avx2 {                 \
  __VA_ARGS__;                     \
  }                                \
  namespace avx512 {               \
  __VA_ARGS__;                     \
  }
#define TILESMITH_DECLARE_VNNI(...)  \
  TILESMITH_DECLARE_ISA(__VA_ARGS__) \
  namespace avx512_vnni {            \
  __VA_ARGS__;                       \
  }
#define TILESMITH_DECLARE_STORED(...) \
  TILESMITH_DECLARE_ISA(__VA_ARGS__)  \
  namespace avx512_bf16 {             \
  __VA_ARGS__;                        \
  }
#define TILESMITH_DISPATCH_STORED(T, cpu, function)                \
  ([](const ::tilesmith::Target& target) {                         \
    if constexpr (sizeof(T) == 2) {                                \
      if (target.bf16) return &::tilesmith::avx512_bf16::function; \
    }                                                              \
    return TILESMITH_DISPATCH(target.isa, function);               \
  }(cpu))
#define TILESMITH_DISPATCH_VNNI(cpu, function) \
  ((cpu).vnni ? &::tilesmith::avx512_vnni::function : TILESMITH_DISPATCH((cpu).isa, function))
#define TILESMITH_DISPATCH(isa, ...)                                                       \
  ((isa) == ::tilesmith::Isa::kAvx512          ? &::tilesmith::avx512::__VA_ARGS__         \
   : (isa) == ::tilesmith::Isa::kAvx2          ? &::tilesmith::avx2::__VA_ARGS__           \
   : (isa) == ::tilesmith::Isa::kPortableFused ? &::tilesmith::portable_fused::__VA_ARGS__ \
                                               : &::tilesmith::portable::__VA_ARGS__)
#else
#define TILESMITH_DECLARE_ISA(...) \
  namespace portable {             \
  __VA_ARGS__;                     \
  }
#define TILESMITH_DECLARE_VNNI(...) TILESMITH_DECLARE_ISA(__VA_ARGS__)
#define TILESMITH_DECLARE_STORED(...) TILESMITH_DECLARE_ISA(__VA_ARGS__)
#define TILESMITH_DISPATCH_STORED(T, cpu, function) TILESMITH_DISPATCH((cpu).isa, function)
#define TILESMITH_DISPATCH_VNNI(cpu, function) TILESMITH_DISPATCH((cpu).isa, function)
// Not a comma expression: of the address of a function template's specialization, that has no type.
#define TILESMITH_DISPATCH(isa, ...)                                          \
  ((isa) == ::tilesmith::Isa::kPortable ? &::tilesmith::portable::__VA_ARGS__ \
                                        : &::tilesmith::portable::__VA_ARGS__)
#endif

namespace tilesmith {

// Floats in the widest vector of the build that is chosen for `cpu`: on AArch64 there is one, for NEON.
inline int DispatchedVectorFloats(const Target& cpu) {
  return cpu.isa == Isa::kSve ? 4 : cpu.vector_floats();
}

}  // namespace tilesmith

#ifdef TILESMITH_ISA_avx512_bf16
#define TILESMITH_INSTANTIATE_STORED(INSTANCES) INSTANCES(uint16_t)
#else
#define TILESMITH_INSTANTIATE_STORED(INSTANCES) INSTANCES(float) INSTANCES(uint16_t)
#endif
