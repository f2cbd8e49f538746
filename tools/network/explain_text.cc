#include "tools/network/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/cli/targets.h"

namespace tilesmith {
namespace {

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

}  // namespace tilesmith
