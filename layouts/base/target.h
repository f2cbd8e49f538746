// The machine as generated code and cost decisions see it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilesmith {

// Ordered within an architecture: a larger value includes the smaller ones (Includes). kPortableFused is
// kPortable's code, but with products that are added unrounded, as the wider ones' instructions do: slow
// where the CPU cannot, and the same bits everywhere. Values stand in compiled files.
enum class Isa { kPortable = 0, kPortableFused = 1, kAvx2 = 2, kAvx512 = 3, kNeon = 4, kSve = 5 };
constexpr Isa kAllIsas[] = {Isa::kPortable, Isa::kPortableFused, Isa::kAvx2,
                            Isa::kAvx512,   Isa::kNeon,          Isa::kSve};

// Where instructions are emitted for: kAny has no generated code.
enum class Architecture { kAny, kX86, kArm };
constexpr Architecture ArchitectureOf(Isa isa) {
  return isa >= Isa::kNeon ? Architecture::kArm : isa >= Isa::kAvx2 ? Architecture::kX86 : Architecture::kAny;
}

// Whether what is built for `narrow` runs where there is `wide`.
constexpr bool Includes(Isa wide, Isa narrow) {
  return narrow <= wide &&
         (ArchitectureOf(narrow) == Architecture::kAny || ArchitectureOf(narrow) == ArchitectureOf(wide));
}

// Those of the architecture that this is built for.
#ifdef __aarch64__
constexpr Isa kIsas[] = {Isa::kPortable, Isa::kPortableFused, Isa::kNeon, Isa::kSve};
#else
constexpr Isa kIsas[] = {Isa::kPortable, Isa::kPortableFused, Isa::kAvx2, Isa::kAvx512};
#endif

// What tilesmith's version is called, e.g. "0.1.0".
std::string_view ToolVersion();

// A device of this kind is this process's cores: one of the values of Target::device.
constexpr const char* kCpuDevice = "cpu";
// The kind of NVIDIA's GPUs.
constexpr const char* kCudaDevice = "cuda";

// What code is built for and tuned on: which machine, and which version of tilesmith saw it. How it is used
// (threads, cold weights, ...) is not part of it.
struct Target {
  std::string model;  // as the CPU names itself, e.g. "AMD EPYC"
  Isa isa = Isa::kPortable;
  bool vnni = false;  // products of bytes in fours, on vectors of `isa`'s width; never below kAvx512
  bool bf16 = false;  // products of bf16 in pairs, summed in f32; never below kAvx512 or kNeon
  bool amx = false;   // products of tiles of bytes and of bf16; never without vnni and bf16
  int cores = 1;      // cores this process may use: those of its affinity mask, as far as a quota goes
  int64_t l1d_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 0;
  std::string version{ToolVersion()};
  std::string device = kCpuDevice;  // its kind
  // A CUDA device's compute capability, 90 for 9.0, and whether it may round products of floats to TF32. Its
  // cores are its multiprocessors, its l1d_bytes the shared memory that a block may have.
  int compute = 0;
  bool tf32 = false;
  // Whether outputs have to be the same bits as on any other such target: only what adds in the order of
  // ops/order.md runs.
  bool reproducible = false;
  // AArch64's. Of every SVE register this many bytes are used: 16, 32 or 64, at most as many as it has; 0
  // below kSve. Products of bytes in fours (SDOT, UDOT), and as matrices (SMMLA, UMMLA, USMMLA, and USDOT);
  // where there are i8mm or bf16 there is dot.
  int sve_bytes = 0;
  bool dot = false;
  bool i8mm = false;

  // Floats in one vector register: 16, 8, or 4 where code is portable or NEON's, or what SVE has.
  int vector_floats() const {
    return isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : isa == Isa::kSve ? sve_bytes / 4 : 4;
  }
  // Vector registers that a kernel may use. AArch64 has two more, by which operands in memory are read.
  int vector_registers() const {
    return ArchitectureOf(isa) == Architecture::kArm ? 30 : isa == Isa::kAvx512 ? 32 : 16;
  }
  bool operator==(const Target&) const = default;
};

// Same kind of device, model, ISA, length of vectors, AMX and rounding of products: figures of one hold for
// the other (version and core count are not compared, nor whether results are reproducible).
bool SameMachine(const Target& a, const Target& b);

// "portable", "portable_fused", "avx2", "avx512", "neon", "sve".
std::string_view IsaName(Isa isa);
// Throws Error(kUsage) naming the text and the known names. Files may come from any machine, and say
// kAllIsas.
Isa ParseIsa(std::string_view text, std::span<const Isa> known = kIsas);

// Reads /proc and /sys, and on x86 CPUID, on AArch64 what layouts/base/arm_cpu.h says. kAvx2 needs AVX2 and
// FMA; kAvx512 needs F, BW, DQ and VL, and the OS saving the state, and kPortableFused is only asked for;
// vnni is AVX-512 VNNI, bf16 is AVX-512 BF16; amx is AMX with INT8 and BF16, for whose tiles the OS is asked
// on behalf of the process.
Target DetectCpu();
// What of DetectCpu are instructions. Reads no file and allocates nothing.
Target DetectInstructions();
// `cpu` as one whose results are reproducible: kPortable becomes kPortableFused.
Target Reproducible(Target cpu);
// `cpu` with its ISA lowered to at most `cap`, without what only the ISA it had comes with; this is how
// narrower machines are emulated. What it shares with a `cap` of another architecture is kPortable.
Target CapIsa(Target cpu, Isa cap);

}  // namespace tilesmith
