#include "tools/bench/bench_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/planner/network_run.h"
#include "graph_tuner/planner/plan_network.h"
#include "graph_tuner/planner/work.h"
#include "layouts/base/error.h"
#include "templates/cuda_device/cudnn_library.h"
#include "tools/cli/conditions.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/records.h"
#include "tools/cli/results_file.h"
#include "tools/network/input_files.h"
#include "tools/network/outputs.h"
#include "tuner/precision.h"
#include "tuner/records/record_groups.h"
#include "tuner/tune.h"

namespace tilesmith {
namespace {

// The workloads are one, those of a network, or those of some suites.
std::vector<ConvTask> TasksOf(const Targets& targets, const Plan& plan) {
  if (targets.is_network()) return TasksOf(plan);
  return targets.tasks;
}

class GpuBench {
 public:
  GpuBench(const BenchModelRequest& request, const WorkSinks& sinks)
      : request_(request), sinks_(sinks), machine_(request.machine) {}

  BenchedGpu Run() {
    const Targets targets = LoadTargets(request_.targets);
    if (!request_.plan_path.empty() && !targets.is_network())
      throw Error(ErrorCode::kUsage, "--plan needs a MODEL; give --log for workloads");
    if (!request_.log_path.empty())
      best_ =
          BestRecords(RecordsIn(request_.precision, LoadUsableRecords(request_.log_path, machine_->target())),
                      machine_->target());
    if (targets.is_network())
      bench_.plan = request_.plan_path.empty() && !best_.empty()
                        ? PlanOfFastest(targets.graphs.front(), machine_, FastestOf(best_))
                        : OpenPlan(request_.plan_path, targets.graphs.front(), machine_);
    try {
      bench_.cudnn = cuda::CudnnVersion();
    } catch (const Error& error) {
      bench_.refusal = error.what();
    }
    bench_.cold = request_.conditions.value_or(true);
    bench_.in_bf16 = in_bf16();
    bench_.stopped = !UnlessInterrupted([&] {
      BenchTasks(TasksOf(targets, bench_.plan));
      if (targets.is_network()) BenchWhole(targets.graphs.front());
    });
    return std::move(bench_);
  }

 private:
  Schedule ScheduleOf(const ConvWorkload& workload) const {
    const std::string key = WorkloadToString(workload);
    for (const NodePlan& node : bench_.plan.nodes) {
      if (node.record && WorkloadToString(node.record->workload) == key)
        return ScheduleIn(*node.record, !request_.plan_path.empty());
    }
    if (const auto found = best_.find(key); found != best_.end()) {
      const auto best =
          std::ranges::min_element(found->second, {}, [](const auto& entry) { return entry.second.seconds; });
      return ScheduleIn(best->second, false);
    }
    if (in_bf16()) {
      const auto narrow = TemplatesToTune(workload, machine_->target(), {}, DataType::kBf16);
      if (!narrow.empty())
        return {std::string(narrow[0]->Name()), narrow[0]->Default(workload, machine_->target()), "default"};
    }
    const Record record = DefaultRecord(workload, machine_->target(), 1);
    return {record.template_name, record.config, "default"};
  }

  bool in_bf16() const { return request_.precision == Precision::kBf16; }
  DataType cudnn_type() const { return in_bf16() ? DataType::kBf16 : DataType::kF32; }

  void BenchTasks(const std::vector<ConvTask>& tasks) {
    double logs = 0;
    int compared = 0;
    for (const ConvTask& task : tasks) {
      ThrowIfStopped(sinks_.stop);
      sinks_.Stage(
          fmt::format("{}/{} {}", bench_.rows.size() + 1, tasks.size(), WorkloadToString(task.workload)));
      const GpuDuel duel = {
          .seconds = request_.seconds, .cold = bench_.cold, .type = cudnn_type(), .stop = sinks_.stop};
      bench_.rows.push_back({task, BenchGpuConv(task.workload, ScheduleOf(task.workload), machine_, duel,
                                                !bench_.cudnn.empty())});
      if (!bench_.rows.back().bench.cudnn) continue;
      logs += std::log(bench_.rows.back().bench.ratio.median);
      bench_.geomean = std::exp(logs / ++compared);
    }
  }

  // In a layout; none where cuDNN has none of the workloads in it.
  std::optional<Plan> CudnnPlan(const Graph& graph, int64_t block, int64_t* guests) {
    std::map<std::string, Record> records;
    bool any = false;
    Plan plan = PlanOfRecords(
        graph, machine_->target(), 1, [&](const ConvWorkload& workload) -> std::optional<Record> {
          if (!NeedsRecord(workload)) return std::nullopt;
          const auto [found, is_new] = records.try_emplace(WorkloadToString(workload));
          if (!is_new) return found->second;
          sinks_.Stage(fmt::format("cuDNN, {}", found->first));
          std::string refusal;
          GpuTensors tensors(workload, machine_);
          const std::optional<CudnnChoice> choice =
              FastestCudnn(workload, tensors, machine_, bench_.cold, {cudnn_type(), block}, &refusal);
          found->second = DefaultRecord(workload, machine_->target(), 1);
          if (!choice) return found->second;
          any = true;
          found->second.template_name = choice->schedule.template_name;
          found->second.config = choice->schedule.config;
          found->second.layouts = choice->layouts;
          return found->second;
        });
    if (!any) return std::nullopt;
    *guests = std::ranges::count_if(plan.nodes, [](const NodePlan& node) {
      return node.record && node.record->template_name != "cudnn";
    });
    return plan;
  }

  void BenchWhole(const Graph& graph) {
    sinks_.Stage("the whole network");
    struct Chain {
      std::string layout;
      int64_t guests = 0;
      std::unique_ptr<NetworkRun> run;
    };
    NetworkRun ours(graph, bench_.plan, machine_, SeededInputs(graph, 1), sinks_.stop);
    ours.Run();
    std::vector<Chain> chains;
    for (const int64_t block : {1, 0}) {
      if (bench_.cudnn.empty()) break;
      Chain chain{.layout = block == 1 ? "NCHW" : "NHWC", .run = nullptr};
      const std::optional<Plan> plan = CudnnPlan(graph, block, &chain.guests);
      if (!plan) continue;
      chain.run = std::make_unique<NetworkRun>(graph, *plan, machine_, SeededInputs(graph, 1), sinks_.stop);
      chain.run->Run();
      CheckOutputs(ours, *chain.run);
      chains.push_back(std::move(chain));
    }
    std::vector<Contestant> contestants{{"ours", [&] { ours.RunAgain(); }, {}}};
    for (const Chain& chain : chains)
      contestants.push_back({chain.layout, [run = chain.run.get()] { run->RunAgain(); }, {}});
    DuelOptions options = NetworkDuel(request_.network_seconds, 1, {});
    options.stop = sinks_.stop;
    const DuelRounds rounds = RunDuel(contestants, options).rounds;
    GpuNetworkBench& network = bench_.network.emplace();
    network.seconds = DuelSeconds(rounds, 0);
    for (size_t i = 0; i < chains.size(); ++i) {
      const double seconds = DuelSeconds(rounds, i + 1);
      if (network.cudnn_seconds > 0 && seconds >= network.cudnn_seconds) continue;
      network.cudnn_seconds = seconds;
      network.cudnn_layout = chains[i].layout;
      network.guests = chains[i].guests;
      network.ratio = RatioOf(rounds, 0, i + 1);
    }
  }

  void CheckOutputs(const NetworkRun& ours, const NetworkRun& theirs) const {
    const double difference = LargestDifference(ours.Outputs(), theirs.Outputs());
    // Each side rounds to the type on its own, layer after layer.
    const double allowed = kAllowedOutputDifference * (in_bf16() ? 100 : machine_->target().tf32 ? 10 : 1);
    if (difference <= allowed) return;
    throw Error(ErrorCode::kWrongAnswer,
                fmt::format("outputs differ from those of cuDNN's chain by {:.1e} of the largest value "
                            "(allowed: {:.1e})",
                            difference, allowed));
  }

  const BenchModelRequest& request_;
  const WorkSinks& sinks_;
  const DevicePtr& machine_;
  BestByWorkload best_;
  BenchedGpu bench_;
};

std::vector<Cell> CudnnCells(const GpuConvBench& bench) {
  if (!bench.cudnn) return {NoCell(), TextCell(bench.refusal), NoCell(), NoCell(), NoCell(), NoCell()};
  return {MillisecondsCell(bench.cudnn->seconds),
          TextCell(bench.cudnn->text + (bench.with_relu ? ", with ReLU" : "")),
          TextCell(bench.cudnn->layouts.in.ToString()),
          RatioCell(bench.ratio.median),
          RatioCell(bench.ratio.p10),
          RatioCell(bench.ratio.p90)};
}

}  // namespace

BenchedGpu BenchGpu(const BenchModelRequest& request, const WorkSinks& sinks) {
  return GpuBench(request, sinks).Run();
}

Table GpuBenchTable(const BenchedGpu& bench) {
  Table table("rows", "",
              {{"workload", "workload"},
               {"count", "count", 3},
               {"gflop", "GFLOP", 5},
               {"ours_seconds", "ours ms"},
               {"cudnn_seconds", "cuDNN ms"},
               {"cudnn_algorithm", "its algorithm", 2},
               {"cudnn_layout", "its layout", 5},
               {"ratio", "ratio", 0},
               {"ratio_p10", "p10", 4},
               {"ratio_p90", "p90", 4},
               {"template", "template", 2},
               {"layouts", "layouts", 5},
               {"schedule", "schedule", 4},
               {"config", ""}});
  for (const GpuBenchRow& row : bench.rows) {
    const ConvWorkload& workload = row.bench.workload;
    std::vector<Cell> cells = {TextCell(WorkloadToString(workload)), CountCell(row.task.count),
                               GflopCell(workload.flops()), MillisecondsCell(row.bench.seconds)};
    for (Cell& cell : CudnnCells(row.bench)) cells.push_back(std::move(cell));
    cells.push_back(TextCell(row.bench.schedule.template_name));
    cells.push_back(TextCell(LayoutsText(row.bench.layouts)));
    cells.push_back(TextCell(row.bench.schedule.origin));
    cells.push_back(KnobsCell(row.bench.schedule.config));
    table.AddRow(std::move(cells));
  }
  return table;
}

void AddGpuBench(Report& report, const BenchedGpu& bench, const DevicePtr& machine) {
  report.Fact("cudnn", "cuDNN", TextCell(bench.cudnn.empty() ? bench.refusal : bench.cudnn));
  report.Fact("products", "products",
              TextCell(bench.in_bf16            ? "bf16"
                       : machine->target().tf32 ? "TF32"
                                                : "f32"));
  report.Fact("weights", "inputs and weights", TextCell(bench.cold ? "cold" : "warm"));
  report.AddTable(GpuBenchTable(bench));
  report.Fact("geomean_ratio", "geometric mean ratio",
              bench.geomean > 0 ? RatioCell(bench.geomean) : NoCell());
  if (bench.network) {
    const GpuNetworkBench& network = *bench.network;
    const bool beside = network.cudnn_seconds > 0;
    report.Fact("network_seconds", "whole network, ours ms", MillisecondsCell(network.seconds));
    report.Fact("network_cudnn_seconds", "  cuDNN's chain ms",
                beside ? MillisecondsCell(network.cudnn_seconds) : NoCell());
    report.Fact("network_cudnn_layout", "  its layout", beside ? TextCell(network.cudnn_layout) : NoCell());
    report.Fact("network_cudnn_guests", "  convolutions of ours in it",
                beside ? CountCell(network.guests) : NoCell());
    report.Fact(
        "network_ratio", "  ratio",
        beside ? Cell{network.ratio.median, fmt::format("{:.2f} ({:.2f} to {:.2f})", network.ratio.median,
                                                        network.ratio.p10, network.ratio.p90)}
               : NoCell());
    report.Fact("network_predicted_seconds", "  predicted ms",
                bench.plan.predicted_seconds > 0 ? MillisecondsCell(bench.plan.predicted_seconds) : NoCell());
  }
  AddOrigin(report.details(), machine->target());
}

}  // namespace tilesmith
