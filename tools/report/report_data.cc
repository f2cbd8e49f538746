#include "tools/report/report_data.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/doctor/disturbance.h"
#include "tools/report/network_view.h"
#include "tools/report/tuning_curves.h"
#include "tuner/records/utc_time.h"

namespace tilesmith {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxEvents = 20000;  // of a trace

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
Json OrNull(const std::string& value) { return value.empty() ? Json() : Json(value); }

Json NumbersNamed(const SavedResults& results,
                  std::initializer_list<std::pair<const char*, const char*>> names) {
  Json json;
  for (const auto& [name, source] : names) json[name] = OrNull(results.Number(source));
  return json;
}

Json Verdict(const ReportSources& sources) {
  const SavedResults& results = sources.results;
  Json verdict = {{"network", sources.plan.network},
                  {"machine", MachineText(sources.plan.target)},
                  {"threads", sources.plan.threads},
                  {"ours_seconds", OrNull(results.Number("network_seconds"))}};
  if (verdict["ours_seconds"].is_null()) {
    for (const char* name : {"measured_seconds", "median_seconds"})
      if (verdict["ours_seconds"].is_null()) verdict["ours_seconds"] = OrNull(results.Number(name));
  }
  verdict.update(NumbersNamed(results, {{"onednn_seconds", "network_onednn_seconds"},
                                        {"onednn_ratio", "network_ratio"},
                                        {"onednn_ratio_low", "network_ratio_low"},
                                        {"onednn_ratio_high", "network_ratio_high"},
                                        {"onnxruntime_seconds", "onnxruntime_seconds"},
                                        {"onnxruntime_ratio", "onnxruntime_ratio"}}));
  for (const char* name : {"disturbed_share", "network_disturbed_share"})
    if (const std::optional<double> share = results.Number(name)) verdict["disturbed_share"] = *share;
  return verdict;
}

// Ways to compute the network, from no tuning on, each as long as the plan times a measured ratio, or as
// predicted.
Json Steps(const ReportSources& sources, const Json& ours_seconds) {
  const SavedResults& results = sources.results;
  Json steps = Json::array();
  if (!ours_seconds.is_number()) return steps;
  const double ours = ours_seconds.get<double>();
  if (const std::optional<double> ratio = results.Number("network_untuned_ratio"))
    steps.push_back({{"name", "untuned"}, {"seconds", *ratio * ours}});
  for (const Json& row : results.Rows("baselines", {"baseline", "note"}, {"gain"})) {
    if (row["baseline"] != "best record of each conv") continue;
    const bool same = row["note"] == "the same as the plan";
    if (row["gain"].is_number())
      steps.push_back({{"name", "tuned"}, {"seconds", (1 + row["gain"].get<double>()) * ours}});
    else if (same)
      steps.push_back({{"name", "tuned"}, {"seconds", ours}});
  }
  if (!steps.empty()) steps.push_back({{"name", "graph-tuned"}, {"seconds", ours}});
  return steps;
}

Json Runs(const SavedResults& results) {
  Json runs = Json::array();
  const std::pair<const char*, const char*> kinds[] = {{"ours", "network_sample_seconds"},
                                                       {"oneDNN", "network_onednn_sample_seconds"},
                                                       {"ours, run by itself", "sample_seconds"}};
  for (const auto& [name, source] : kinds) {
    std::vector<double> seconds = results.Numbers(source);
    if (!seconds.empty()) runs.push_back({{"name", name}, {"seconds", std::move(seconds)}});
  }
  return runs;
}

// The complete events of a trace, times in seconds from the first of them.
Json Timeline(const nlohmann::json& trace) {
  Json events = Json::array();
  const nlohmann::json* list = &trace;
  if (trace.is_object() && trace.contains("traceEvents")) list = &trace["traceEvents"];
  if (!list->is_array()) return events;
  double first = HUGE_VAL;
  for (const nlohmann::json& event : *list) {
    if (!event.is_object() || TextOrNull(event, "ph") != "X") continue;
    const Json begin = NumberOrNull(event, "ts"), length = NumberOrNull(event, "dur");
    const Json thread = NumberOrNull(event, "tid");
    if (!begin.is_number() || !length.is_number() || events.size() == kMaxEvents) continue;
    first = std::min(first, begin.get<double>() * 1e-6);
    events.push_back({{"name", TextOrNull(event, "name")},
                      {"kind", TextOrNull(event, "cat")},
                      {"thread", thread.is_number() ? thread : Json(0)},
                      {"begin_seconds", begin.get<double>() * 1e-6},
                      {"seconds", length.get<double>() * 1e-6}});
  }
  for (Json& event : events) event["begin_seconds"] = event["begin_seconds"].get<double>() - first;
  return events;
}

Json PlanJson(const Plan& plan) {
  const double predicted = KnownPrediction(plan);
  return {{"network", plan.network},
          {"graph_hash", plan.graph_hash},
          {"solver", plan.solver},
          {"certificate", plan.certificate},
          {"predicted_seconds", predicted > 0 ? Json(predicted) : Json()},
          {"version", plan.target.version},
          {"threads", plan.threads},
          {"input_layout", plan.ends.inputs.ToString()},
          {"output_layout", plan.ends.outputs.ToString()}};
}

std::string Ms(const Json& seconds) { return MillisecondsCell(seconds.get<double>()).text + " ms"; }

// "1.58 times as fast as oneDNN (9.6 ms)"
std::string BesideText(const Json& ratio, const std::string& name, const Json& seconds) {
  const double times = ratio.get<double>();
  const std::string took = seconds.is_number() ? fmt::format(" ({})", Ms(seconds)) : "";
  return fmt::format("{:.2f} times as fast as {}{}", times, name, took);
}

}  // namespace

Json ReportData(const ReportSources& sources) {
  const SavedResults& results = sources.results;
  Json data = {{"tilesmith_report", kReportFormat},
               {"made", {{"date", UtcNow()}, {"commit", CommitOfBuild()}, {"command", OwnCommand()}}},
               {"verdict", Verdict(sources)},
               {"plan", PlanJson(sources.plan)}};
  data["layers"] = results.Rows(
      "rows",
      {"workload", "shape", "template", "layouts", "config", "onednn_algorithm", "onednn_implementation"},
      {"count", "gflop", "ours_seconds", "onednn_seconds", "ratio", "ratio_low", "ratio_high", "ratio_p10",
       "ratio_p90", "peak_share"});
  data["improvement"] = Steps(sources, data["verdict"]["ours_seconds"]);
  const std::vector<Json> steps = results.Rows("steps", {"name", "kind", "layouts", "node"},
                                               {"seconds", "predicted_seconds", "repeated_seconds"});
  data.update(NetworkView(sources.plan, sources.graph, steps));
  if (!sources.graph) data["graph_missing"] = sources.graph_missing;
  data["explanations"] = sources.explanations.list;
  data["explanations_missing"] = OrNull(sources.explanations.missing);
  data["tasks"] = TuningCurves(sources.records, sources.plan);
  data["peaks"] =
      NumbersNamed(results, {{"flops", "peak_flops"}, {"bytes_per_second", "read_bytes_per_second"}});
  data["runs"] = Runs(results);
  data["steps"] = steps;
  data["sweep"] =
      results.Rows("sweep", {"schedule"},
                   {"threads", "batch", "streams", "images_per_second", "p50_seconds", "p99_seconds",
                    "onnxruntime_images_per_second", "onnxruntime_p50_seconds", "ratio"});
  data["timeline"] = Timeline(sources.trace);
  data["origins"] = results.Origins();
  data["log"] = {{"records", sources.records.size()}};
  return data;
}

std::string VerdictText(const Json& data) {
  const Json& verdict = data["verdict"];
  std::string text = verdict["network"].get<std::string>();
  const Json& predicted = data["plan"]["predicted_seconds"];
  if (!verdict["ours_seconds"].is_number() && !predicted.is_number()) return text + ": not measured";
  if (!verdict["ours_seconds"].is_number())
    return text + fmt::format(": predicted {}, not measured", Ms(predicted));
  text += " takes " + Ms(verdict["ours_seconds"]);
  std::string beside;
  if (verdict["onednn_ratio"].is_number())
    beside += BesideText(verdict["onednn_ratio"], "oneDNN", verdict["onednn_seconds"]);
  if (verdict["onnxruntime_ratio"].is_number()) {
    beside += (beside.empty() ? "" : ", ") +
              BesideText(verdict["onnxruntime_ratio"], "ONNX Runtime", verdict["onnxruntime_seconds"]);
  }
  if (!beside.empty()) text += ": " + beside;
  const Json share = verdict.value("disturbed_share", Json());
  if (share.is_number() && share.get<double>() >= kDisturbedShare)
    text += fmt::format("; disturbed: {:.0f}% of the turns, measure again", share.get<double>() * 100);
  return text;
}

}  // namespace tilesmith
