// Several sessions of a network at once, each on cores of its own: how much a server gets done, and how long
// a request takes meanwhile.
#pragma once

#include <cstdint>
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
};
// --streams, --duration, --warmup.
void DeclareStreams(Args& args, StreamOptions* options);

// One run of one stream.
struct StreamRun {
  int stream = 0;
  double begin_seconds = 0, seconds = 0;  // since counting began; that it took
};

struct StreamTimes {
  int streams = 1, threads = 1;  // each with so many threads
  std::vector<StreamRun> runs;   // stream by stream
  double runs_per_second = 0;    // of all together: of each, its runs by the end of its last one
  double disturbed_share = 0;

  double LatencyQuantile(double fraction) const;  // in seconds; 0 without runs
};

// Stream i runs on the i-th so many of the process's cores. They share weights and code; activations and
// `inputs`, the graph's and plain, are each one's own. A run that has begun is finished and counted.
// Preconditions: the plan belongs to the graph and the machine. Throws Error(kUsage) when there are fewer
// cores, Error(kInterrupted) when stopped.
StreamTimes RunStreams(const Graph& graph, const Plan& plan, const DevicePtr& machine,
                       std::span<const Tensor> inputs, const StreamOptions& options,
                       const StopFlag* stop = nullptr);

// Of the first input; 1 where there is none.
int64_t BatchOf(const Graph& graph);

// Percentiles in (0, 100] of texts such as "99.9"; 50, 90 and 99 where there is none. Throws Error(kUsage).
std::vector<double> ParsePercentiles(const std::vector<std::string>& texts);

// Throughput, of runs of `batch` images, and latencies.
void AddStreamTimes(Report& report, const StreamTimes& times, int64_t batch,
                    std::span<const double> percentiles);
// "stream,begin_seconds,seconds" and a line for each run.
std::string LatencyCsv(const StreamTimes& times);

}  // namespace tilesmith
