#include "tuner/autotvm/autotvm_target.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tuner/records/record.h"

namespace tilesmith {
namespace {

// LLVM's names of CPUs that have AVX-512 F, BW, DQ and VL.
constexpr std::array<std::string_view, 17> kAvx512Cpus = {
    "skylake-avx512",  "skx",           "cascadelake", "cooperlake",     "cannonlake",    "icelake-client",
    "icelake-server",  "tigerlake",     "rocketlake",  "sapphirerapids", "emeraldrapids", "graniterapids",
    "graniterapids-d", "diamondrapids", "znver4",      "znver5",         "x86-64-v4"};

// What follows "-name=", up to the next blank.
std::string_view Option(std::string_view target, std::string_view name) {
  const size_t at = target.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view value = target.substr(at + name.size());
  return value.substr(0, value.find(' '));
}

}  // namespace

Isa IsaOfAutotvmTarget(std::string_view target) {
  const std::string_view cpu = Option(target, "-mcpu=");
  const bool known = std::find(kAvx512Cpus.begin(), kAvx512Cpus.end(), cpu) != kAvx512Cpus.end();
  return known || Option(target, "-mattr=").find("+avx512vl") != std::string_view::npos ? Isa::kAvx512
                                                                                        : Isa::kAvx2;
}

int CoresOfAutotvmTarget(std::string_view target) {
  const std::string_view text = Option(target, "-num-cores=");
  int cores = 1;
  std::from_chars(text.data(), text.data() + text.size(), cores);
  return std::clamp(cores, 1, kMaxThreads);
}

std::string AutotvmTargetText(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "llvm";
    case Isa::kAvx2:
      return "llvm -mcpu=core-avx2";
    case Isa::kAvx512:
      return "llvm -mcpu=skylake-avx512";
  }
  return "llvm";
}

}  // namespace tilesmith
