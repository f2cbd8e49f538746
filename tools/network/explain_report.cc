#include "tools/network/explain_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>

#include "ops/conv/conv.h"
#include "tools/log/log_tables.h"
#include "tools/network/explain_text.h"

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

std::optional<NodeChoice> GivenChoice(const ExplainedNetwork& network, NodeId node) {
  if (!network.given) return std::nullopt;
  return ChosenBy(network.solved.graph(), network.solved.built(), *network.given, node);
}

// Those of the given plan's choices that today's problem still has.
std::vector<FixedNode> GivenChoices(const ExplainedNetwork& network) {
  std::vector<FixedNode> choices;
  for (const NodePlan& planned : network.given->nodes) {
    const NodeId node = NodeOf(network.solved, planned);
    if (const std::optional<NodeChoice> choice = GivenChoice(network, node))
      choices.push_back({node, *choice});
  }
  return choices;
}

std::string GivenText(const ExplainedNetwork& network, NodeId node) {
  return ChoiceText(network.solved.graph(), NodePlanOf(network.solved.graph(), *network.given, node));
}

std::string MarkText(bool best, bool given) {
  return best && given ? "best, plan" : best ? "best" : given ? "plan" : "";
}

void AddOptionTable(Report& report, const ExplainedNetwork& network,
                    const std::vector<ExplainedChoice>& options, const std::optional<NodeChoice>& given) {
  const SolvedNetwork& solved = network.solved;
  Table& table = report.AddTable({"options",
                                  "every way to compute it, and what the network then pays more elsewhere",
                                  {{"mark", ""},
                                   {"reads", "reads"},
                                   {"writes", "writes"},
                                   {"fused", "fused"},
                                   {"template", "template"},
                                   {"own_seconds", "own ms"},
                                   {"input_seconds", "input side"},
                                   {"output_seconds", "output side"},
                                   {"elsewhere_seconds", "elsewhere"},
                                   {"total_seconds", "network ms"},
                                   {"off_seconds", "off ms"},
                                   {"config", "config"}}});
  for (const ExplainedChoice& option : options) {
    const NodePlan& schedule = option.schedule;
    const bool alone = schedule.fused_into.empty();
    const bool best = option.choice == options[0].choice, is_given = given == option.choice;
    table.AddRow(
        {TextCell(MarkText(best, is_given)), alone ? TextCell(schedule.layouts.in.ToString()) : NoCell(),
         alone ? TextCell(schedule.layouts.out.ToString()) : NoCell(),
         TextCell(FusedText(solved.graph(), schedule)),
         schedule.record ? TextCell(schedule.record->template_name) : NoCell(),
         MillisecondsCell(schedule.predicted_seconds), MoreCell(SumOf(option, {TermKind::kInputTransform})),
         MoreCell(SumOf(option, {TermKind::kOutputTransform})),
         MoreCell(SumOf(option, {TermKind::kOtherNode, TermKind::kOtherTransform})),
         MillisecondsCell(option.total_seconds),
         MoreCell(option.total_seconds - solved.best.predicted_seconds),
         schedule.record ? TextCell(schedule.record->config.ToString()) : NoCell()});
  }
}

void AddWhy(Report& report, const ExplainedNetwork& network, const ExplainedChoice& best,
            const ExplainedChoice& other) {
  const SolvedNetwork& solved = network.solved;
  const std::string text = ChoiceText(solved.graph(), other.schedule);
  AddTerms(report, "what changes with " + text, other.terms, network.most_terms);
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
  const std::string failures = FailuresText(tries.failures);
  report.Fact("failures", "  failures", TextCell(failures.empty() ? "none" : failures));
  if (tries.inaccurate > 0) report.Fact("inaccurate", "  not accurate enough", CountCell(tries.inaccurate));
  if (tries.ignored > 0)
    report.Fact("ignored", "  of other machines, threads or weights", CountCell(tries.ignored));
  report.Fact("layout_best_seconds", "  best ms",
              tries.best ? MillisecondsCell(tries.best->seconds) : NoCell());
}

// Why no option of a node has a layout.
std::string WhyMissing(const SolvedNetwork& solved, NodeId node, const AskedLayout& asked) {
  const std::vector<Layout>& considered = solved.problem.layouts().all;
  const std::string name = asked.layout.ToString();
  if (solved.graph().node(node).op->Type() == "Conv") {
    if (asked.tries.templates.empty()) return "no template computes this convolution in " + name;
    return asked.tries.trials > 0 ? "no trial of it worked" : "it was never tried";
  }
  if (std::ranges::find(considered, asked.layout) != considered.end())
    return fmt::format("{} does not run in {} here", solved.graph().node(node).op->Type(), name);
  return fmt::format("no candidate of any convolution has {}, so no other node is considered in it", name);
}

}  // namespace

void AddTotals(Report& report, const ExplainedNetwork& network) {
  const SolvedNetwork& solved = network.solved;
  const double best = solved.best.predicted_seconds;
  report.Fact("network", "network", TextCell(solved.best.network));
  report.Fact("solver", "solver", TextCell(solved.best.solver));
  report.Fact("certificate", "certificate", TextCell(solved.best.certificate));
  report.Fact("predicted_seconds", "best plan ms", MillisecondsCell(best));
  report.Fact("costs", "costs", TextCell(network.given ? "corrected by what the plan says" : "from the log"));
  if (!network.given) return;
  const std::vector<FixedNode> choices = GivenChoices(network);
  const double layouts = BestPlanWith(solved, choices).predicted_seconds;
  const size_t missing = network.given->nodes.size() - choices.size();
  report.Fact("plan_seconds", "given plan ms", MillisecondsCell(network.given->predicted_seconds));
  report.Fact("plan_layouts_seconds", "  with this log", MillisecondsCell(layouts));
  report.Fact("plan_off_seconds", "  off ms", MoreCell(layouts - best));
  report.Fact("plan_missing", "  nodes this log has not so", CountCell(int64_t(missing)));
}

void AddNode(Report& report, const ExplainedNetwork& network, const std::vector<ExplainedChoice>& options) {
  const SolvedNetwork& solved = network.solved;
  const ExplainedChoice& best = options.at(0);
  const NodeId node = NodeOf(solved, best.schedule);
  const std::optional<NodeChoice> given = GivenChoice(network, node);
  report.Fact("node", "node", TextCell(best.schedule.node));
  report.Fact("op", "op", TextCell(solved.graph().node(node).op->Signature()));
  report.Fact("chosen", "best plan has", TextCell(ChoiceText(solved.graph(), best.schedule)));
  if (network.given) {
    report.Fact("given", "given plan has",
                TextCell(GivenText(network, node) + (given ? "" : ", which this log has not")));
  }
  AddOptionTable(report, network, options, given);
  const bool runner_up = !given || given == best.choice;
  const auto other = std::ranges::find_if(options, [&](const ExplainedChoice& option) {
    return option.choice != best.choice && (runner_up || given == option.choice);
  });
  if (other == options.end())
    report.Note("there is no other way to compute it");
  else
    AddWhy(report, network, best, *other);
}

void AddLayout(Report& report, const ExplainedNetwork& network, const std::vector<ExplainedChoice>& options,
               const AskedLayout& asked) {
  const SolvedNetwork& solved = network.solved;
  const NodeId node = NodeOf(solved, options.at(0).schedule);
  const auto has_layout = [&](const ExplainedChoice& option) {
    return HasLayout(solved.graph(), solved.built(), {node, option.choice}, asked.layout);
  };
  const bool is_conv = solved.graph().node(node).op->Type() == "Conv";
  report.Fact("layout", "asked for", TextCell(asked.layout.ToString()));
  if (is_conv) AddTries(report, asked.tries);
  const auto closest = std::ranges::find_if(options, has_layout);
  if (closest == options.end()) {
    report.Fact("layout_missing", "  not considered", TextCell(WhyMissing(solved, node, asked)));
    if (is_conv && !asked.tries.templates.empty()) report.Fact("try", "  to try it", TextCell(asked.command));
    return;
  }
  report.Fact("layout_choice", "  best with it", TextCell(ChoiceText(solved.graph(), closest->schedule)));
  report.Fact("layout_total_seconds", "  network ms", MillisecondsCell(closest->total_seconds));
  report.Fact("layout_off_seconds", "  off ms",
              MoreCell(closest->total_seconds - solved.best.predicted_seconds));
  if (closest != options.begin())
    report.Fact("layout_why", "", TextCell(InequalityText(solved.graph(), options[0], *closest)));
}

void AddSummary(Report& report, const ExplainedNetwork& network, const NodeProgress& progress) {
  const SolvedNetwork& solved = network.solved;
  const std::vector<NodePlan>& nodes = solved.best.nodes;
  if (network.given) {
    const Plan given = BestPlanWith(solved, GivenChoices(network));
    AddTerms(report, "what the given plan pays more",
             Differences(solved.graph(), solved.best, given, std::nullopt), network.most_terms);
  }
  Table& table = report.AddTable({"nodes",
                                  "every node that has a choice",
                                  {{"node", "node"},
                                   {"op", "op"},
                                   {"own_seconds", "own ms"},
                                   {"chosen", "best plan"},
                                   {"other", network.given ? "given plan" : "runner-up"},
                                   {"off_seconds", "off ms"}}});
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeId node = NodeOf(solved, nodes[i]);
    progress(i, nodes.size());
    if (ChoicesOf(solved.built(), node).size() < 2) continue;
    const std::optional<NodeChoice> given = GivenChoice(network, node);
    std::optional<ExplainedChoice> other;
    if (!network.given)
      other = RunnerUp(solved, node);
    else if (given)
      other = ExplainChoice(solved, node, *given);
    table.AddRow(
        {TextCell(nodes[i].node), TextCell(nodes[i].op_type), MillisecondsCell(nodes[i].predicted_seconds),
         TextCell(ChoiceText(solved.graph(), nodes[i])),
         TextCell(network.given ? GivenText(network, node) : ChoiceText(solved.graph(), other->schedule)),
         other ? MoreCell(other->total_seconds - solved.best.predicted_seconds) : NoCell()});
  }
  const size_t fixed = nodes.size() - table.rows().size();
  if (fixed > 0) report.Note(fmt::format("nodes without a choice: {}", fixed));
}

void AddLayoutSummary(Report& report, const ExplainedNetwork& network, const Layout& layout,
                      const std::vector<Record>& records, const NodeProgress& progress) {
  const SolvedNetwork& solved = network.solved;
  const BuiltProblem& built = solved.built();
  Table& table = report.AddTable({"convolutions",
                                  "its convolutions in " + layout.ToString(),
                                  {{"node", "node"},
                                   {"chosen", "best plan"},
                                   {"choice", "best with " + layout.ToString()},
                                   {"own_seconds", "own ms"},
                                   {"off_seconds", "off ms"},
                                   {"trials", "trials"},
                                   {"failures", "failures"}}});
  const GraphTuneOptions& options = solved.problem.options();
  const LogReader reader{options.cpu, options.threads, options.accuracy};
  const std::vector<NodePlan>& nodes = solved.best.nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    progress(i, nodes.size());
    const NodeId node = NodeOf(solved, nodes[i]);
    const auto* conv = dynamic_cast<const ConvOp*>(solved.graph().node(node).op.get());
    if (!conv) continue;
    std::vector<NodeChoice> choices = ChoicesOf(built, node);
    std::erase_if(choices, [&](const NodeChoice& choice) {
      return !HasLayout(solved.graph(), built, {node, choice}, layout);
    });
    std::optional<ExplainedChoice> closest;
    if (!choices.empty()) closest = BestOf(solved, node, choices);
    const LayoutTries tries = FindLayoutTries(conv->workload(), layout, records, reader);
    table.AddRow({TextCell(nodes[i].node), TextCell(ChoiceText(solved.graph(), nodes[i])),
                  closest ? TextCell(ChoiceText(solved.graph(), closest->schedule)) : NoCell(),
                  closest ? MillisecondsCell(closest->schedule.predicted_seconds) : NoCell(),
                  closest ? MoreCell(closest->total_seconds - solved.best.predicted_seconds) : NoCell(),
                  CountCell(tries.trials), TextCell(FailuresText(tries.failures))});
  }
}

void AddPlans(Report& report, const ExplainedNetwork& network, const std::vector<RankedPlan>& plans) {
  const SolvedNetwork& solved = network.solved;
  Table& table = report.AddTable({"plans",
                                  "the best plans, and where they differ from the best",
                                  {{"rank", "plan"},
                                   {"total_seconds", "network ms"},
                                   {"off_seconds", "off ms"},
                                   {"changed_nodes", "nodes changed"},
                                   {"changes", "what is changed"}}});
  for (size_t i = 0; i < plans.size(); ++i) {
    const std::vector<NodeChange>& changes = plans[i].changes;
    const size_t shown = std::min(changes.size(), network.most_terms);
    std::vector<std::string> texts;
    for (size_t c = 0; c < shown; ++c)
      texts.push_back(fmt::format("{} {} (not {})", changes[c].here.node,
                                  ChoiceText(solved.graph(), changes[c].here),
                                  ChoiceText(solved.graph(), changes[c].best)));
    if (shown < changes.size()) texts.push_back(fmt::format("{} more", changes.size() - shown));
    const double total = plans[i].plan.predicted_seconds;
    table.AddRow({CountCell(int64_t(i) + 1), MillisecondsCell(total),
                  MoreCell(total - solved.best.predicted_seconds), CountCell(int64_t(changes.size())),
                  TextCell(fmt::format("{}", fmt::join(texts, ", ")))});
  }
}

}  // namespace tilesmith
