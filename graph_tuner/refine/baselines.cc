#include "graph_tuner/refine/baselines.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph_tuner/costs/layout_forms.h"

namespace tilesmith {
namespace {

constexpr const char* kUniformLayouts[] = {"NCHW8c", "NCHW16c", "NCHW32c", "NHWC", "NCHW"};

bool Writes(const Record& record, const Layout& layout) {
  return HasOrder(record.workload.output_shape(), record.layouts.out, layout);
}

// Whether any usable record, or a default that stands in for one, does.
bool AnyWrites(const Candidates& usable, const Layout& layout) {
  return std::ranges::any_of(usable, [&](const auto& entry) {
    return std::ranges::any_of(entry.second, [&](const Record& record) { return Writes(record, layout); });
  });
}

// "" when every conv of the plan writes the layout.
std::string CountOf(const Plan& plan, const Layout& layout) {
  int convs = 0, in_layout = 0;
  for (const NodePlan& node : plan.nodes) {
    if (!node.record || node.record->workload.product) continue;
    ++convs;
    in_layout += Writes(*node.record, layout);
  }
  return in_layout == convs ? "" : fmt::format("{} of {} convolutions in it", in_layout, convs);
}

}  // namespace

std::vector<Baseline> Baselines(Precision precision) {
  std::vector<Baseline> baselines = {{"best record of each conv", {.fastest_records = true}}};
  if (precision == Precision::kMixed) {
    baselines.push_back({"f32 only", {.precision = Precision::kF32}});
    baselines.push_back({"bf16 wherever it can be", {.precision = Precision::kBf16}});
  }
  for (const char* layout : kUniformLayouts)
    baselines.push_back({fmt::format("{} everywhere", layout), {.uniform = Layout::Parse(layout)}});
  return baselines;
}

std::vector<PlannedBaseline> PlanBaselines(const NetworkProblem& problem,
                                           std::optional<int64_t> max_weight_bytes) {
  std::vector<PlannedBaseline> planned;
  for (const Baseline& baseline : Baselines(problem.options().precision)) {
    const std::optional<Layout>& layout = baseline.restriction.uniform;
    if (layout && !AnyWrites(problem.usable(), *layout)) {
      planned.push_back({baseline.name, std::nullopt, "no candidate in " + layout->ToString()});
      continue;
    }
    std::optional<Plan> solved = PlanIfWeightsFit(problem.Restricted(baseline.restriction), max_weight_bytes);
    if (!solved) {
      planned.push_back(
          {baseline.name, std::nullopt,
           max_weight_bytes ? "no plan with so small weights" : "no plan with so small an error"});
      continue;
    }
    const auto same = std::ranges::find_if(planned, [&](const PlannedBaseline& other) {
      return other.plan && SameSchedules(*other.plan, *solved);
    });
    if (same != planned.end()) {
      planned.push_back({baseline.name, std::nullopt, "the same as " + same->name});
    } else {
      const std::string note = layout ? CountOf(*solved, *layout) : "";
      planned.push_back({baseline.name, std::move(solved), note});
    }
  }
  return planned;
}

void DropPlan(const Plan& plan, std::vector<PlannedBaseline>& baselines) {
  for (PlannedBaseline& baseline : baselines) {
    if (!baseline.plan || !SameSchedules(*baseline.plan, plan)) continue;
    baseline.plan.reset();
    baseline.note = "the same as the plan";
  }
}

}  // namespace tilesmith
