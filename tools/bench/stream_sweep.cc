#include "tools/bench/stream_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/planner/network_run.h"
#include "graph_tuner/planner/work.h"
#include "layouts/base/error.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/doctor/disturbance.h"
#include "tools/peers/onnx_runtime.h"

namespace tilesmith {
namespace {

constexpr int64_t kMaxBatch = 8;
constexpr uint64_t kSeed = 1;

// 1, 2, 4, ... and the most.
std::vector<int64_t> PowersUpTo(int64_t most) {
  std::vector<int64_t> values;
  for (int64_t value = 1; value < most; value *= 2) values.push_back(value);
  values.push_back(most);
  return values;
}

// The file's plan for this graph and these threads, if there is any.
std::optional<Plan> FittingPlan(const std::string& path, const Graph& graph, const DevicePtr& machine) {
  if (path.empty()) return std::nullopt;
  const std::vector<Plan> plans = ReadPlans(path);
  const Plan* plan = PlanFor(plans, GraphHash(graph), machine->threads());
  if (plan == nullptr || plan->threads != machine->threads()) return std::nullopt;
  CheckPlan(*plan, graph, machine->target(), machine->threads());
  return *plan;
}

bool PeerTakes(const std::string& library, const std::string& onnx, const Graph& graph) {
  try {
    OpenOnnxRuntime(library, onnx, 1, graph, kSeed)->Run();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadModel) throw;
    return false;
  }
}

// Its threads stay on the cores of the thread that opens it. One opens at a time: the library reads variables
// of the environment, which the loader sets.
OpenStream OpenPeer(const std::string& library, const std::string& onnx, const Graph& graph, int threads) {
  return [&, threads, opening = std::make_shared<std::mutex>()] {
    const std::lock_guard lock(*opening);
    const std::shared_ptr<OnnxRuntimeModel> model = OpenOnnxRuntime(library, onnx, threads, graph, kSeed);
    return [model] { model->Run(); };
  };
}

Cell PeerCell(const SweepRow& row) {
  return row.peer ? RealCell(row.peer->runs_per_second * static_cast<double>(row.batch), 1) : NoCell();
}

std::string SettingText(const SweepRow& row) {
  return fmt::format("{} stream{} of {} thread{}, batch {}", row.streams, row.streams == 1 ? "" : "s",
                     row.threads, row.threads == 1 ? "" : "s", row.batch);
}

}  // namespace

void ParseSweep(const std::string& text, SweepRequest* request) {
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    bool* const varied = word == "threads"   ? &request->threads
                         : word == "batch"   ? &request->batch
                         : word == "streams" ? &request->streams
                                             : nullptr;
    if (varied == nullptr)
      throw Error(ErrorCode::kUsage,
                  fmt::format("--sweep takes threads, batch and streams, separated by commas, got {}", word));
    *varied = true;
  }
}

std::optional<double> SweepRow::ratio() const {
  return peer && peer->runs_per_second > 0 ? std::optional(times.runs_per_second / peer->runs_per_second)
                                           : std::nullopt;
}

std::vector<SweepRow> SweepStreams(const SweepRequest& request, const WorkSinks& sinks) {
  const DevicePtr widest = OpenMachine(request.machine);
  const int64_t cores = widest->target().cores;
  {
    const PinnedTeam team(widest);
    WarnIfDisturbed(widest, sinks);
  }
  const ScratchFolder scratch;
  std::vector<SweepRow> rows;
  UnlessInterrupted([&] {
    const std::vector<int64_t> batches =
        request.batch ? PowersUpTo(kMaxBatch) : std::vector{request.model.batch};
    for (const int64_t batch : batches) {
      ModelOptions model = request.model;
      model.batch = batch;
      const Graph graph = LoadModel(model);
      const std::vector<Tensor> inputs = SeededInputs(graph, kSeed);
      const std::string onnx =
          request.onnxruntime.empty() ? "" : OnnxFileOf(model, scratch.File("model.onnx"));
      const bool peer = !onnx.empty() && PeerTakes(request.onnxruntime, onnx, graph);
      for (const int64_t threads :
           request.threads ? PowersUpTo(widest->threads()) : std::vector<int64_t>{widest->threads()}) {
        MachineOptions options = request.machine;
        options.threads = threads;
        const DevicePtr machine = OpenMachine(options);
        const std::optional<Plan> fitting = FittingPlan(request.plan_path, graph, machine);
        const Plan plan = fitting ? *fitting : HeuristicPlan(graph, machine->target(), machine->threads());
        for (const int64_t streams :
             request.streams ? PowersUpTo(cores / threads) : std::vector{request.each.streams}) {
          ThrowIfStopped(sinks.stop);
          SweepRow row{threads, BatchOf(graph), streams, fitting.has_value(), {}};
          sinks.Stage(SettingText(row));
          StreamOptions each = request.each;
          each.streams = streams;
          std::vector<OpenStream> sides = {OpenNetwork(graph, plan, machine, inputs, sinks.stop)};
          if (peer) sides.push_back(OpenPeer(request.onnxruntime, onnx, graph, machine->threads()));
          std::vector<StreamTimes> times = TimeStreams(sides, threads, each, sinks.stop);
          row.times = std::move(times[0]);
          if (peer) row.peer = std::move(times[1]);
          rows.push_back(std::move(row));
        }
      }
    }
  });
  return rows;
}

Table SweepTable(const std::vector<SweepRow>& rows) {
  Table table("sweep", "",
              {{"threads", "threads", 0},
               {"batch", "batch", 0},
               {"streams", "streams", 0},
               {"images_per_second", "images/s", 0},
               {"onnxruntime_images_per_second", "ONNX Runtime", 1},
               {"ratio", "ratio", 0},
               {"p50_seconds", "p50 ms"},
               {"onnxruntime_p50_seconds", "its p50 ms", 3},
               {"p90_seconds", "p90 ms", 3},
               {"p99_seconds", "p99 ms", 2},
               {"runs", "runs", 4},
               {"schedule", "schedule", 3},
               {"disturbed_share", "disturbed", 2}});
  for (const SweepRow& row : rows)
    table.AddRow(
        {CountCell(row.threads), CountCell(row.batch), CountCell(row.streams),
         RealCell(row.images_per_second(), 1), PeerCell(row),
         row.ratio() ? RatioCell(*row.ratio()) : NoCell(), MillisecondsCell(row.times.LatencyQuantile(0.5)),
         row.peer ? MillisecondsCell(row.peer->LatencyQuantile(0.5)) : NoCell(),
         MillisecondsCell(row.times.LatencyQuantile(0.9)), MillisecondsCell(row.times.LatencyQuantile(0.99)),
         CountCell(static_cast<int64_t>(row.times.runs.size())), TextCell(row.planned ? "plan" : "default"),
         DisturbedCell(row.times.disturbed_share)});
  return table;
}

void AddSweep(Report& report, const std::vector<SweepRow>& rows) {
  report.AddTable(SweepTable(rows));
  if (rows.empty()) return;
  Disturbance all;
  for (const SweepRow& row : rows) all += {1, row.times.disturbed_share};  // each as long as the others
  AddDisturbance(report, all);
  const auto most = std::ranges::max_element(rows, {}, &SweepRow::images_per_second);
  const auto soonest =
      std::ranges::min_element(rows, {}, [](const SweepRow& row) { return row.times.LatencyQuantile(0.5); });
  report.Fact("most_images", "most images/s", TextCell(SettingText(*most)));
  report.Fact("lowest_latency", "lowest latency", TextCell(SettingText(*soonest)));
}

}  // namespace tilesmith
