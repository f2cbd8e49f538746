#include "templates/base/fma_peak.h"

#ifdef TILESMITH_X86

#include <xbyak/xbyak.h>

#include <algorithm>

#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

constexpr int kAccumulators = 12;  // latency 4, two per cycle: 8 would do
constexpr int kUnroll = 4;         // the loop's own instructions must not show

// void loop(int64_t iterations): kUnroll times kAccumulators independent FMAs per iteration.
class FmaLoop : public Xbyak::CodeGenerator {
 public:
  explicit FmaLoop(bool wide) {
    const auto reg = [&](int i) -> Xbyak::Xmm {
      return wide ? Xbyak::Xmm(Xbyak::Zmm(i)) : Xbyak::Xmm(Xbyak::Ymm(i));
    };
    Xbyak::Label again;
    for (int i = 0; i < kAccumulators + 2; ++i) vxorps(Xbyak::Xmm(i), Xbyak::Xmm(i), Xbyak::Xmm(i));
    align(64);
    L(again);
    for (int i = 0; i < kUnroll * kAccumulators; ++i) {
      vfmadd231ps(reg(i % kAccumulators), reg(kAccumulators), reg(kAccumulators + 1));
    }
    dec(rdi);
    jnz(again, T_NEAR);
    vzeroupper();
    ret();
  }
};

}  // namespace

double MeasureFmaPeak(const Target& cpu, int threads) {
  if (cpu.isa == Isa::kPortable) return 0;
  constexpr int64_t kIterations = 5000;
  constexpr int kRuns = 400;
  const FmaLoop loop(cpu.isa == Isa::kAvx512);
  const auto run = loop.getCode<void (*)(int64_t)>();
  double best_seconds = 1e30;
  for (int i = 0; i < kRuns; ++i) {
    const double seconds = SecondsOf([&] { RunOnTeam(threads, [&](int) { run(kIterations); }); });
    best_seconds = std::min(best_seconds, seconds);
  }
  return 2.0 * cpu.vector_floats() * kUnroll * kAccumulators * kIterations * threads / best_seconds;
}

}  // namespace tilesmith

#else

double tilesmith::MeasureFmaPeak(const Target&, int) { return 0; }

#endif  // TILESMITH_X86
