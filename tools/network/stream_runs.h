// Several sessions of a network at once, each on cores of its own: how much a server gets done, and how long
// a request takes meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "layouts/base/stop_flag.h"
#include "layouts/tensor.h"
#include "ops/graph/graph.h"
#include "tools/cli/args.h"
#include "tools/cli/machine.h"
#include "tools/cli/report.h"

namespace tilesmith {

struct StreamOptions {
  int64_t streams = 1;
  double seconds = 2;           // that runs are counted for
  double warmup_seconds = 0.5;  // before

  // Of options that began as kNoStreams: whether any was given, and those that were not at their defaults.
  bool asked() const { return streams > 0 || seconds >= 0 || warmup_seconds >= 0; }
  StreamOptions WithDefaults() const;
};
inline constexpr StreamOptions kNoStreams = {.streams = 0, .seconds = -1, .warmup_seconds = -1};
// --streams, --duration, --warmup.
void DeclareStreams(Args& args, StreamOptions* options);

// One run of one stream.
struct StreamRun {
  int stream = 0;
  double begin_seconds = 0, seconds = 0;  // since counting began, others' turns left out; that it took
};

struct StreamTimes {
  int streams = 1, threads = 1;  // each with so many threads
  std::vector<StreamRun> runs;   // stream by stream
  double runs_per_second = 0;    // of all together: of each, its runs by the time its turns took
  double disturbed_share = 0;

  double LatencyQuantile(double fraction) const;  // in seconds; 0 without runs
};

// Until the threads of the side that had its turn stop looking for more work: ONNX Runtime 1.32's were seen
// to spin for 43 to 50 ms behind a run.
constexpr std::chrono::milliseconds kTurnPause{100};

// What streams run. Each stream's thread opens it for itself, pinned to the stream's cores, and destroys it.
using OpenStream = std::function<std::function<void()>()>;
// A network by a plan. The streams share weights and code; activations and `inputs`, the graph's and plain,
// are each one's own. Preconditions: the plan belongs to the graph and the machine; graph, plan and inputs
// outlive it.
OpenStream OpenNetwork(const Graph& graph, const Plan& plan, const DevicePtr& machine,
                       std::span<const Tensor> inputs, const StopFlag* stop = nullptr);

// Stream i runs on the i-th `threads` of the process's cores. Several sides take turns: all streams run the
// first, then all the second, and so on; each side has `options.seconds` in all. A run that has begun is
// finished and counted. Throws what a side throws, Error(kUsage) when there are fewer cores,
// Error(kInterrupted) when stopped.
std::vector<StreamTimes> TimeStreams(std::span<const OpenStream> sides, int64_t threads,
                                     const StreamOptions& options, const StopFlag* stop = nullptr);
// The times of a network alone, by TimeStreams.
StreamTimes RunStreams(const Graph& graph, const Plan& plan, const DevicePtr& machine,
                       std::span<const Tensor> inputs, const StreamOptions& options,
                       const StopFlag* stop = nullptr);

// The batch of the first input; 1 where there is none.
int64_t BatchOf(const Graph& graph);

// Percentiles in (0, 100] of texts such as "99.9"; 50, 90 and 99 where there is none. Throws Error(kUsage).
std::vector<double> ParsePercentiles(const std::vector<std::string>& texts);

// Throughput, of runs of `batch` images, and latencies.
void AddStreamTimes(Report& report, const StreamTimes& times, int64_t batch,
                    std::span<const double> percentiles);
// "stream,begin_seconds,seconds" and a line for each run.
std::string LatencyCsv(const StreamTimes& times);

}  // namespace tilesmith
