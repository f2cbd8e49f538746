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

}  // namespace

Table ProfileTable(std::span<const StepProfile> steps) {
  Table table("steps", "",
              {{"name", "step"},
               {"kind", "kind", 2},
               {"layouts", "layouts", 4},
               {"seconds", "ms", 0},
               {"predicted_seconds", "predicted ms"},
               {"repeated_seconds", "repeated ms", 3},
               {"lost_seconds", "lost ms"},
               {"crossed_bytes", "crossed KiB", 5},
               {"share", "share", 0},
               {"node", ""},
               {"converts", ""}});
  const double total = Total(steps);
  for (const StepProfile& step : steps) {
    table.AddRow({TextCell(step.name),
                  TextCell(step.kind),
                  TextCell(step.layouts),
                  MillisecondsCell(step.seconds),
                  KnownMillisecondsCell(step.predicted_seconds),
                  KnownMillisecondsCell(step.repeated_seconds),
                  IsRepeated(step) ? MillisecondsCell(Lost(step)) : NoCell(),
                  KibibytesCell(step.crossed_bytes),
                  PercentCell(total > 0 ? step.seconds / total : 0),
                  TextCell(step.node),
                  {step.conversion.has_value(), ""}});
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

Table TotalsTable(std::span<const StepProfile> steps, double run_seconds, double barrier_seconds) {
  const double all = Total(steps), barriers = static_cast<double>(steps.size()) * barrier_seconds;
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
  for (const StepProfile& step : steps) {
    events.push_back({{"name", step.name},
                      {"cat", step.kind},
                      {"ph", "X"},
                      {"ts", begin * 1e6},
                      {"dur", step.seconds * 1e6},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", {{"layouts", step.layouts}, {"predicted_us", step.predicted_seconds * 1e6}}}});
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
