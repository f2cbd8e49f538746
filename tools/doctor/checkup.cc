#include "tools/doctor/checkup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "layouts/base/arm_cpu.h"
#include "layouts/base/cpu_quota.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/crossing.h"
#include "layouts/measure/machine_watch.h"
#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"
#include "layouts/tensor.h"
#include "templates/base/fma_peak.h"
#include "tools/cli/system_files.h"
#include "tools/onednn/onednn.h"
#include "tuner/cost_model/boosted_trees.h"

namespace tilesmith {
namespace {

// The result depends on every step, so that none can be left out.
double DependentChain(double x) {
  constexpr int kSteps = 60000;
  for (int i = 0; i < kSteps; ++i) x = x * 0.999 + 0.001;
  return x;
}

// Low quartile of the seconds per call of `body`, called in blocks.
template <typename Body>
double SecondsPerCall(const Body& body) {
  constexpr int kBlocks = 40, kCalls = 100;
  return LowerQuartile(TimeRuns(kBlocks,
                                [&] {
                                  for (int i = 0; i < kCalls; ++i) body();
                                })) /
         kCalls;
}

std::string Bytes(int64_t bytes) {
  if (bytes <= 0) return "unknown";
  if (bytes >= 1 << 20) return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{} KiB", bytes >> 10);
}

// Its name, and the extensions that products of fewer bits go by.
std::string IsaText(const Target& cpu) {
  std::vector<std::string> extensions;
  if (cpu.vnni) extensions.emplace_back("VNNI");
  if (cpu.bf16) extensions.emplace_back("BF16");
  if (cpu.amx) extensions.emplace_back("AMX");
  if (cpu.dot) extensions.emplace_back("DotProd");
  if (cpu.i8mm) extensions.emplace_back("I8MM");
  const std::string with = extensions.empty() ? "" : " with ";
  return fmt::format("{}{}{}", VectorsText(cpu), with, fmt::join(extensions, ", "));
}

bool CachesAreKnown() { return std::filesystem::exists("/sys/devices/system/cpu/cpu0/cache/index0/size"); }

Finding CheckIsa(const DevicePtr& machine) {
  const Isa detected = DetectCpu().isa;
  Finding finding{"ISA", IsaText(machine->target()), ""};
  if (machine->target().isa != detected) {
    finding.advice = fmt::format("capped; this CPU has {}", IsaName(detected));
  } else if (detected == Isa::kPortable) {
    finding.advice = "no AVX2 with FMA: only the portable template runs, slowly";
  }
  return finding;
}

Finding CheckThreads(const DevicePtr& machine, const cpu_set_t& usable) {
  const Target& cpu = machine->target();
  Finding finding{
      "threads",
      fmt::format("{} of {} usable cores", machine->threads(), cpu.cores),
      "",
      {{"threads", static_cast<double>(machine->threads())}, {"cores", static_cast<double>(cpu.cores)}}};
  const int siblings = CoresSharedBy(usable);
  if (siblings > 0) {
    finding.advice = fmt::format(
        "{} usable CPUs are hyper-threads of another usable one: run on one per core (taskset -c)", siblings);
  }
  if (const auto quota = CpuQuota(); quota && *quota < machine->threads()) {
    finding.advice = fmt::format("the control group grants {:.2f} CPUs: use --threads {}", *quota,
                                 std::max(1, static_cast<int>(*quota)));
  }
  return finding;
}

Finding CheckGovernor() {
  const std::string governor = CpuGovernor();
  if (governor.empty()) return {"governor", "not visible (a virtual machine?)", ""};
  if (governor == "performance") return {"governor", governor, ""};
  return {"governor", governor, "clocks vary with load: cpupower frequency-set -g performance"};
}

Finding CheckOpenMp() {
  Finding finding{"OpenMP", "default waiting", ""};
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string policy = variable("OMP_WAIT_POLICY");
  if (!policy.empty()) finding.value = "OMP_WAIT_POLICY=" + policy;
  if (policy == "passive" || policy == "PASSIVE") {
    finding.advice =
        "oneDNN's threads sleep between regions, which costs some 50 us each: unset OMP_WAIT_POLICY";
  }
  for (const char* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "OMP_THREAD_LIMIT"}) {
    if (variable(name).empty()) continue;
    finding.value += fmt::format(", {}={}", name, variable(name));
    finding.advice = fmt::format("unset {}: threads are pinned by tilesmith itself, oneDNN's as well", name);
  }
  return finding;
}

Finding CheckHugePages() {
  const std::string mode = TransparentHugePages();
  if (mode.empty()) return {"huge pages", "not visible", ""};
  return {"huge pages", mode, mode == "never" ? "large weights cost TLB misses: set them to madvise" : ""};
}

Finding CheckLoad() {
  const double load = LoadAverage();
  return {"load",
          fmt::format("{:.2f} (1 minute)", load),
          load > 0.5 ? "something else has been running: stop it, or wait" : "",
          {{"load", load}}};
}

// p50 to p99 of fixed work, and what the hypervisor took meanwhile.
std::vector<Finding> CheckNoise(int threads) {
  constexpr double kSeconds = 1.0, kQuiet = 1.05, kStolen = 0.002;
  const CpuTicks before = ReadCpuTicks();
  const std::vector<double> samples = FixedWorkSeconds(threads, kSeconds);
  const CpuTicks after = ReadCpuTicks();
  const double p50 = Quantile(samples, 0.5);
  const double spread = Quantile(samples, 0.99) / p50;
  Finding noise{"noise",
                fmt::format("p99 is {:.1f}% above p50 of {:.0f} us", (spread - 1) * 100, p50 * 1e6),
                "",
                {{"p50_seconds", p50}, {"p99_share_above", spread - 1}}};
  if (spread > kQuiet) noise.advice = "timings vary: close other programs, or expect to measure longer";
  const double ticks = static_cast<double>(after.total - before.total);
  const double stolen = ticks > 0 ? static_cast<double>(after.steal - before.steal) / ticks : 0;
  Finding steal{"steal", fmt::format("{:.2f}%", stolen * 100), "", {{"share", stolen}}};
  if (stolen > kStolen) steal.advice = "the hypervisor gives these CPUs to others: prefer dedicated ones";
  return {noise, steal};
}

Finding CheckForkJoin(int threads) {
  const double region = ForkJoinSeconds(threads);
  return {"fork-join",
          fmt::format("region {:.2f} us", region * 1e6),
          region > 10e-6 ? "threads are late: use no more of them than cores, and close other programs" : "",
          {{"seconds", region}}};
}

// "barrier 0.06 us (p10 0.05, p90 0.30)", with this advice if it varies.
Finding PlacementFinding(const std::string& name, const std::string& what, const std::vector<double>& samples,
                         const std::string& advice) {
  constexpr double kStill = 1.5;
  const double p10 = Quantile(samples, 0.1), p50 = Quantile(samples, 0.5), p90 = Quantile(samples, 0.9);
  return {name,
          fmt::format("{} {:.2f} us (p10 {:.2f}, p90 {:.2f})", what, p50 * 1e6, p10 * 1e6, p90 * 1e6),
          p90 > kStill * p10 ? advice : "",
          {{"p10_seconds", p10}, {"p50_seconds", p50}, {"p90_seconds", p90}}};
}

// What passes from core to core, and whether two share one. Cores that are moved for minutes cannot be told
// from ones that stay where they are.
std::vector<Finding> CheckPlacement(int threads) {
  if (threads == 1) return {{"cores apart", "one thread", ""}};
  constexpr double kSeconds = 0.3;
  std::vector<double> barriers, arithmetic;
  for (const CorePlacement& placement : PlacementSamples(threads, kSeconds)) {
    barriers.push_back(placement.barrier_seconds);
    arithmetic.push_back(placement.arithmetic_seconds);
  }
  return {
      PlacementFinding("cores apart", "barrier", barriers,
                       "the host moves these CPUs: networks take longer while they are apart"),
      PlacementFinding("cores shared", "arithmetic", arithmetic,
                       "the host lets these CPUs share a core at times, with each other or with another")};
}

// What the graph tuner charges for bytes that another thread wrote.
Finding CheckCrossing(int threads) {
  if (threads == 1) return {"crossing", "one thread", ""};
  constexpr int64_t kBytes = 128 << 10;
  constexpr double kKibibytes = kBytes >> 10;
  const CrossingTiming timing = MeasureCrossing(kBytes, threads);
  return {"crossing",
          fmt::format("{:.0f} ns more for a KiB that another thread wrote, {:.0f} to write over it",
                      timing.Of(Crossing::kRead) / kKibibytes * 1e9,
                      timing.Of(Crossing::kWrite) / kKibibytes * 1e9),
          "",
          {{"read_seconds_per_byte", timing.Of(Crossing::kRead) / kBytes},
           {"write_seconds_per_byte", timing.Of(Crossing::kWrite) / kBytes},
           {"weights_seconds_per_byte", timing.Of(Crossing::kWeights) / kBytes}}};
}

Finding CheckPeak(const DevicePtr& machine) {
  const double peak = MeasureFmaPeak(machine->target(), machine->threads());
  if (peak == 0) return {"FMA peak", "no code for this ISA", ""};
  const double one = MeasureFmaPeak(machine->target(), 1);
  Finding finding{"FMA peak",
                  fmt::format("{:.0f} GFLOP/s, {:.0f} with one thread", peak * 1e-9, one * 1e-9),
                  "",
                  {{"flops", peak}, {"one_thread_flops", one}}};
  if (peak < 0.85 * one * machine->threads()) {
    finding.advice = "threads slow each other down: shared cores, or clocks that drop under load";
  }
  return finding;
}

Finding CheckBandwidth(const DevicePtr& machine) {
  const double bandwidth = MemoryReadBandwidth(machine);
  return {
      "memory reads", fmt::format("{:.1f} GB/s", bandwidth * 1e-9), "", {{"bytes_per_second", bandwidth}}};
}

}  // namespace

std::vector<double> FixedWorkSeconds(int threads, double seconds) {
  std::vector<std::vector<double>> samples;
  samples.resize(static_cast<size_t>(threads));
  for (auto& list : samples) list.reserve(static_cast<size_t>(seconds / 50e-6) + 1);
  std::vector<double> results;
  results.assign(static_cast<size_t>(threads), 1.0);
  RunOnTeam(threads, [&](int thread) {
    std::vector<double>& list = samples[static_cast<size_t>(thread)];
    const double begin = NowSeconds();
    for (double last = begin; last - begin < seconds && list.size() < list.capacity();) {
      results[static_cast<size_t>(thread)] = DependentChain(results[static_cast<size_t>(thread)]);
      const double now = NowSeconds();
      list.push_back(now - last);
      last = now;
    }
  });
  std::vector<double> all;
  for (const auto& list : samples) all.insert(all.end(), list.begin(), list.end());
  [[maybe_unused]] const volatile double used = results[0];  // or the chains could be left out
  return all;
}

double ForkJoinSeconds(int threads) {
  std::atomic<int> entered = 0;
  return SecondsPerCall(
      [&] { RunOnTeam(threads, [&](int) { entered.fetch_add(1, std::memory_order_relaxed); }); });
}

std::vector<CorePlacement> PlacementSamples(int threads, double seconds) {
  std::vector<CorePlacement> samples;
  for (const double begin = NowSeconds(); samples.empty() || NowSeconds() - begin < seconds;)
    samples.push_back(SeePlacement(threads));
  return samples;
}

double ReadBandwidth(int threads, int64_t bytes) {
  const AlignedBuffer buffer{static_cast<size_t>(bytes)};
  std::memset(buffer.data(), 1, static_cast<size_t>(bytes));  // pages of its own
  const auto* begin = static_cast<const char*>(buffer.data());
  std::atomic<int> found = 0;
  // memchr looks at every byte with the widest vectors the C library knows, and stores nothing.
  const auto read = [&] {
    RunOnTeam(threads, [&](int thread) {
      const TaskRange share = ShareOf(bytes, thread, threads);
      if (std::memchr(begin + share.begin, 2, static_cast<size_t>(share.end - share.begin)) != nullptr)
        ++found;
    });
  };
  read();
  return static_cast<double>(bytes) / LowerQuartile(TimeRuns(5, read));
}

double MemoryReadBandwidth(const DevicePtr& machine) {
  constexpr int64_t kMin = 256 << 20, kMax = int64_t{1} << 30;
  return ReadBandwidth(machine->threads(), std::clamp(4 * machine->target().l3_bytes, kMin, kMax));
}

std::vector<Finding> Checkup(const DevicePtr& machine, const cpu_set_t& usable) {
  const Target& cpu = machine->target();
  std::vector<Finding> findings;
  findings.push_back(CheckLoad());
  findings.push_back(
      {"CPU", cpu.model, cpu.model.starts_with(kEmulated) ? "answers hold, times mean nothing" : ""});
  findings.push_back(CheckIsa(machine));
  findings.push_back(
      {"caches",
       fmt::format("L1d {}, L2 {}, L3 {}", Bytes(cpu.l1d_bytes), Bytes(cpu.l2_bytes), Bytes(cpu.l3_bytes)),
       CachesAreKnown() ? "" : "the system does not tell: these are assumed",
       {{"l1d_bytes", static_cast<double>(cpu.l1d_bytes)},
        {"l2_bytes", static_cast<double>(cpu.l2_bytes)},
        {"l3_bytes", static_cast<double>(cpu.l3_bytes)}}});
  findings.push_back(CheckThreads(machine, usable));
  findings.push_back(CheckGovernor());
  findings.push_back(CheckOpenMp());
  findings.push_back(CheckHugePages());
  for (Finding& finding : CheckNoise(machine->threads())) findings.push_back(std::move(finding));
  findings.push_back(CheckForkJoin(machine->threads()));
  for (Finding& finding : CheckPlacement(machine->threads())) findings.push_back(std::move(finding));
  findings.push_back(CheckCrossing(machine->threads()));
  findings.push_back(CheckPeak(machine));
  findings.push_back(CheckBandwidth(machine));
  findings.push_back({"versions",
                      fmt::format("tilesmith {}, oneDNN {}, XGBoost {}, GCC {}", TILESMITH_VERSION,
                                  OneDnnVersion(), XgboostVersion(), __VERSION__),
                      ""});
  return findings;
}

}  // namespace tilesmith
