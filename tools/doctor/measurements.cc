#include "tools/doctor/measurements.h"

#include <cstring>

#include "layouts/base/thread_team.h"
#include "layouts/measure/quantile.h"
#include "layouts/measure/sampling.h"
#include "layouts/tensor.h"

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

}  // namespace tilesmith
