#include "tools/network/stream_runs.h"

#include <fmt/format.h>

#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/executor.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/quantile.h"
#include "tools/doctor/machine_watch.h"

namespace tilesmith {
namespace {

// What all streams look at.
struct StreamStart {
  explicit StreamStart(std::ptrdiff_t streams) : ready(streams) {}
  std::barrier<> ready;
  std::atomic<bool> failed{false};  // some stream could not be made ready
};

std::vector<Tensor> OutputsOf(const Graph& graph, const Layout& layout) {
  std::vector<Tensor> outputs;
  for (const Graph::NodeId id : graph.outputs())
    outputs.emplace_back(graph.node(id).shape, EndLayout(graph.node(id), layout));
  return outputs;
}

// Runs until `end`; of each run when it began and how long it took.
std::vector<StreamRun> RunUntil(double end, double begin, int stream, const std::function<void()>& run) {
  std::vector<StreamRun> runs;
  while (NowSeconds() < end) {
    const double began = NowSeconds();
    run();
    runs.push_back({stream, began - begin, NowSeconds() - began});
  }
  return runs;
}

}  // namespace

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

StreamTimes RunStreams(const Graph& graph, const Plan& plan, const DevicePtr& machine,
                       std::span<const Tensor> inputs, const StreamOptions& options, const StopFlag* stop) {
  const std::vector<int>& cores = ProcessCores();
  const int64_t threads = machine->threads();
  if (options.streams > static_cast<int64_t>(cores.size()) / threads) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} streams of {} threads need {} cores, this process may use {}",
                            options.streams, threads, options.streams * threads, cores.size()));
  }
  const auto streams = static_cast<size_t>(options.streams);
  const std::shared_ptr<const CompiledNetwork> network = CompileNetwork(graph, plan, machine, stop);
  std::vector<std::vector<StreamRun>> runs(streams);
  std::vector<std::exception_ptr> errors(streams);
  StreamStart start(static_cast<std::ptrdiff_t>(streams));
  const auto work = [&](size_t stream, bool& is_ready) {
    PinTeam(std::span(cores).subspan(stream * static_cast<size_t>(threads), static_cast<size_t>(threads)));
    Executor executor(network, stop);
    std::vector<Tensor> from = InputsIn(plan.ends.inputs, graph, {inputs.begin(), inputs.end()});
    std::vector<Tensor> to = OutputsOf(graph, plan.ends.outputs);
    const auto inputs_of_run = PointersTo<const Tensor*>(from);
    const auto outputs_of_run = PointersTo<Tensor*>(to);
    const auto run = [&] { executor.Run(inputs_of_run, outputs_of_run); };
    run();
    is_ready = true;
    start.ready.arrive_and_wait();
    if (start.failed) return;
    const double begin = NowSeconds() + options.warmup_seconds;
    RunUntil(begin, begin, static_cast<int>(stream), run);
    runs[stream] = RunUntil(begin + options.seconds, begin, static_cast<int>(stream), run);
  };
  MachineWatch watch;
  std::vector<std::thread> team;
  for (size_t stream = 0; stream < streams; ++stream) {
    team.emplace_back([&, stream] {
      bool is_ready = false;
      try {
        work(stream, is_ready);
      } catch (...) {
        errors[stream] = std::current_exception();
        start.failed = true;
        if (!is_ready) start.ready.arrive_and_drop();
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  StreamTimes times{static_cast<int>(streams), static_cast<int>(threads), {}, 0, watch.EndInterval().share()};
  for (const std::vector<StreamRun>& one : runs) {
    if (one.empty()) continue;
    times.runs_per_second +=
        static_cast<double>(one.size()) / (one.back().begin_seconds + one.back().seconds);
    times.runs.insert(times.runs.end(), one.begin(), one.end());
  }
  return times;
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
