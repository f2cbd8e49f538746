#include "templates/base/fma_peak.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

namespace tilesmith {
namespace {

// The shortest of a burst of runs.
double ShortestOf(int runs, const std::function<double(int)>& seconds_of_run, int threads) {
  constexpr double kMaxSeconds = 0.02;
  double shortest = std::numeric_limits<double>::infinity(), all = 0;
  for (int i = 0; i < runs && all < kMaxSeconds; ++i) {
    const double seconds = seconds_of_run(threads);
    shortest = std::min(shortest, seconds);
    all += seconds;
  }
  return shortest;
}

}  // namespace

double UndisturbedSeconds(const std::function<double(int)>& seconds_of_run, int threads) {
  constexpr int kBursts = 5, kMostBursts = 25, kRuns = 80, kRunsAlone = 10;
  constexpr double kPlausible = 3;  // times as long as one alone: two threads of a core take twice as long
  constexpr std::chrono::milliseconds kPause{10};
  double together = std::numeric_limits<double>::infinity(), alone = together;
  for (int burst = 0; burst < kBursts || (burst < kMostBursts && together > kPlausible * alone); ++burst) {
    if (burst > 0) std::this_thread::sleep_for(kPause);
    together = std::min(together, ShortestOf(kRuns, seconds_of_run, threads));
    alone = std::min(alone, threads == 1 ? together : ShortestOf(kRunsAlone, seconds_of_run, 1));
  }
  return together;
}

}  // namespace tilesmith

#ifdef TILESMITH_X86

#include <xbyak/xbyak.h>

#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "templates/base/window_plan.h"

namespace tilesmith {
namespace {

constexpr int kAccumulators = 12;  // latency 4, two per cycle: 8 would do
constexpr int kUnroll = 4;         // the loop's own instructions must not show

// void loop(int64_t iterations): kUnroll times kAccumulators independent FMAs per iteration.
class FmaLoop : public Xbyak::CodeGenerator {
 public:
  FmaLoop(bool wide, DataType type, bool vnni) {
    const auto reg = [&](int i) -> Xbyak::Xmm {
      return wide ? Xbyak::Xmm(Xbyak::Zmm(i)) : Xbyak::Xmm(Xbyak::Ymm(i));
    };
    Xbyak::Label again;
    for (int i = 0; i < kAccumulators + 2; ++i) vxorps(Xbyak::Xmm(i), Xbyak::Xmm(i), Xbyak::Xmm(i));
    align(64);
    L(again);
    for (int i = 0; i < kUnroll * kAccumulators; ++i) {
      const Xbyak::Xmm sum = reg(i % kAccumulators), a = reg(kAccumulators), b = reg(kAccumulators + 1);
      Multiply(type, vnni, sum, a, b);
    }
    dec(rdi);
    jnz(again, T_NEAR);
    vzeroupper();
    ret();
  }

 private:
  void Multiply(DataType type, bool vnni, const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
    if (type == DataType::kBf16) return vdpbf16ps(sum, a, b);
    if (type != DataType::kI8) return vfmadd231ps(sum, a, b);
    if (vnni) return vpdpbusd(sum, a, b);
    vpmaddwd(b, a, a);
    vpaddd(sum, sum, b);
  }
};

// Measures the same with the tiles of AMX, whose products take longer than one another's sums.
class TileLoop : public Xbyak::CodeGenerator {
 public:
  // Of a product of bf16 or bytes.
  static double Operations(DataType type) {
    return 2.0 * kTileRows * kTileRows * kTileWords * (type == DataType::kBf16 ? 2 : 4);
  }

  explicit TileLoop(DataType type) {
    Xbyak::Label again, config;
    ldtilecfg(ptr[rip + config]);
    for (int tile = 0; tile < 8; ++tile) tilezero(Xbyak::Tmm(tile));
    align(64);
    L(again);
    for (int i = 0; i < kUnroll * kAccumulators; ++i) {
      const Xbyak::Tmm sum(i % 4), a(4 + i / 2 % 2), b(6 + i % 2);
      type == DataType::kBf16 ? tdpbf16ps(sum, a, b) : tdpbusd(sum, a, b);
    }
    dec(rdi);
    jnz(again, T_NEAR);
    tilerelease();
    ret();
    align(64);
    L(config);
    db(1);  // the palette
    for (int i = 1; i < 16; ++i) db(0);
    for (int tile = 0; tile < 16; ++tile) dw(tile < 8 ? 4 * kTileWords : 0);
    for (int tile = 0; tile < 16; ++tile) db(tile < 8 ? kTileRows : 0);
  }
};

// Of the loop, whose iteration does so many operations.
double BestRate(void (*loop)(int64_t), double operations, int threads) {
  constexpr int64_t kIterations = 5000;
  const auto seconds_of_run = [&](int count) {
    return SecondsOf([&] { RunOnTeam(count, [&](int) { loop(kIterations); }); });
  };
  return operations * static_cast<double>(kIterations) * threads /
         UndisturbedSeconds(seconds_of_run, threads);
}

}  // namespace

double MeasureFmaPeak(const Target& cpu, int threads, DataType type) {
  constexpr double kProducts = kUnroll * kAccumulators;
  if (ArchitectureOf(cpu.isa) != Architecture::kX86) return 0;
  if (type == DataType::kBf16 && !cpu.bf16) type = DataType::kF32;
  if (type != DataType::kF32 && cpu.amx) {
    const TileLoop loop(type);
    return BestRate(loop.getCode<void (*)(int64_t)>(), kProducts * TileLoop::Operations(type), threads);
  }
  const FmaLoop loop(cpu.isa == Isa::kAvx512, type, cpu.vnni);
  const int lane_products = type == DataType::kF32 ? 1 : type == DataType::kI8 && cpu.vnni ? 4 : 2;
  return BestRate(loop.getCode<void (*)(int64_t)>(), kProducts * 2 * lane_products * cpu.vector_floats(),
                  threads);
}

}  // namespace tilesmith

#else

double tilesmith::MeasureFmaPeak(const Target&, int, DataType) { return 0; }

#endif  // TILESMITH_X86
