#include "graph_tuner/problem/network_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/plan/plan.h"
#include "graph_tuner/plan/price_plan.h"
#include "layouts/base/check.h"
#include "layouts/base/settings.h"
#include "layouts/base/some_names.h"
#include "ops/base/quantization.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

constexpr size_t kNamesShown = 5;  // workloads in a message

bool IsFused(const std::vector<Record>& records) { return !records.empty() && records[0].workload.fused(); }

void KeepUnfused(Candidates& candidates) {
  std::erase_if(candidates, [](const auto& entry) { return IsFused(entry.second); });
}

Candidates AcceptedCandidates(const Graph& graph, const std::vector<Record>& records,
                              const GraphTuneOptions& options) {
  FindSolver(options.solver);  // an unknown one is told before minutes of measuring
  CheckAccuracyLimits(options.accuracy);
  const std::vector<Record> accepted = AcceptedRecords(options.accuracy, records);
  return FindCandidates(graph, RecordsIn(options.precision, accepted), options.cpu, options.threads);
}

// The candidates a uniform schedule may use.
std::vector<Record> Uniform(const std::vector<Record>& records, const Layout& layout) {
  auto reads = [&](const Record& r) { return HasOrder(r.workload.input_shape(), r.layouts.in, layout); };
  auto writes = [&](const Record& r) { return HasOrder(r.workload.output_shape(), r.layouts.out, layout); };
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

// A workload without records in these types keeps what it has.
std::vector<Record> OfPrecision(Precision precision, const std::vector<Record>& records) {
  std::vector<Record> kept = RecordsIn(precision, records);
  return kept.empty() ? records : kept;
}

// Tasks that need a record keep what they cannot do without.
void LeaveOut(const std::string& template_name, Candidates& candidates) {
  const auto is_of_it = [&](const Record& record) { return record.template_name == template_name; };
  for (auto& [workload, records] : candidates)
    if (IsFused(records) || !NeedsRecord(records.front().workload) || !std::ranges::all_of(records, is_of_it))
      std::erase_if(records, is_of_it);
  std::erase_if(candidates, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace

NetworkProblem::NetworkProblem(const Graph& graph, const std::vector<Record>& records, CostSource& costs,
                               GraphTuneOptions options)
    : NetworkProblem(graph, AcceptedCandidates(graph, records, options), costs, options) {}

NetworkProblem::NetworkProblem(const Graph& graph, Candidates usable, CostSource& costs,
                               GraphTuneOptions options)
    : NetworkProblem(graph, MakeUsable(graph, std::move(usable), options), costs, options, {}) {}

std::shared_ptr<const NetworkProblem::Usable> NetworkProblem::MakeUsable(const Graph& graph,
                                                                         Candidates candidates,
                                                                         const GraphTuneOptions& options) {
  Usable usable{std::move(candidates), {}};
  size_t choosable = 0;
  for (const auto& [workload, records] : usable.candidates) {
    if (records.empty()) usable.defaults.push_back(workload);
    choosable += options.fusion || !IsFused(records);
  }
  if (!usable.defaults.empty() && !options.allow_defaults) {
    const double most = options.accuracy.max_error;
    throw Error(
        ErrorCode::kNoCandidate,
        fmt::format(
            "{}: the log has no usable record, for this machine ({}) and {} thread{}{}{}, of {} "
            "of {} workloads: {}; {}`tilesmith tune {} -o LOG`, going on with the log, with the sizes, "
            "threads, instructions and templates asked for here, adds them",
            graph.name(), IsaName(options.cpu.isa), options.threads, options.threads == 1 ? "" : "s",
            options.accuracy.forbidden_templates.empty() ? "" : " without forbidden templates",
            std::isfinite(most) ? fmt::format(" with an error of at most {} ({})", most, settings::kMaxError)
                                : "",
            usable.defaults.size(), choosable, SomeNames(usable.defaults, kNamesShown),
            std::isfinite(most) ? "allow a larger error, or " : "",
            options.model.empty() ? graph.name() : options.model));
  }
  for (const std::string& workload : usable.defaults)
    usable.candidates[workload] = {DefaultRecord(ParseWorkload(workload), options.cpu, options.threads)};
  return std::make_shared<const Usable>(std::move(usable));
}

NetworkProblem::NetworkProblem(const Graph& graph, std::shared_ptr<const Usable> usable, CostSource& costs,
                               GraphTuneOptions options, Restriction restriction)
    : graph_(&graph),
      costs_(&costs),
      options_(std::move(options)),
      usable_(std::move(usable)),
      restriction_(std::move(restriction)),
      candidates_(usable_->candidates) {
  if (!options_.fusion) KeepUnfused(candidates_);
  if (!restriction_.without_template.empty()) LeaveOut(restriction_.without_template, candidates_);
  if (restriction_.precision)
    for (auto& [workload, list] : candidates_) list = OfPrecision(*restriction_.precision, list);
  layouts_ = LayoutsOf(graph, candidates_);
  layouts_.ends = options_.ends;
  if (restriction_.uniform) {
    for (auto& [workload, list] : candidates_) list = Uniform(list, *restriction_.uniform);
    layouts_.all = {Layout::Nchw(), *restriction_.uniform};
  }
  if (restriction_.fastest_records)
    for (auto& [workload, list] : candidates_) list = {Fastest(list)};

  const auto crossings_at = [&](CostSource& source) {
    const bool even_only = restriction_.even_shares || options_.even_shares;
    return std::make_unique<Crossings>(graph, source, options_.cpu, options_.threads, even_only);
  };
  CostQuestions questions;
  const std::unique_ptr<Crossings> asking = crossings_at(questions);
  BuildProblem(DealAll(candidates_, *asking), layouts_, *asking);
  questions.Ask(costs, options_.progress);
  crossings_ = crossings_at(costs);
  dealt_ = DealAll(candidates_, *crossings_);
}

NetworkProblem NetworkProblem::Restricted(const Restriction& restriction) const {
  return {*graph_, usable_, *costs_, options_, restriction};
}

int64_t NetworkProblem::UsableRecords() const {
  int64_t records = -static_cast<int64_t>(usable_->defaults.size());
  for (const auto& [workload, list] : usable_->candidates) records += static_cast<int64_t>(list.size());
  return records;
}

PricedProblem NetworkProblem::At(const Corrections& corrections, const Prices& prices) const {
  const ConvPrice price{.weights = {prices.seconds_per_weight_byte, options_.cpu},
                        .seconds_per_square = prices.seconds_per_error_square,
                        .errors = &options_.errors};
  return {BuildProblem(dealt_, layouts_, *crossings_, corrections, price), corrections, prices};
}

Solution NetworkProblem::Solve(const LayoutProblem& problem) const {
  Solution solution = FindSolver(options_.solver).solve(problem, options_.limits);
  if (!solution.solved())
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("{}: solver \"{}\": {}", graph_->name(), options_.solver, solution.refusal));
  return solution;
}

SolvedProblem NetworkProblem::Solve(const Corrections& corrections, const Prices& prices) const {
  SolvedProblem solved{At(corrections, prices), {}};
  solved.solution = Solve(solved.priced.built.problem);
  return solved;
}

std::string NetworkProblem::Certificate(const std::string& solved) const {
  std::string text = solved;
  const size_t defaults = usable_->defaults.size();
  if (restriction_.fastest_records) text += " with every workload's fastest record";
  if (restriction_.even_shares) text += " in even shares";
  if (!restriction_.without_template.empty())
    text += " among schedules without " + restriction_.without_template;
  if (restriction_.precision)
    text += fmt::format(" among schedules in {}", PrecisionName(*restriction_.precision));
  if (restriction_.uniform) text += " among schedules uniformly in " + restriction_.uniform->ToString();
  if (defaults > 0) text += fmt::format(", but {} workloads run their unmeasured default schedule", defaults);
  return text;
}

Plan NetworkProblem::PlanOf(const PricedProblem& priced, const Solution& solution) const {
  Plan plan;
  plan.network = graph_->name();
  plan.graph_hash = GraphHash(*graph_);
  plan.target = options_.cpu;
  plan.threads = options_.threads;
  plan.ends = options_.ends;
  plan.accuracy = options_.accuracy;
  plan.solver = solution.solver.empty() ? options_.solver : std::string(solution.solver);
  plan.certificate = Certificate(solution.certificate);
  plan.nodes = ChosenNodes(*graph_, priced.built, solution.assignment);
  PricePlan(*graph_, *costs_, plan, priced.corrections);
  double seconds = plan.predicted_seconds;
  if (const double price = priced.prices.seconds_per_weight_byte; price > 0) {
    const double bytes = PackedWeightBytes(plan, options_.cpu);
    plan.certificate +=
        fmt::format(" among plans with at most {:.1f} MiB of packed weights", bytes / (1 << 20));
    seconds += price * bytes;
  }
  if (options_.errors.any()) {
    plan.certificate += fmt::format(" among plans with a predicted output error of at most {:.2g}",
                                    std::sqrt(options_.errors.Of(plan)));
    seconds += priced.prices.seconds_per_error_square * options_.errors.Of(plan);
  }
  TILESMITH_CHECK(std::abs(seconds - solution.cost) <= kCostRounding * std::abs(solution.cost),
                  "{}: the plan costs {:.12g} s, its solution {:.12g} s", graph_->name(), seconds,
                  solution.cost);
  return plan;
}

double ConvPrice::Of(const std::string& conv, const Record& record) const {
  const double squares = seconds_per_square > 0 ? errors->Of(conv, record) : 0;
  return weights.Of(record) + seconds_per_square * squares;
}

TolerantLayouts LayoutsOf(const Graph& graph, const Candidates& candidates) {
  TolerantLayouts layouts{{Layout::Nchw()}, {}};
  auto add = [&](const Layout& layout) {
    if (std::find(layouts.all.begin(), layouts.all.end(), layout) == layouts.all.end())
      layouts.all.push_back(layout);
  };
  // Tensors of bytes have their own type in every layout (TensorLayout).
  const auto order = [](const Layout& layout) {
    return IsByte(layout.type()) ? layout.WithType(DataType::kF32) : layout;
  };
  for (const auto& [workload, records] : candidates) {
    for (const Record& record : records) {
      add(order(record.layouts.in));
      add(order(record.layouts.out));
    }
  }
  for (Graph::NodeId id = 0; id < graph.size(); ++id)
    if (const std::optional<Layout> layout = graph.node(id).op->DefaultLayout()) add(*layout);
  std::sort(layouts.all.begin() + 1, layouts.all.end());
  return layouts;
}

std::vector<NodePlan> ChosenNodes(const Graph& graph, const BuiltProblem& built,
                                  const Assignment& assignment) {
  std::vector<NodePlan> nodes;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view type = graph.node(id).op->Type();
    if (type == "Constant" || type == "Input") continue;
    const NodeVariables& vars = built.nodes[id];
    const auto in = static_cast<size_t>(assignment[*vars.in]),
               out = static_cast<size_t>(assignment[*vars.out]);
    NodePlan plan;
    plan.node = graph.node(id).name;
    plan.op_type = type;
    if (!vars.out_layouts[out]) {
      plan.fused_into = graph.node(graph.Consumers(id).at(0)).name;
      nodes.push_back(std::move(plan));
      continue;
    }
    plan.split = vars.out_owners[out].split;
    if (vars.records.empty()) {
      plan.layouts = NodeLayouts(graph, id, *vars.in_layouts[in], *vars.out_layouts[out]);
    } else {
      const Record* record = vars.records[in][out];
      TILESMITH_CHECK(record, "{} has no candidate for the chosen layouts", plan.node);
      plan.record = *record;
      plan.layouts = record->layouts;
    }
    nodes.push_back(std::move(plan));
  }
  return nodes;
}

}  // namespace tilesmith
