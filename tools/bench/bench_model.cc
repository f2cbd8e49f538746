#include "tools/bench/bench_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/planner/network_run.h"
#include "graph_tuner/planner/plan_network.h"
#include "graph_tuner/planner/work.h"
#include "layouts/base/error.h"
#include "templates/base/fma_peak.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/conv_bench.h"
#include "tools/bench/our_conv.h"
#include "tools/cli/conditions.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/doctor/checkup.h"
#include "tools/network/input_files.h"
#include "tools/onednn/onednn.h"
#include "tools/peers/onnx_runtime.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

class ModelBench {
 public:
  ModelBench(const BenchModelRequest& request, const WorkSinks& sinks)
      : request_(request), sinks_(sinks), machine_(request.machine) {}

  BenchedModel Run() {
    if (request_.compiled && request_.targets.model.model.empty()) return RunCompiled();
    const Targets targets = LoadTargets(request_.targets);
    if (!request_.plan_path.empty() && !targets.is_network())
      throw Error(ErrorCode::kUsage, "--plan needs a MODEL; give --log for workloads");
    CheckAccuracyLimits(request_.accuracy);
    if (!request_.log_path.empty())
      records_ = AcceptedRecords(request_.accuracy, LoadUsableRecords(request_.log_path, machine_->target()));
    std::erase_if(records_, [&](const Record& record) {
      return !record.workload.bytes && IsNarrow(record) != (type_ == DataType::kBf16);
    });
    if (targets.is_network() && type_ != DataType::kF32)
      throw Error(ErrorCode::kUsage,
                  "bench's --precision bf16 is for a WORKLOAD or --suite on this device, not for a MODEL");
    const std::string library = NamedOnnxRuntime(request_.onnxruntime).value_or("");
    if (targets.is_network() && !library.empty()) RequireOnnxRuntime(library);
    bench_.cold_weights =
        ColdWeights(request_.conditions, targets.tasks, targets.is_network(), machine_->target());
    const auto& compiled = request_.compiled;
    if (compiled) RequireSource(*compiled, request_.targets.model, targets.graphs.front());
    if (targets.is_network()) bench_.plan = FindPlan(targets.graphs.front());
    if (compiled) RequireSource(*compiled, request_.plan_path, bench_.plan);
    const PinnedTeam team(machine_);
    PrepareOneDnn(*machine_);
    WarnIfDisturbed(machine_, sinks_);
    bench_.type = type_;
    const bool bytes = std::ranges::all_of(
        targets.tasks, [](const ConvTask& task) { return task.workload.bytes.has_value(); });
    bench_.peak_type = bytes && !targets.tasks.empty() ? DataType::kI8 : type_;
    bench_.peak_flops = PeakNow();
    bench_.stopped = !UnlessInterrupted(
        [&] { targets.suites.empty() ? BenchTasks(targets) : BenchSuites(targets.suites); });
    // A core that the host kept to itself then may be back.
    bench_.peak_flops = bench_.view.peak_flops = std::max(bench_.peak_flops, PeakNow());
    for (SuiteBench& suite : bench_.suites) suite.view.peak_flops = bench_.peak_flops;
    return std::move(bench_);
  }

 private:
  // A file alone.
  BenchedModel RunCompiled() {
    const CompiledOrigin& origin = request_.compiled->origin;
    bench_.plan.network = origin.network;
    bench_.plan.graph_hash = origin.graph_hash;
    bench_.plan.solver = "compiled";
    bench_.plan.certificate = request_.compiled->path;
    bench_.plan.predicted_seconds = origin.predicted_seconds;
    const PinnedTeam team(machine_);
    WarnIfDisturbed(machine_, sinks_);
    bench_.peak_flops = PeakNow();
    bench_.stopped = !UnlessInterrupted([&] { BenchWhole(nullptr); });
    if (bench_.network) bench_.network->plan_hash = origin.plan_hash;
    bench_.peer_refusal = kUnknownModel;
    return std::move(bench_);
  }

  double PeakNow() const { return MeasureFmaPeak(machine_->target(), machine_->threads(), bench_.peak_type); }

  void BenchTasks(const Targets& targets) {
    bench_.view = {request_.against == "direct", bench_.peak_flops};
    if (targets.is_network() && by_log()) WarnOfMissing(targets.tasks, Fastest(bench_.cold_weights, {}));
    Measure(targets.is_network() ? TasksOf(bench_.plan) : targets.tasks, bench_.cold_weights, bench_.rows);
    bench_.geomean = TotalsOf(bench_.rows, bench_.view).geomean;
    if (!targets.is_network()) return;
    BenchWhole(&targets.graphs.front());
    BenchBesidePeer();
  }

  void BenchSuites(const std::vector<Suite>& suites) {
    for (Suite suite : suites) {
      std::vector<ConvTask> tasks;
      tasks.reserve(suite.rows.size());
      for (const SuiteRow& row : suite.rows) tasks.push_back(row.task);
      suite.cold_weights = ColdWeights(request_.conditions, tasks.front());
      const bool direct = request_.against.empty() ? suite.against_direct : request_.against == "direct";
      bench_.suites.push_back({std::move(suite), {}, {direct, bench_.peak_flops}});
      SuiteBench& result = bench_.suites.back();
      Measure(tasks, result.suite.cold_weights, result.rows);
      bench_.geomean = GeometricMeanRatio(bench_.suites);
    }
  }

  BestByWorkload BestOf(bool cold, const AccuracyLimits& limits) const {
    std::vector<Record> records;
    std::ranges::copy_if(records_, std::back_inserter(records), [&](const Record& record) {
      return record.conditions.threads == machine_->threads() && record.conditions.cold_weights == cold &&
             Accepts(limits, record);
    });
    return BestRecords(records, machine_->target());
  }

  // Whether a network's schedules are the log's.
  bool by_log() const { return request_.plan_path.empty() && !request_.log_path.empty(); }

  Plan FindPlan(const Graph& graph) const {
    if (!by_log()) return OpenPlan(request_.plan_path, graph, machine_, {.strict = request_.strict});
    Plan plan = PlanOfFastest(graph, machine_, Fastest(bench_.cold_weights, {}));
    plan.quantization = request_.targets.model.quantization;
    return plan;
  }

  // The log's records of the wanted kind of weights come first.
  FastestByWorkload Fastest(bool cold, const AccuracyLimits& limits) const {
    FastestByWorkload fastest = FastestOf(BestOf(cold, limits));
    fastest.merge(FastestOf(BestOf(!cold, limits)));
    return fastest;
  }

  // By canonical workload: the log's; of a plan the first schedule of a workload that it schedules
  // differently in different places.
  std::map<std::string, Schedule> FindSchedules(const FastestByWorkload& fastest) const {
    std::map<std::string, Schedule> schedules;
    for (const NodePlan& node : bench_.plan.nodes) {
      if (!node.record) continue;
      schedules.insert(
          {WorkloadToString(node.record->workload), ScheduleIn(*node.record, !request_.plan_path.empty())});
    }
    for (const auto& [workload, record] : fastest) schedules.insert({workload, ScheduleIn(record, false)});
    return schedules;
  }

  void WarnOfMissing(const std::vector<ConvTask>& tasks, const FastestByWorkload& fastest) const {
    const int64_t missing = std::ranges::count_if(
        tasks, [&](const ConvTask& task) { return !fastest.contains(WorkloadToString(task.workload)); });
    if (missing == 0) return;
    sinks_.Warn(
        fmt::format("{} has no usable record of {} of {} convolutions, which run in default schedules",
                    request_.log_path, missing, tasks.size()));
  }

  void Measure(const std::vector<ConvTask>& tasks, bool cold, std::vector<BenchRow>& rows) {
    AccuracyLimits limits;
    if (!tasks.empty()) limits.forbidden_templates = tasks.front().forbidden_templates;  // alike in a suite
    const FastestByWorkload fastest = Fastest(cold, limits);
    const std::map<std::string, Schedule> schedules = FindSchedules(fastest);
    const BestByWorkload best = BestOf(cold, limits);
    if (bench_.plan.nodes.empty() && !request_.log_path.empty()) WarnOfMissing(tasks, fastest);
    const DuelOptions duel = {
        .seconds = request_.seconds, .cold = cold, .threads = machine_->threads(), .stop = sinks_.stop};
    for (const ConvTask& task : tasks) {
      ThrowIfStopped(sinks_.stop);
      const std::string key = WorkloadToString(task.workload);
      sinks_.Stage(fmt::format("{}/{} {}", rows.size() + 1, tasks.size(), key));
      const auto found = schedules.find(key);
      const Schedule schedule = found != schedules.end()
                                    ? found->second
                                    : DefaultSchedule(task.workload, machine_->target(), type_);
      std::optional<SeparateSchedules> separate;
      if (task.workload.fused()) separate = FastestSeparate(task.workload, best, machine_->target());
      bench_.watch.Skip();
      ConvBench bench = BenchConv(task.workload, schedule, machine_, duel, separate ? &*separate : nullptr);
      rows.push_back({task, std::move(bench), bench_.watch.EndInterval().share()});
    }
  }

  NetworkRun OursOf(const Graph* graph) const {
    if (!request_.compiled) return {*graph, bench_.plan, machine_, SeededInputs(*graph, 1), sinks_.stop};
    const auto& network = request_.compiled->network;
    return {network, bench_.plan, SeededInputs(network->inputs, 1), sinks_.stop};
  }

  // graph: null where it is not known.
  void BenchWhole(const Graph* graph) {
    std::map<std::string, OneDnnAlgorithm> fastest;
    for (const BenchRow& row : bench_.rows) {
      if (const OneDnnSide* side = row.bench.Fastest())
        fastest[WorkloadToString(row.bench.workload.main_conv())] = side->algorithm;
    }
    const auto choose = [&](const ConvWorkload& workload) {
      const auto found = fastest.find(WorkloadToString(workload));
      return found == fastest.end() ? OneDnnAlgorithm::kAuto : found->second;
    };
    sinks_.Stage("the whole network");
    NetworkRun run = OursOf(graph);
    DuelOptions options = NetworkDuel(request_.network_seconds, machine_->threads(), bench_.plan.placement);
    options.stop = sinks_.stop;
    bench_.watch.Skip();
    std::optional<NetworkRun> untuned;
    if (graph && (!request_.plan_path.empty() || bench_.plan.solver != "heuristic")) {
      const Plan plan = HeuristicPlan(*graph, machine_->target(), machine_->threads());
      untuned.emplace(*graph, plan, machine_, SeededInputs(*graph, 1), sinks_.stop);
    }
    const OurNetworks ours{run, untuned ? &*untuned : nullptr};
    bench_.read_bytes_per_second = MemoryReadBandwidth(machine_);
    bench_.network = BenchNetwork(graph, ours, choose, machine_->target(), options);
    bench_.network->disturbed_share = bench_.watch.EndInterval().share();
  }

  void BenchBesidePeer() {
    const std::string library = FindOnnxRuntime(request_.onnxruntime);
    if (library.empty()) {
      bench_.peer_refusal =
          NamedOnnxRuntime(request_.onnxruntime) ? "left out" : "not here (tools/fetch-peers)";
      return;
    }
    sinks_.Stage("beside ONNX Runtime");
    const ScratchFolder scratch;
    std::string plan_path = request_.plan_path;
    if (by_log()) WritePlan(plan_path = scratch.File("plan.jsonl"), bench_.plan);
    try {
      bench_.peer = BenchPeer({.model = request_.targets.model,
                               .plan_path = plan_path,
                               .compiled = request_.compiled ? request_.compiled->path : "",
                               .machine = machine_,
                               .library = library,
                               .seconds = request_.network_seconds,
                               .stop = sinks_.stop});
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kEnvironment) throw;
      bench_.peer_refusal = error.what();
    }
  }

  const BenchModelRequest& request_;
  const WorkSinks& sinks_;
  const DevicePtr& machine_;
  // What both sides multiply, and store.
  const DataType type_ = request_.precision == Precision::kBf16 ? DataType::kBf16 : DataType::kF32;
  std::vector<Record> records_;
  BenchedModel bench_;
};

}  // namespace

BenchedModel BenchModel(const BenchModelRequest& request, const WorkSinks& sinks) {
  return ModelBench(request, sinks).Run();
}

void AddBench(Report& report, const BenchedModel& bench, const DevicePtr& machine) {
  report.Fact("threads", "threads", CountCell(machine->threads()));
  const bool bf16 = bench.type == DataType::kBf16;
  report.Fact("peak_flops",
              bench.peak_type == DataType::kI8 ? "int8 peak"
              : bf16 && machine->target().bf16 ? "bf16 peak"
                                               : "FMA peak",
              {bench.peak_flops, fmt::format("{:.0f} GFLOP/s", bench.peak_flops * 1e-9)});
  report.Fact("onednn", "oneDNN", TextCell(OneDnnVersion()));
  if (bf16 && !machine->target().bf16)
    report.Fact("onednn_type", "  computes in", TextCell("f32: its bf16 wants AVX-512 BF16"));
  if (!bench.suites.empty()) {
    AddSuites(report, bench.suites);
  } else {
    report.Fact("weights", "weights", TextCell(bench.cold_weights ? "cold" : "warm"));
    AddBenchRows(bench.rows.empty() ? report.details() : report, bench.rows, bench.view);
    if (bench.network) AddNetworkBench(report, bench.plan, *bench.network);
    if (bench.peer) AddPeerBench(report, *bench.peer);
    if (!bench.peer_refusal.empty()) report.Fact("onnxruntime", "ONNX Runtime", TextCell(bench.peer_refusal));
  }
  AddDisturbance(report, bench.watch.total());
  AddOrigin(report.details(), machine->target());
  if (bench.read_bytes_per_second > 0)
    report.details().Fact("read_bytes_per_second", "", {bench.read_bytes_per_second, "memory reads"});
}

Table BenchRowsTable(const BenchedModel& bench) {
  return bench.suites.empty() ? BenchTable(bench.rows, bench.view) : SuiteRowsTable(bench.suites);
}

std::string BenchTitle(const BenchedModel& bench) {
  const std::string type = bench.type == DataType::kBf16      ? " in bf16"
                           : bench.peak_type == DataType::kI8 ? " in int8"
                                                              : "";
  if (!bench.suites.empty()) return fmt::format("Classes of convolution{} beside oneDNN", type);
  return fmt::format("Convolutions{} beside oneDNN, weights {}", type, bench.cold_weights ? "cold" : "warm");
}

}  // namespace tilesmith
