// Plans with regions (executor/regions.h), which nobody chose.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

// NHWC throughout, and of each convolution tasks of a few whole rows, as regions want them.
inline Plan FewRowsPlan(const Graph& graph, const Target& cpu, int threads) {
  return PlanOfRecords(graph, cpu, threads, [&](const ConvWorkload& workload) {
    Record record = DefaultRecord(workload, cpu, threads, DefaultStyle::kRows);
    const ConvTemplate* conv_template = &FindConvTemplate(record.template_name);
    const ConvTemplate& direct = FindConvTemplate("direct");
    const auto rows = direct.Supports(workload, cpu).ok ? direct.RowsDefault(workload, cpu) : std::nullopt;
    if (rows) {
      conv_template = &direct;
      record.config = *rows;
    }
    const ConfigSpace space = conv_template->Space(workload, cpu);
    for (const int64_t few : {1, 2, 4}) {
      Config config = record.config;
      if (config.Find("rows")) config.Set("rows", few);
      if (config.Find("stream")) config.Set("stream", 0);
      if (space.IndexOf(config) && space.WhyInvalid(config).empty()) record.config = config;
    }
    record.template_name = conv_template->Name();
    record.layouts = conv_template->Layouts(workload, record.config);
    return std::optional(record);
  });
}

// One region more, of these nodes.
inline void AddRegion(Plan& plan, std::initializer_list<std::string_view> nodes, int64_t band_rows) {
  plan.regions.push_back({band_rows});
  for (NodePlan& node : plan.nodes)
    if (std::ranges::find(nodes, node.node) != nodes.end())
      node.region = static_cast<int>(plan.regions.size());
}

}  // namespace tilesmith
