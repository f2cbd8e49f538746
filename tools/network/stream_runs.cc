#include "tools/network/stream_runs.h"

#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/executor.h"
#include "graph_tuner/planner/work.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/machine.h"
#include "tools/doctor/disturbance.h"

namespace tilesmith {
namespace {

// With several sides, how often each has its turn.
constexpr int kTurns = 4;

// What one stream did of one side.
struct CountedRuns {
  std::vector<StreamRun> runs;
  double seconds = 0;  // that its turns took
};

std::vector<Tensor> OutputsOf(const Graph& graph, const Layout& layout) {
  std::vector<Tensor> outputs;
  for (const Graph::NodeId id : graph.outputs())
    outputs.emplace_back(graph.node(id).shape, EndLayout(graph.node(id), layout));
  return outputs;
}

// A turn: runs for `warmup` seconds, then counts those that begin in the `seconds` after, or before the stop.
void TakeTurn(const std::function<void()>& run, double warmup, double seconds, int stream, int turn,
              const StopFlag* stop, CountedRuns& counted) {
  const double begin = NowSeconds() + warmup;
  while (NowSeconds() < begin) run();
  double now = NowSeconds();
  const double first = now;
  UnlessInterrupted([&] {
    for (; now < first + seconds; ThrowIfStopped(stop)) {
      const double began = now;
      run();
      now = NowSeconds();
      counted.runs.push_back({stream, turn * seconds + began - first, now - began});
    }
  });
  counted.seconds += now - first;
}

StreamTimes SumOf(const std::vector<CountedRuns>& streams, int64_t threads, double disturbed_share) {
  StreamTimes times{static_cast<int>(streams.size()), static_cast<int>(threads), {}, 0, disturbed_share};
  for (const CountedRuns& one : streams) {
    if (one.seconds > 0) times.runs_per_second += static_cast<double>(one.runs.size()) / one.seconds;
    times.runs.insert(times.runs.end(), one.runs.begin(), one.runs.end());
  }
  return times;
}

}  // namespace

StreamOptions StreamOptions::WithDefaults() const {
  const StreamOptions defaults;
  return {.streams = streams > 0 ? streams : defaults.streams,
          .seconds = seconds >= 0 ? seconds : defaults.seconds,
          .warmup_seconds = warmup_seconds >= 0 ? warmup_seconds : defaults.warmup_seconds};
}

void DeclareStreams(Args& args, StreamOptions* options) {
  args.Positive("--streams", &options->streams,
                "Sessions at the same time, each with its --threads on cores of its own");
  args.Duration("--duration", &options->seconds, "That runs of streams are counted for (default 2s)");
  args.Duration("--warmup", &options->warmup_seconds, "That they run before (default 500ms)");
}

double StreamTimes::LatencyQuantile(double fraction) const {
  std::vector<double> seconds;
  seconds.reserve(runs.size());
  for (const StreamRun& run : runs) seconds.push_back(run.seconds);
  return seconds.empty() ? 0 : Quantile(std::move(seconds), fraction);
}

OpenStream OpenNetwork(const Graph& graph, const Plan& plan, const DevicePtr& machine,
                       std::span<const Tensor> inputs, const StopFlag* stop) {
  RequireCpu(machine, "--streams");
  return [&graph, ends = plan.ends, inputs, stop, network = CompileNetwork(graph, plan, machine, stop)] {
    struct Session {
      Executor executor;
      std::vector<Tensor> from, to;
    };
    const auto session = std::make_shared<Session>(
        Executor(network, stop), InputsIn(ends.inputs, graph, {inputs.begin(), inputs.end()}),
        OutputsOf(graph, ends.outputs));
    return [session, from = PointersTo<const Tensor*>(session->from), to = PointersTo<Tensor*>(session->to)] {
      session->executor.Run(from, to);
    };
  };
}

std::vector<StreamTimes> TimeStreams(std::span<const OpenStream> sides, int64_t threads,
                                     const StreamOptions& options, const StopFlag* stop) {
  const std::vector<int>& cores = ProcessCores();
  if (options.streams > static_cast<int64_t>(cores.size()) / threads) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} streams of {} threads need {} cores, this process may use {}",
                            options.streams, threads, options.streams * threads, cores.size()));
  }
  const auto streams = static_cast<size_t>(options.streams);
  const int turns = sides.size() > 1 ? kTurns : 1;
  std::vector<std::vector<CountedRuns>> counted(sides.size(), std::vector<CountedRuns>(streams));
  std::vector<std::exception_ptr> errors(streams);
  std::barrier<> next_turn(static_cast<std::ptrdiff_t>(streams));
  std::atomic<bool> failed{false};
  const auto work = [&](size_t stream, std::vector<std::function<void()>>& runs) {
    PinTeam(std::span(cores).subspan(stream * static_cast<size_t>(threads), static_cast<size_t>(threads)));
    for (const OpenStream& open : sides) {
      runs.push_back(open());
      runs.back()();
    }
    for (int turn = 0; turn < turns; ++turn) {
      for (size_t side = 0; side < sides.size(); ++side) {
        next_turn.arrive_and_wait();
        if (failed) return;
        if (sides.size() > 1) std::this_thread::sleep_for(kTurnPause);
        TakeTurn(runs[side], options.warmup_seconds / turns, options.seconds / turns,
                 static_cast<int>(stream), turn, stop, counted[side][stream]);
      }
    }
  };
  MachineWatch watch;
  // A watch sees threads that live: all of them wait for it at the end.
  std::latch over(static_cast<std::ptrdiff_t>(streams)), watched(1);
  std::vector<std::thread> team;
  team.reserve(streams);
  for (size_t stream = 0; stream < streams; ++stream) {
    team.emplace_back([&, stream] {
      std::vector<std::function<void()>> runs;
      try {
        work(stream, runs);
      } catch (...) {
        errors[stream] = std::current_exception();
        failed = true;
      }
      next_turn.arrive_and_drop();
      over.count_down();
      watched.wait();
    });
  }
  over.wait();
  const double disturbed = watch.EndInterval().share();
  watched.count_down();
  for (std::thread& thread : team) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  std::vector<StreamTimes> times;
  times.reserve(sides.size());
  for (const std::vector<CountedRuns>& side : counted) times.push_back(SumOf(side, threads, disturbed));
  return times;
}

StreamTimes RunStreams(const Graph& graph, const Plan& plan, const DevicePtr& machine,
                       std::span<const Tensor> inputs, const StreamOptions& options, const StopFlag* stop) {
  const OpenStream sides[] = {OpenNetwork(graph, plan, machine, inputs, stop)};
  return TimeStreams(sides, machine->threads(), options, stop).front();
}

int64_t BatchOf(const Graph& graph) {
  const std::vector<Graph::NodeId> inputs = graph.GraphInputs();
  const bool has_one = !inputs.empty() && !graph.node(inputs[0]).shape.empty();
  return has_one ? graph.node(inputs[0]).shape[0] : 1;
}

std::vector<double> ParsePercentiles(const std::vector<std::string>& texts) {
  if (texts.empty()) return {50, 90, 99};
  std::vector<double> percentiles;
  for (const std::string& text : texts) {
    size_t read = 0;
    double value = 0;
    try {
      value = std::stod(text, &read);
    } catch (const std::exception&) {
      read = 0;
    }
    if (read == 0 || read != text.size() || !(value > 0) || !(value <= 100))
      throw Error(ErrorCode::kUsage,
                  fmt::format("--percentile must be above 0 and at most 100, got {}", text));
    percentiles.push_back(value);
  }
  return percentiles;
}

void AddStreamTimes(Report& report, const StreamTimes& times, int64_t batch,
                    std::span<const double> percentiles) {
  report.Fact("streams", "streams", CountCell(times.streams));
  report.Fact("threads_each", "  threads each", CountCell(times.threads));
  report.Fact("runs_counted", "runs", CountCell(static_cast<int64_t>(times.runs.size())));
  report.Fact("runs_per_second", "runs/s", RealCell(times.runs_per_second, 1));
  report.Fact("images_per_second", "images/s",
              RealCell(times.runs_per_second * static_cast<double>(batch), 1));
  Table table("latencies", "", {{"percentile", "percentile"}, {"seconds", "latency ms"}});
  for (const double percentile : percentiles)
    table.AddRow({RealCell(percentile, percentile == static_cast<int64_t>(percentile) ? 0 : 2),
                  MillisecondsCell(times.LatencyQuantile(percentile / 100))});
  report.AddTable(std::move(table));
}

std::string LatencyCsv(const StreamTimes& times) {
  std::string text = "stream,begin_seconds,seconds\n";
  for (const StreamRun& run : times.runs)
    text += fmt::format("{},{:.9f},{:.9f}\n", run.stream, run.begin_seconds, run.seconds);
  return text;
}

}  // namespace tilesmith
