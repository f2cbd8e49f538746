#include "tools/network/explain_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "ops/conv/conv.h"
#include "tools/cli/targets.h"
#include "tools/log/log_tables.h"
#include "tools/network/prediction_report.h"

namespace tilesmith {
namespace {

using NodeId = Graph::NodeId;

NodeId NodeOf(const SolvedNetwork& solved, const NodePlan& schedule) {
  return solved.graph().Find(schedule.node).value();
}

double SumOf(const ExplainedChoice& option, std::initializer_list<TermKind> kinds) {
  double sum = 0;
  for (const CostTerm& term : option.terms)
    if (std::ranges::find(kinds, term.kind) != kinds.end()) sum += term.seconds;
  return sum;
}

std::string GivenText(const ExplainedPlan& explained, NodeId node) {
  const Plan& plan = explained.given->plan;
  return ChoiceText(*explained.graph, plan, NodePlanOf(*explained.graph, plan, node));
}

std::string MarkText(bool best, bool given) {
  return best && given ? "best, plan" : best ? "best" : given ? "plan" : "";
}

void AddOptionTable(Report& report, const ExplainedPlan& explained,
                    const std::vector<ExplainedChoice>& options, const std::optional<NodeChoice>& given) {
  const SolvedNetwork& solved = *explained.solved;
  Table& table = report.AddTable({"options",
                                  "every way to compute it, and what the network then pays more elsewhere",
                                  {{"mark", ""},
                                   {"reads", "reads"},
                                   {"writes", "writes"},
                                   {"split", "dealt by", 1},
                                   {"fused", "fused", 3},
                                   {"template", "template", 2},
                                   {"own_seconds", "own ms"},
                                   {"crossing_seconds", "crossing ms", 2},
                                   {"input_seconds", "input side", 3},
                                   {"output_seconds", "output side", 3},
                                   {"elsewhere_seconds", "elsewhere", 3},
                                   {"total_seconds", "network ms"},
                                   {"off_seconds", "off ms", 0},
                                   {"config", "config", 4}}});
  for (const ExplainedChoice& option : options) {
    const NodePlan &schedule = option.schedule, &kernel = option.kernel;
    const bool alone = schedule.fused_into.empty();
    const bool best = option.choice == options[0].choice, is_given = given == option.choice;
    table.AddRow(
        {TextCell(MarkText(best, is_given)), TextCell(kernel.layouts.in.ToString()),
         alone ? TextCell(schedule.layouts.out.ToString()) : NoCell(),
         TextCell(std::string(SplitName(kernel.split))), TextCell(FusedText(solved.graph(), schedule)),
         kernel.record ? TextCell(kernel.record->template_name) : NoCell(),
         MillisecondsCell(schedule.predicted_seconds - schedule.crossing_seconds),
         MillisecondsCell(schedule.crossing_seconds), MoreCell(SumOf(option, {TermKind::kInputTransform})),
         MoreCell(SumOf(option, {TermKind::kOutputTransform})),
         MoreCell(SumOf(option, {TermKind::kOtherNode, TermKind::kOtherCrossing, TermKind::kOtherTransform})),
         MillisecondsCell(option.total_seconds),
         MoreCell(option.total_seconds - solved.best.predicted_seconds),
         kernel.record ? KnobsCell(kernel.record->config) : NoCell()});
  }
}

void AddWhy(Report& report, const ExplainedPlan& explained, const ExplainedChoice& best,
            const ExplainedChoice& other, size_t most_terms) {
  const SolvedNetwork& solved = *explained.solved;
  const std::string text = ChoiceText(solved.graph(), other);
  AddTerms(report, "what changes with " + text, other.terms, most_terms);
  report.Fact("why_not", "why not", TextCell(text));
  report.Fact("why", "", TextCell(InequalityText(solved.graph(), best, other)));
  const double off = other.total_seconds - best.total_seconds;
  const double share = best.total_seconds > 0 ? off / best.total_seconds : 0;
  report.Fact("off_seconds", "off ms", MoreCell(off));
  report.Fact("off_fraction", "off", {share, fmt::format("{:.2f}% of the network", share * 100)});
}

void AddTries(Report& report, const LayoutTries& tries) {
  const bool tried = tries.trials > 0;
  report.Fact("tried", "  tried", {tried, tried ? "yes" : "no"});
  report.Fact("trials", "  trials", CountCell(tries.trials));
  report.Fact("records", "  records", CountCell(tries.records));
  report.Fact("failures", "  failures", FailuresCell(tries.failures));
  if (tries.inaccurate > 0) report.Fact("inaccurate", "  not accurate enough", CountCell(tries.inaccurate));
  if (tries.ignored > 0)
    report.Fact("ignored", "  of other machines, threads or weights", CountCell(tries.ignored));
  report.Fact("layout_best_seconds", "  best ms",
              tries.best ? MillisecondsCell(tries.best->seconds) : NoCell());
}

// Why no option of a node has a layout.
std::string WhyMissing(const ExplainedPlan& explained, NodeId node, const Layout& layout) {
  const SolvedNetwork& solved = *explained.solved;
  const std::vector<Layout>& considered = solved.problem.layouts().all;
  const std::string name = layout.ToString();
  if (solved.graph().node(node).op->Type() == "Conv") {
    if (explained.tries.templates.empty()) return "no template computes this convolution in " + name;
    return explained.tries.trials > 0 ? "no trial of it worked" : "it was never tried";
  }
  if (std::ranges::find(considered, layout) != considered.end())
    return fmt::format("{} does not run in {} here", solved.graph().node(node).op->Type(), name);
  return fmt::format("no candidate of any convolution has {}, so no other node is considered in it", name);
}

// The network, its best total, and how far off the given plan is.
void AddTotals(Report& report, const ExplainedPlan& explained) {
  const SolvedNetwork& solved = *explained.solved;
  const double best = solved.best.predicted_seconds;
  report.Fact("network", "network", TextCell(solved.best.network));
  report.Fact("solver", "solver", TextCell(solved.best.solver));
  report.Fact("certificate", "certificate", TextCell(solved.best.certificate));
  report.Fact("predicted_seconds", "best plan ms", KnownMillisecondsCell(KnownPrediction(solved.best)));
  report.Fact("costs", "costs",
              TextCell(explained.given ? "corrected by what the plan says" : "from the log"));
  if (!explained.given) return;
  const GivenPlan& given = *explained.given;
  report.Fact("plan_seconds", "given plan ms", KnownMillisecondsCell(KnownPrediction(given.plan)));
  report.Fact("plan_layouts_seconds", "  with this log", MillisecondsCell(given.layouts_seconds));
  report.Fact("plan_off_seconds", "  off ms", MoreCell(given.layouts_seconds - best));
  report.Fact("plan_missing", "  nodes this log has not so", CountCell(static_cast<int64_t>(given.missing)));
}

// The region that a node is in, and why that ends with it, or why it is in none.
void AddRegion(Report& report, const RegionFacts& facts) {
  constexpr double kKibibyte = 1024;
  const auto kibibytes = [](int64_t bytes) {
    return Cell{bytes, fmt::format("{:.1f}", static_cast<double>(bytes) / kKibibyte)};
  };
  if (facts.region == 0) {
    report.Fact("region", "region", {0, "none"});
  } else {
    const std::string nodes = fmt::format("{}, of {} to {}, {} nodes", facts.region, facts.nodes.front(),
                                          facts.nodes.back(), facts.nodes.size());
    report.Fact("region", "region", {facts.region, nodes});
    report.Fact("region_band_rows", "  rows of its last node in a band", CountCell(facts.band_rows));
    report.Fact("region_bytes", "  buffers of each thread KiB", kibibytes(facts.region_bytes));
    report.Fact("region_buffer_rows", "  rows of the node's own", CountCell(facts.buffer_rows));
    report.Fact("region_buffer_bytes", "  KiB of the node's own", kibibytes(facts.buffer_bytes));
    report.Fact("region_is_whole", "  its result exists whole",
                {facts.is_whole, facts.is_whole ? "yes" : "no"});
    report.Fact("region_computed_rows", "  rows computed, by all threads", CountCell(facts.computed_rows));
    report.Fact("region_result_rows", "  rows of its result", CountCell(facts.result_rows));
  }
  if (facts.apart.empty()) return;
  Table& table = report.AddTable({"region_ends",
                                  facts.region == 0 ? "why it is in no region" : "why the region ends here",
                                  {{"why", "why"}}});
  for (const std::string& why : facts.apart) table.AddRow({TextCell(why)});
}

// Every way to compute a node, and why not another one: what the given plan has or, where that is the best,
// the runner-up.
void AddNode(Report& report, const ExplainedPlan& explained, size_t most_terms) {
  const SolvedNetwork& solved = *explained.solved;
  const std::vector<ExplainedChoice>& options = explained.options;
  const ExplainedChoice& best = options.at(0);
  const NodeId node = NodeOf(solved, best.schedule);
  const std::optional<NodeChoice> given = GivenChoice(explained, node);
  report.Fact("node", "node", TextCell(best.schedule.node));
  report.Fact("op", "op", TextCell(solved.graph().node(node).op->Signature()));
  report.Fact("chosen", "best plan has", TextCell(ChoiceText(solved.graph(), best)));
  if (explained.given) {
    report.Fact("given", "given plan has",
                TextCell(GivenText(explained, node) + (given ? "" : ", which this log has not")));
    if (explained.given->region) AddRegion(report, *explained.given->region);
  }
  AddOptionTable(report, explained, options, given);
  const bool runner_up = !given || given == best.choice;
  const auto other = std::ranges::find_if(options, [&](const ExplainedChoice& option) {
    return option.choice != best.choice && (runner_up || given == option.choice);
  });
  if (other == options.end())
    report.Note("there is no other way to compute it");
  else
    AddWhy(report, explained, best, *other, most_terms);
}

// The database is left out: it may know the task from so many trials that none would be made.
std::string TuneCommand(const ConvWorkload& workload, const LayoutTries& tries,
                        const GraphTuningArguments& arguments) {
  const std::string& log = arguments.log_path;
  const MachineOptions& machine = arguments.machine;
  std::string command = fmt::format("tilesmith tune {} -o {} --trials {} --no-db", WorkloadToString(workload),
                                    log.empty() ? "LOG" : log + " --resume", TrialsToCoverLayouts(tries));
  if (tries.cold_weights) command += " --conditions cold";
  if (machine.threads > 0) command += fmt::format(" --threads {}", machine.threads);
  if (!machine.max_isa.empty()) command += " --max-isa " + machine.max_isa;
  if (machine.target != kCpuDevice) command += " --target " + machine.target;
  return command;
}

// A layout that the user asks about: was it tried, and how far off is it.
void AddLayout(Report& report, const ExplainedPlan& explained, const GraphTuningArguments& arguments,
               const Layout& layout) {
  const SolvedNetwork& solved = *explained.solved;
  const std::vector<ExplainedChoice>& options = explained.options;
  const NodeId node = NodeOf(solved, options.at(0).schedule);
  const auto has_layout = [&](const ExplainedChoice& option) {
    return HasLayout(solved.graph(), solved.built(), {node, option.choice}, layout);
  };
  const auto* const conv = solved.graph().As<ConvOp>(node);
  report.Fact("layout", "asked for", TextCell(layout.ToString()));
  if (conv) AddTries(report, explained.tries);
  const auto closest = std::ranges::find_if(options, has_layout);
  if (closest == options.end()) {
    report.Fact("layout_missing", "  not considered", TextCell(WhyMissing(explained, node, layout)));
    if (conv && !explained.tries.templates.empty())
      report.Fact("try", "  to try it", TextCell(TuneCommand(conv->workload(), explained.tries, arguments)));
    return;
  }
  report.Fact("layout_choice", "  best with it", TextCell(ChoiceText(solved.graph(), *closest)));
  report.Fact("layout_total_seconds", "  network ms", MillisecondsCell(closest->total_seconds));
  report.Fact("layout_off_seconds", "  off ms",
              MoreCell(closest->total_seconds - solved.best.predicted_seconds));
  if (closest != options.begin())
    report.Fact("layout_why", "", TextCell(InequalityText(solved.graph(), options[0], *closest)));
}

// A row for each node that has a choice.
void AddSummary(Report& report, const ExplainedPlan& explained, size_t most_terms) {
  const SolvedNetwork& solved = *explained.solved;
  if (explained.given) AddTerms(report, "what the given plan pays more", explained.given->terms, most_terms);
  if (explained.given) AddRegions(report, explained.given->plan);
  if (explained.given && !explained.given->no_regions.empty())
    report.Fact("regions", "regions", {0, "none: " + explained.given->no_regions});
  Table& table = report.AddTable({"nodes",
                                  "every node that has a choice",
                                  {{"node", "node"},
                                   {"op", "op", 2},
                                   {"own_seconds", "own ms", 2},
                                   {"chosen", "best plan"},
                                   {"other", explained.given ? "given plan" : "runner-up", 0},
                                   {"off_seconds", "off ms", 0}}});
  for (const ExplainedNode& node : explained.nodes) {
    const std::string other = explained.given ? GivenText(explained, NodeOf(solved, node.best))
                                              : ChoiceText(solved.graph(), *node.other);
    table.AddRow(
        {TextCell(node.best.node), TextCell(node.best.op_type), MillisecondsCell(node.best.predicted_seconds),
         TextCell(ChoiceText(solved.graph(), solved.best, node.best)), TextCell(other),
         node.other ? MoreCell(node.other->total_seconds - solved.best.predicted_seconds) : NoCell()});
  }
  const size_t fixed = solved.best.nodes.size() - explained.nodes.size();
  if (fixed > 0) report.Note(fmt::format("nodes without a choice: {}", fixed));
}

// A row for each convolution: was the layout tried, and how far off is the best choice that has it.
void AddLayoutSummary(Report& report, const ExplainedPlan& explained, const Layout& layout) {
  const SolvedNetwork& solved = *explained.solved;
  report.Fact("uniform_seconds", layout.ToString() + " wherever possible, ms",
              MillisecondsCell(explained.uniform_seconds));
  report.Fact("uniform_off_seconds", "  off ms",
              MoreCell(explained.uniform_seconds - solved.best.predicted_seconds));
  Table& table = report.AddTable({"convolutions",
                                  "its convolutions in " + layout.ToString(),
                                  {{"node", "node"},
                                   {"chosen", "best plan"},
                                   {"choice", "best with " + layout.ToString(), 0},
                                   {"own_seconds", "own ms", 2},
                                   {"off_seconds", "off ms", 0},
                                   {"trials", "trials", 2},
                                   {"failures", "failures", 2}}});
  for (const auto& [best, closest, tries] : explained.convolutions) {
    table.AddRow({TextCell(best.node), TextCell(ChoiceText(solved.graph(), solved.best, best)),
                  closest ? TextCell(ChoiceText(solved.graph(), *closest)) : NoCell(),
                  closest ? MillisecondsCell(closest->schedule.predicted_seconds) : NoCell(),
                  closest ? MoreCell(closest->total_seconds - solved.best.predicted_seconds) : NoCell(),
                  CountCell(tries.trials), FailuresCell(tries.failures)});
  }
}

// A row for each of the best plans: how far off it is, and what it computes in other layouts.
void AddPlans(Report& report, const ExplainedPlan& explained, size_t most_terms) {
  const SolvedNetwork& solved = *explained.solved;
  Table& table = report.AddTable({"plans",
                                  "the best plans, and where they differ from the best",
                                  {{"rank", "plan"},
                                   {"total_seconds", "network ms"},
                                   {"off_seconds", "off ms"},
                                   {"changed_nodes", "nodes changed"},
                                   {"changes", "what is changed", 0}}});
  const std::vector<RankedPlan>& plans = explained.plans;
  for (size_t i = 0; i < plans.size(); ++i) {
    const std::vector<NodeChange>& changes = plans[i].changes;
    const size_t shown = std::min(changes.size(), most_terms);
    std::vector<std::string> texts;
    texts.reserve(shown);
    for (size_t c = 0; c < shown; ++c)
      texts.push_back(fmt::format("{} {} (not {})", changes[c].here.node,
                                  ChoiceText(solved.graph(), plans[i].plan, changes[c].here),
                                  ChoiceText(solved.graph(), solved.best, changes[c].best)));
    if (shown < changes.size()) texts.push_back(fmt::format("{} more", changes.size() - shown));
    const double total = plans[i].plan.predicted_seconds;
    table.AddRow({CountCell(static_cast<int64_t>(i) + 1), MillisecondsCell(total),
                  MoreCell(total - solved.best.predicted_seconds),
                  CountCell(static_cast<int64_t>(changes.size())), NamesCell(std::move(texts))});
  }
}

constexpr size_t kShownTerms = 3;  // of each side of an inequality; the others are added up
constexpr double kNothing = 5e-8;  // seconds that four decimals of a millisecond do not show

std::string Milliseconds(double seconds) { return fmt::format("{:.4f}", seconds * 1e3); }

// What a term is about, in an inequality: "conv2 slower in NCHW16c", "conv2 crossing in NHWC by rows".
std::string AboutText(const CostTerm& term, bool of_best) {
  const std::string form = FormText(of_best ? term.first : term.second) +
                           SplitText(of_best ? term.first_split : term.second_split);
  switch (term.kind) {
    case TermKind::kNode:
    case TermKind::kOtherNode:
      return term.node + " slower in " + form;
    case TermKind::kCrossing:
    case TermKind::kOtherCrossing:
      return term.node + " crossing in " + form;
    default:
      return term.node + " " + form;
  }
}

std::string ChoiceText(const Graph& graph, const NodePlan& schedule, const NodePlan& kernel) {
  const std::string fused = FusedText(graph, schedule);
  const std::string text = FormText(kernel.layouts) + SplitText(kernel.split);
  if (!schedule.fused_into.empty()) return fused + " of " + text;
  return fused.empty() ? text : text + " " + fused;
}

std::string PartText(TermKind kind) {
  switch (kind) {
    case TermKind::kNode:
      return "itself";
    case TermKind::kCrossing:
      return "its crossing between threads";
    case TermKind::kInputTransform:
      return "transform of what it reads";
    case TermKind::kOutputTransform:
      return "transform of what it writes";
    case TermKind::kOtherNode:
      return "another node";
    case TermKind::kOtherCrossing:
      return "another's crossing";
    case TermKind::kOtherTransform:
      return "another transform";
  }
  return "";
}

// One side of an inequality.
struct Side {
  std::string choice;
  double own_seconds = 0;
  std::vector<CostTerm> dearer;  // where this side's plan pays more
  bool is_best = false;          // the best plan's, whose layouts come first in terms
};

std::string SideText(Side side) {
  std::ranges::stable_sort(side.dearer, {}, [](const CostTerm& term) { return -std::abs(term.seconds); });
  std::string text = fmt::format("{}: {}", side.choice, Milliseconds(side.own_seconds));
  double sum = side.own_seconds, rest = 0;
  size_t shown = 0;
  for (const CostTerm& term : side.dearer) {
    const double seconds = std::abs(term.seconds);
    sum += seconds;
    if (shown == kShownTerms || seconds < kNothing) {
      rest += seconds;
      continue;
    }
    ++shown;
    text += fmt::format(" + {} ({})", Milliseconds(seconds), AboutText(term, side.is_best));
  }
  if (rest >= kNothing)
    text += fmt::format(" + {} ({} more)", Milliseconds(rest), side.dearer.size() - shown);
  return sum - side.own_seconds < kNothing ? text : text + " = " + Milliseconds(sum);
}

}  // namespace

void AddExplanation(Report& report, const ExplainedPlan& explained, const GraphTuningArguments& arguments,
                    const std::optional<Layout>& layout, size_t most_terms) {
  AddTotals(report, explained);
  if (!explained.options.empty()) {
    AddNode(report, explained, most_terms);
    if (layout) AddLayout(report, explained, arguments, *layout);
  } else if (layout) {
    AddLayoutSummary(report, explained, *layout);
  } else {
    AddSummary(report, explained, most_terms);
    if (!explained.plans.empty()) AddPlans(report, explained, most_terms);
  }
}

std::string FormText(const std::optional<LayoutPair>& layouts) {
  if (!layouts) return "-";
  return layouts->in == layouts->out ? layouts->in.ToString() : LayoutsText(*layouts);
}

std::string SplitText(Split split) {
  return split == Split::kEven ? "" : fmt::format(" by {}", SplitName(split));
}

std::string FusedText(const Graph& graph, const NodePlan& schedule) {
  if (!schedule.fused_into.empty()) return "in " + schedule.fused_into;
  if (!schedule.record || !schedule.record->workload.fused()) return "";
  return "with " + graph.node(graph.Inputs(graph.Find(schedule.node).value()).at(0)).name;
}

std::string ChoiceText(const Graph& graph, const ExplainedChoice& choice) {
  return ChoiceText(graph, choice.schedule, choice.kernel);
}
std::string ChoiceText(const Graph& graph, const Plan& plan, const NodePlan& schedule) {
  return ChoiceText(graph, schedule, KernelOf(plan, schedule));
}

std::string InequalityText(const Graph& graph, const ExplainedChoice& best, const ExplainedChoice& other) {
  const auto own = [](const NodePlan& node) { return node.predicted_seconds - node.crossing_seconds; };
  Side left{ChoiceText(graph, other), own(other.schedule), {}, false};
  Side right{ChoiceText(graph, best), own(best.schedule), {}, true};
  for (const CostTerm& term : other.terms)
    if (term.kind != TermKind::kNode) (term.seconds > 0 ? left : right).dearer.push_back(term);
  const double off = other.total_seconds - best.total_seconds;
  const char* relation = std::abs(off) < kNothing ? "=" : off > 0 ? ">" : "<";
  return fmt::format("{} {} {} ms", SideText(std::move(left)), relation, SideText(std::move(right)));
}

Cell MoreCell(double seconds) {
  return {seconds, std::abs(seconds) < kNothing ? "0" : fmt::format("{:+.4f}", seconds * 1e3)};
}

void AddTerms(Report& report, const std::string& title, const std::vector<CostTerm>& terms, size_t most) {
  Table& table = report.AddTable({"terms",
                                  title,
                                  {{"part", "what"},
                                   {"node", "node"},
                                   {"best", "best plan"},
                                   {"other", "other plan"},
                                   {"seconds", "ms more", 0}}});
  const size_t shown = std::min(terms.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    const CostTerm& term = terms[i];
    table.AddRow({TextCell(PartText(term.kind)), TextCell(term.node),
                  TextCell(FormText(term.first) + SplitText(term.first_split)),
                  TextCell(FormText(term.second) + SplitText(term.second_split)), MoreCell(term.seconds)});
  }
  double rest = 0;
  for (size_t i = shown; i < terms.size(); ++i) rest += terms[i].seconds;
  if (shown < terms.size())
    report.Note(fmt::format("and {} smaller ones: {} ms", terms.size() - shown, MoreCell(rest).text));
}

void AddTypedNodes(Report& report, const std::vector<TypedNode>& nodes) {
  if (nodes.empty()) return;
  Table& table = report.AddTable({"types",
                                  "in each type, the other layers as they are",
                                  {{"type", "type"},
                                   {"asked", "as it is"},
                                   {"own_seconds", "own ms"},
                                   {"total_seconds", "network ms"},
                                   {"output_error", "output error"}}});
  for (const TypedNode& node : nodes) {
    table.AddRow({TextCell(node.type),
                  {node.is_asked, node.is_asked ? "yes" : ""},
                  node.node_seconds ? MillisecondsCell(*node.node_seconds) : NoCell(),
                  MillisecondsCell(node.network_seconds),
                  {node.output_error, fmt::format("{:.2g}", node.output_error)}});
  }
}

}  // namespace tilesmith
