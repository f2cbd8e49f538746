#include "layouts/base/arm_cpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
#include <utility>

namespace tilesmith {
namespace {

struct CoreName {
  unsigned implementer, part;
  const char* name;
};
// Source: Linux, arch/arm64/include/asm/cputype.h.
constexpr CoreName kCoreNames[] = {
    {0x41, 0xd03, "Cortex-A53"},        {0x41, 0xd04, "Cortex-A35"},
    {0x41, 0xd05, "Cortex-A55"},        {0x41, 0xd07, "Cortex-A57"},
    {0x41, 0xd08, "Cortex-A72"},        {0x41, 0xd09, "Cortex-A73"},
    {0x41, 0xd0a, "Cortex-A75"},        {0x41, 0xd0b, "Cortex-A76"},
    {0x41, 0xd0c, "Neoverse N1"},       {0x41, 0xd0d, "Cortex-A77"},
    {0x41, 0xd40, "Neoverse V1"},       {0x41, 0xd41, "Cortex-A78"},
    {0x41, 0xd44, "Cortex-X1"},         {0x41, 0xd46, "Cortex-A510"},
    {0x41, 0xd47, "Cortex-A710"},       {0x41, 0xd48, "Cortex-X2"},
    {0x41, 0xd49, "Neoverse N2"},       {0x41, 0xd4d, "Cortex-A715"},
    {0x41, 0xd4e, "Cortex-X3"},         {0x41, 0xd4f, "Neoverse V2"},
    {0x41, 0xd80, "Cortex-A520"},       {0x41, 0xd81, "Cortex-A720"},
    {0x41, 0xd82, "Cortex-X4"},         {0x41, 0xd84, "Neoverse V3"},
    {0x41, 0xd8e, "Neoverse N3"},       {0x46, 0x001, "A64FX"},
    {0x61, 0x022, "Apple M1 Icestorm"}, {0x61, 0x023, "Apple M1 Firestorm"},
    {0x61, 0x032, "Apple M2 Blizzard"}, {0x61, 0x033, "Apple M2 Avalanche"},
    {0xc0, 0xac3, "AmpereOne"},
};

std::string NameOf(unsigned implementer, unsigned part) {
  for (const CoreName& known : kCoreNames)
    if (known.implementer == implementer && known.part == part) return known.name;
  return fmt::format("ARM {:#04x}:{:#05x}", implementer, part);
}

}  // namespace

#ifdef __aarch64__
ArmFeatures ReadArmFeatures() {
  constexpr int kSveGetLength = 51, kLengthMask = 0xffff;
  const int length = prctl(kSveGetLength);
  return {getauxval(AT_HWCAP), getauxval(AT_HWCAP2), length < 0 ? 0 : length & kLengthMask};
}
#endif

Target ArmInstructions(const ArmFeatures& features) {
  constexpr uint64_t kDot = 1U << 20, kSve = 1U << 22;                                             // hwcap
  constexpr uint64_t kSveI8mm = 1U << 9, kSveBf16 = 1U << 12, kI8mm = 1U << 13, kBf16 = 1U << 14;  // hwcap2
  constexpr int kLeastSve = 16, kMostSve = 64;
  Target cpu;
  const bool sve = (features.hwcap & kSve) != 0 && features.sve_bytes >= kLeastSve;
  cpu.isa = sve ? Isa::kSve : Isa::kNeon;
  if (sve)
    cpu.sve_bytes =
        static_cast<int>(std::bit_floor(static_cast<unsigned>(std::min(features.sve_bytes, kMostSve))));
  const auto has = [&](uint64_t neon, uint64_t in_sve) {
    return (features.hwcap2 & neon) != 0 && (!sve || (features.hwcap2 & in_sve) != 0);
  };
  cpu.dot = (features.hwcap & kDot) != 0;
  cpu.i8mm = cpu.dot && has(kI8mm, kSveI8mm);
  cpu.bf16 = cpu.dot && has(kBf16, kSveBf16);
  return cpu;
}

std::string VectorsText(const Target& cpu) {
  if (cpu.isa != Isa::kSve) return std::string(IsaName(cpu.isa));
  return fmt::format("{} of {} bits", IsaName(cpu.isa), 8 * cpu.sve_bytes);
}

std::string ArmModelName(std::istream& cpuinfo) {
  std::set<std::string> names;
  std::string host;
  unsigned implementer = 0;
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) host = value;
    if (line.starts_with("CPU implementer"))
      implementer = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 16));
    if (line.starts_with("CPU part") && implementer != 0)
      names.insert(NameOf(implementer, static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 16))));
  }
  if (!names.empty()) return fmt::format("{}", fmt::join(names, " + "));
  return host.empty() ? kEmulated : fmt::format("{} by {}", kEmulated, host);
}

std::vector<int> FastestTeam(std::vector<CoreSpeed> cores) {
  std::ranges::sort(cores, [](const CoreSpeed& a, const CoreSpeed& b) {
    return std::pair(-a.capacity, a.core) < std::pair(-b.capacity, b.core);
  });
  int64_t best = 0;
  size_t count = 0;
  for (size_t i = 0; i < cores.size(); ++i) {
    const int64_t speed = static_cast<int64_t>(i + 1) * cores[i].capacity;
    if (speed < best) continue;
    best = speed;
    count = i + 1;
  }
  std::vector<int> team;
  for (size_t i = 0; i < count; ++i) team.push_back(cores[i].core);
  std::ranges::sort(team);
  return team;
}

}  // namespace tilesmith
