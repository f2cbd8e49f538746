#include "graph_tuner/refine/baselines.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph_tuner/problem/build_problem.h"
#include "graph_tuner/refine/prediction_loop.h"

namespace tilesmith {
namespace {

constexpr const char* kUniformLayouts[] = {"NCHW8c", "NCHW16c", "NCHW32c", "NHWC", "NCHW"};

bool Writes(const Record& record, const Layout& layout) {
  return SameForm(record.workload.output_shape(), record.layouts.out, layout);
}

// What the baselines may choose from: every usable record, and the defaults that stand in where there is
// none.
std::vector<Record> Choices(const Graph& graph, const std::vector<Record>& records,
                            const GraphTuneOptions& options) {
  std::vector<Record> choices;
  const std::vector<Record> accepted = AcceptedRecords(options.accuracy, records);
  for (auto& [workload, found] : FindCandidates(graph, accepted, options.cpu, options.threads)) {
    choices.insert(choices.end(), found.begin(), found.end());
    if (found.empty() && options.allow_defaults)
      choices.push_back(DefaultRecord(ParseWorkload(workload), options.cpu, options.threads));
  }
  return choices;
}

// "" when every conv of the plan writes the layout.
std::string CountOf(const Plan& plan, const Layout& layout) {
  int convs = 0, in_layout = 0;
  for (const NodePlan& node : plan.nodes) {
    if (!node.record) continue;
    ++convs;
    in_layout += Writes(*node.record, layout);
  }
  return in_layout == convs ? "" : fmt::format("{} of {} convolutions in it", in_layout, convs);
}

}  // namespace

std::vector<Baseline> Baselines(const GraphTuneOptions& options) {
  std::vector<Baseline> baselines = {{"best record of each conv", options}};
  baselines.back().options.fastest_records = true;
  for (const char* layout : kUniformLayouts) {
    baselines.push_back({fmt::format("{} everywhere", layout), options});
    baselines.back().options.uniform = Layout::Parse(layout);
  }
  return baselines;
}

std::vector<PlannedBaseline> PlanBaselines(const Graph& graph, const std::vector<Record>& records,
                                           CostSource& costs, const GraphTuneOptions& options) {
  const std::vector<Record> choices = Choices(graph, records, options);
  std::vector<PlannedBaseline> planned;
  for (const Baseline& baseline : Baselines(options)) {
    const std::optional<Layout>& layout = baseline.options.uniform;
    const auto writes = [&](const Record& record) { return Writes(record, *layout); };
    if (layout && std::ranges::none_of(choices, writes)) {
      planned.push_back({baseline.name, std::nullopt, "no candidate in " + layout->ToString()});
      continue;
    }
    std::optional<Plan> solved = PlanIfWeightsFit(graph, records, costs, baseline.options);
    if (!solved) {
      planned.push_back({baseline.name, std::nullopt, "no plan with so small weights"});
      continue;
    }
    const auto same = std::ranges::find_if(planned, [&](const PlannedBaseline& other) {
      return other.plan && SameSchedules(*other.plan, *solved);
    });
    if (same != planned.end()) {
      planned.push_back({baseline.name, std::nullopt, "the same as " + same->name});
    } else {
      const std::string note = layout ? CountOf(*solved, *layout) : "";
      planned.push_back({baseline.name, std::move(*solved), note});
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
