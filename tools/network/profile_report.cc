#include "tools/network/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

bool IsRepeated(const StepProfile& step) { return step.repeated_seconds > 0; }

// Precondition: IsRepeated.
double Lost(const StepProfile& step) { return std::max(0.0, step.seconds - step.repeated_seconds); }

double Total(std::span<const StepProfile> steps) {
  double total = 0;
  for (const StepProfile& step : steps) total += step.seconds;
  return total;
}

Cell KibibytesCell(double bytes) { return {bytes, fmt::format("{:.0f}", bytes / 1024)}; }

bool IsConv(const StepProfile& step) { return KnownConvTemplate(step.kind) != nullptr; }

// How many steps from this one on are one region, or 1: those of a region follow each other.
size_t StepsTogether(std::span<const StepProfile> steps, size_t first) {
  size_t count = 1;
  while (steps[first].region.number > 0 && first + count < steps.size() &&
         steps[first + count].region.number == steps[first].region.number)
    ++count;
  return count;
}

nlohmann::ordered_json TraceEvent(const std::string& name, const std::string& kind, double begin,
                                  double seconds) {
  return {{"name", name},         {"cat", kind}, {"ph", "X"}, {"ts", begin * 1e6},
          {"dur", seconds * 1e6}, {"pid", 1},    {"tid", 1}};
}

}  // namespace

Table ProfileTable(std::span<const StepProfile> steps) {
  std::vector<Column> columns = {{"name", "step"},
                                 {"kind", "kind", 2},
                                 {"layouts", "layouts", 4},
                                 {"seconds", "ms", 0},
                                 {"predicted_seconds", "predicted ms"},
                                 {"repeated_seconds", "repeated ms", 3},
                                 {"lost_seconds", "lost ms"},
                                 {"crossed_bytes", "crossed KiB", 5},
                                 {"share", "share", 0},
                                 {"node", ""},
                                 {"converts", ""}};
  const bool has_regions =
      std::ranges::any_of(steps, [](const StepProfile& step) { return step.region.number > 0; });
  if (has_regions)
    columns.insert(columns.end(),
                   {{"region", "region", 0}, {"computed_rows", "rows", 2}, {"result_rows", ""}});
  Table table("steps", "", std::move(columns));
  const double total = Total(steps);
  for (const StepProfile& step : steps) {
    std::vector<Cell> cells = {TextCell(step.name),
                               TextCell(step.kind),
                               TextCell(step.layouts),
                               MillisecondsCell(step.seconds),
                               KnownMillisecondsCell(step.predicted_seconds),
                               KnownMillisecondsCell(step.repeated_seconds),
                               IsRepeated(step) ? MillisecondsCell(Lost(step)) : NoCell(),
                               KibibytesCell(step.crossed_bytes),
                               PercentCell(total > 0 ? step.seconds / total : 0),
                               TextCell(step.node),
                               {step.conversion.has_value(), ""}};
    if (has_regions && step.region.number == 0) cells.resize(cells.size() + 3);
    if (step.region.number > 0) {
      const int64_t twice = step.region.computed_rows - step.region.result_rows;
      std::string rows = std::to_string(std::min(step.region.computed_rows, step.region.result_rows));
      if (twice > 0) rows += fmt::format("+{}", twice);
      cells.insert(cells.end(), {CountCell(step.region.number),
                                 {step.region.computed_rows, rows},
                                 CountCell(step.region.result_rows)});
    }
    table.AddRow(std::move(cells));
  }
  return table;
}

Table KindTable(std::span<const StepProfile> steps) {
  struct Sum {
    int64_t steps = 0, repeated = 0;
    double seconds = 0, lost = 0, crossed_bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const StepProfile& step : steps) {
    Sum& sum = sums[step.kind];
    ++sum.steps;
    sum.seconds += step.seconds;
    if (IsRepeated(step)) ++sum.repeated, sum.lost += Lost(step);
    sum.crossed_bytes += step.crossed_bytes;
  }
  std::vector<std::pair<std::string, Sum>> ordered(sums.begin(), sums.end());
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  Table table("kinds", "",
              {{"kind", "kind"},
               {"steps", "steps"},
               {"seconds", "ms"},
               {"lost_seconds", "lost ms"},
               {"crossed_bytes", "crossed KiB"},
               {"share", "share"}});
  const double total = Total(steps);
  for (const auto& [kind, sum] : ordered) {
    table.AddRow({TextCell(kind), CountCell(sum.steps), MillisecondsCell(sum.seconds),
                  sum.repeated > 0 ? MillisecondsCell(sum.lost) : NoCell(), KibibytesCell(sum.crossed_bytes),
                  PercentCell(total > 0 ? sum.seconds / total : 0)});
  }
  return table;
}

Table RegionTable(std::span<const RegionProfile> regions) {
  Table table("regions", "",
              {{"region", "region"},
               {"steps", "steps"},
               {"bands", "bands"},
               {"band_rows", "of rows"},
               {"buffer_bytes", "KiB of a thread"},
               {"computed_rows", ""},
               {"result_rows", ""},
               {"twice_share", "computed twice"}});
  for (const RegionProfile& region : regions) {
    const auto all = static_cast<double>(region.result_rows);
    table.AddRow({CountCell(region.number),
                  CountCell(region.steps),
                  CountCell(region.bands),
                  CountCell(region.band_rows),
                  {region.buffer_bytes, fmt::format("{}", (region.buffer_bytes + 1023) / 1024)},
                  CountCell(region.computed_rows),
                  CountCell(region.result_rows),
                  PercentCell(all > 0 ? static_cast<double>(region.computed_rows) / all - 1 : 0)});
  }
  return table;
}

Table TotalsTable(std::span<const StepProfile> steps, double run_seconds, double barrier_seconds) {
  int64_t launches = 0;
  for (size_t i = 0; i < steps.size(); i += StepsTogether(steps, i)) ++launches;
  const double all = Total(steps), barriers = static_cast<double>(launches) * barrier_seconds;
  Table table("totals", "", {{"part", "part"}, {"seconds", "ms"}, {"share", "share"}});
  const auto add = [&](const char* part, double seconds) {
    table.AddRow({TextCell(part), MillisecondsCell(seconds),
                  PercentCell(run_seconds > 0 ? seconds / run_seconds : 0)});
  };
  add("all steps", all);
  add("barriers", barriers);
  add("unaccounted", run_seconds - all - barriers);
  add("a run, median", run_seconds);
  return table;
}

std::string ChromeTrace(std::span<const StepProfile> steps) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  double begin = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepProfile& step = steps[i];
    if (step.region.number > 0 && (i == 0 || steps[i - 1].region.number != step.region.number)) {
      const double seconds = Total(steps.subspan(i, StepsTogether(steps, i)));
      events.push_back(TraceEvent(fmt::format("region {}", step.region.number), "region", begin, seconds));
    }
    events.push_back(TraceEvent(step.name, step.kind, begin, step.seconds));
    events.back()["args"] = {{"layouts", step.layouts}, {"predicted_us", step.predicted_seconds * 1e6}};
    begin += step.seconds;
  }
  return nlohmann::ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
             1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

double NonConvSeconds(std::span<const StepProfile> steps) {
  double seconds = 0;
  for (const StepProfile& step : steps) {
    if (!IsConv(step)) seconds += step.seconds;
  }
  return seconds;
}

}  // namespace tilesmith
