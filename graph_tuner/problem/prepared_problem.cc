#include "graph_tuner/problem/prepared_problem.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "graph_tuner/plan/price_plan.h"
#include "layouts/base/check.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

std::vector<std::string> WithoutCandidates(const Candidates& candidates) {
  std::vector<std::string> missing;
  for (const auto& [workload, records] : candidates)
    if (records.empty()) missing.push_back(workload);
  return missing;
}

[[noreturn]] void ThrowMissing(const std::vector<std::string>& missing, const Graph& graph, size_t workloads,
                               const GraphTuneOptions& options) {
  throw Error(ErrorCode::kNoCandidate,
              fmt::format("{}: the log has no usable record, for this machine and {} threads, of {} of {} "
                          "workloads: {}; `tilesmith tune {} -o LOG` fills it",
                          graph.name(), options.threads, missing.size(), workloads, fmt::join(missing, ", "),
                          options.model));
}

bool IsFused(const std::vector<Record>& records) { return !records.empty() && records[0].workload.fused(); }

// The candidates a uniform schedule may use.
std::vector<Record> Uniform(const std::vector<Record>& records, const Layout& layout) {
  auto reads = [&](const Record& r) { return SameForm(r.workload.input_shape(), r.layouts.in, layout); };
  auto writes = [&](const Record& r) { return SameForm(r.workload.output_shape(), r.layouts.out, layout); };
  std::vector<Record> both, writing;
  for (const Record& record : records) {
    if (!writes(record)) continue;
    writing.push_back(record);
    if (reads(record)) both.push_back(record);
  }
  if (IsFused(records)) return both;  // the layers can run one by one instead
  return !both.empty() ? both : !writing.empty() ? writing : records;
}

Record Fastest(const std::vector<Record>& records) {
  return *std::min_element(records.begin(), records.end(), IsBetterRecord);
}

std::string Certificate(const std::string& solved, size_t defaults, const GraphTuneOptions& options) {
  std::string text = solved;
  if (options.fastest_records) text += " with every workload's fastest record";
  if (options.uniform) text += " among schedules uniformly in " + options.uniform->ToString();
  if (defaults > 0) text += fmt::format(", but {} workloads run their unmeasured default schedule", defaults);
  return text;
}

}  // namespace

PreparedProblem PrepareProblem(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                               const GraphTuneOptions& options) {
  FindSolver(options.solver);  // an unknown one is told before minutes of measuring
  CheckAccuracyLimits(options.accuracy);
  PreparedProblem prepared;
  Candidates& candidates = prepared.candidates;
  candidates =
      FindCandidates(graph, AcceptedRecords(options.accuracy, records), options.cpu, options.threads);
  if (!options.fusion) std::erase_if(candidates, [](const auto& entry) { return IsFused(entry.second); });
  prepared.defaults = WithoutCandidates(candidates);
  if (!prepared.defaults.empty() && !options.allow_defaults)
    ThrowMissing(prepared.defaults, graph, candidates.size(), options);
  for (const std::string& workload : prepared.defaults)
    candidates[workload] = {DefaultRecord(ParseWorkload(workload), options.cpu, options.threads)};
  prepared.layouts = LayoutsOf(candidates);
  prepared.layouts.ends = options.ends;
  if (options.uniform) {
    for (auto& [workload, list] : candidates) list = Uniform(list, *options.uniform);
    prepared.layouts.all = {Layout::Nchw(), *options.uniform};
  }
  if (options.fastest_records)
    for (auto& [workload, list] : candidates) list = {Fastest(list)};

  CostQuestions questions;
  BuildProblem(graph, candidates, prepared.layouts, questions);
  questions.Ask(costs, options.progress);
  SetWeightPrice(graph, prepared, costs, options, 0);
  return prepared;
}

void SetWeightPrice(const Graph& graph, PreparedProblem& prepared, CostSource& costs,
                    const GraphTuneOptions& options, double price) {
  prepared.weight_price = {price, options.cpu};
  prepared.built = BuildProblem(graph, prepared.candidates, prepared.layouts, costs, options.corrections,
                                prepared.weight_price);
}

Solution SolveProblem(const Graph& graph, const LayoutProblem& problem, const GraphTuneOptions& options) {
  Solution solution = FindSolver(options.solver).solve(problem, options.limits);
  if (!solution.solved())
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("{}: solver \"{}\": {}", graph.name(), options.solver, solution.refusal));
  return solution;
}

Plan PlanOf(const Graph& graph, const PreparedProblem& prepared, const Solution& solution, CostSource& costs,
            const GraphTuneOptions& options) {
  Plan plan;
  plan.network = graph.name();
  plan.graph_hash = GraphHash(graph);
  plan.target = TargetOf(options.cpu);
  plan.threads = options.threads;
  plan.ends = options.ends;
  plan.accuracy = options.accuracy;
  plan.solver = options.solver;
  plan.certificate = Certificate(solution.certificate, prepared.defaults.size(), options);
  plan.nodes = ChosenNodes(graph, prepared.built, solution.assignment);
  PricePlan(graph, costs, plan, options.corrections);
  double seconds = plan.predicted_seconds;
  if (const double price = prepared.weight_price.seconds_per_byte; price > 0) {
    const double bytes = PackedWeightBytes(plan, options.cpu);
    plan.certificate +=
        fmt::format(" among plans with at most {:.1f} MiB of packed weights", bytes / (1 << 20));
    seconds += price * bytes;
  }
  TILESMITH_CHECK(std::abs(seconds - solution.cost) <= 1e-9 * std::abs(solution.cost),
                  "{}: the plan costs {:.12g} s, its solution {:.12g} s", graph.name(), seconds,
                  solution.cost);
  return plan;
}

}  // namespace tilesmith
