#include "layouts/base/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#ifdef TILESMITH_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include "layouts/base/arm_cpu.h"
#include "layouts/base/cpu_quota.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"

namespace tilesmith {
namespace {

int64_t ReadCacheBytes(int index) {
  const int core = ProcessCores().empty() ? 0 : ProcessCores().front();
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/size", core, index));
  int64_t size = 0;
  char unit = 0;
  if (!(file >> size)) return 0;
  file >> unit;
  return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
}

std::string ReadModelName() {
  std::ifstream file("/proc/cpuinfo");
#ifdef __aarch64__
  return ArmModelName(file);
#else
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
#endif
}

int UsableCores() {
  auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (!ProcessCores().empty()) cores = static_cast<int>(ProcessCores().size());
  // A thread more than the quota has cores is stopped for a part of every period, and the others wait for it.
  if (const auto quota = CpuQuota(); quota && *quota < cores) cores = std::max(1, static_cast<int>(*quota));
  return cores;
}

#ifdef TILESMITH_X86
Isa DetectIsa() {
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kPortable;
}

// The OS saves the tiles only of processes that have asked for it.
bool DetectAmx() {
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24, kInt8 = 1U << 25;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & (kBf16 | kTile | kInt8)) != (kBf16 | kTile | kInt8)) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

}  // namespace

std::string_view ToolVersion() { return TILESMITH_VERSION; }

bool SameMachine(const Target& a, const Target& b) {
  return a.model == b.model && a.isa == b.isa && a.sve_bytes == b.sve_bytes && a.amx == b.amx &&
         a.device == b.device && a.compute == b.compute && a.tf32 == b.tf32;
}

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kPortableFused:
      return "portable_fused";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kNeon:
      return "neon";
    case Isa::kSve:
      return "sve";
  }
  return "unknown";
}

Isa ParseIsa(std::string_view text, std::span<const Isa> known) {
  std::vector<std::string_view> names;
  for (const Isa isa : known) {
    if (text == IsaName(isa)) return isa;
    names.push_back(IsaName(isa));
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown instruction set \"{}\" (known: {})", text, fmt::join(names, ", ")));
}

Target DetectInstructions() {
  Target cpu;
#ifdef TILESMITH_X86
  cpu.isa = DetectIsa();
  cpu.vnni = cpu.isa == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni");
  cpu.bf16 = cpu.isa == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16");
  cpu.amx = cpu.vnni && cpu.bf16 && DetectAmx();
#elif defined(TILESMITH_ARM)
  cpu = ArmInstructions(ReadArmFeatures());
#endif
  return cpu;
}

Target DetectCpu() {
  Target cpu = DetectInstructions();
  cpu.model = ReadModelName();
  cpu.cores = UsableCores();
  if (const int64_t bytes = ReadCacheBytes(0)) cpu.l1d_bytes = bytes;
  if (const int64_t bytes = ReadCacheBytes(2)) cpu.l2_bytes = bytes;
  cpu.l3_bytes = ReadCacheBytes(3);
  return cpu;
}

Target Reproducible(Target cpu) {
  cpu.reproducible = true;
  if (cpu.isa == Isa::kPortable) cpu.isa = Isa::kPortableFused;
  return cpu;
}

Target CapIsa(Target cpu, Isa cap) {
  if (Includes(cap, cpu.isa)) return cpu;
  cpu.isa = Includes(cpu.isa, cap) ? cap : Isa::kPortable;
  cpu.vnni = cpu.amx = false;
  cpu.sve_bytes = 0;
  if (ArchitectureOf(cpu.isa) != Architecture::kArm) cpu.bf16 = cpu.dot = cpu.i8mm = false;
  return cpu;
}

}  // namespace tilesmith
