#include "tools/report/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph_tuner/costs/layout_forms.h"
#include "graph_tuner/executor/schedule.h"
#include "graph_tuner/explain/explain.h"
#include "layouts/measure/clock.h"
#include "tools/cli/graph_tuning.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/doctor/disturbance.h"
#include "tools/network/explain_report.h"
#include "tuner/records/record.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {
namespace {

using Json = nlohmann::ordered_json;

struct Curve {
  double network_seconds = 0;  // of its best, times how often the plan runs it
  Json json;
};

Curve CurveOf(const RecordGroup& group, int64_t count) {
  Json points = Json::array();
  std::map<std::string, int64_t> failures;
  int64_t trials = 0;
  double best = std::numeric_limits<double>::infinity();
  for (const Record* record : group.records) {
    if (record->purpose == kPurposeRetime) continue;
    ++trials;
    if (record->status != TrialStatus::kOk) {
      ++failures[std::string(TrialStatusName(record->status))];
    } else if (record->seconds > 0 && record->seconds < best) {
      best = record->seconds;
      points.push_back({trials, best});
    }
  }
  Json json = {{"workload", WorkloadToString(group.workload)},
               {"flops", group.workload.flops()},
               {"cold_weights", group.conditions.cold_weights},
               {"count", count},
               {"trials", trials},
               {"failures", Json(failures)},
               {"best", std::move(points)}};
  return {best < std::numeric_limits<double>::infinity() ? best * static_cast<double>(count) : 0,
          std::move(json)};
}

}  // namespace

Json TuningCurves(std::span<const Record> records, const Plan& plan) {
  std::map<std::string, int64_t> counts;
  for (const NodePlan& node : plan.nodes)
    if (node.record) ++counts[WorkloadToString(node.record->workload)];
  std::vector<Curve> curves;
  const std::vector<const Record*> pointers = PointersTo(records);
  for (const RecordGroup& group : GroupRecords(pointers)) {
    if (!SameMachine(group.target, plan.target) || group.conditions.threads != plan.threads) continue;
    const auto count = counts.find(WorkloadToString(group.workload));
    curves.push_back(CurveOf(group, count == counts.end() ? 0 : count->second));
  }
  std::ranges::stable_sort(curves, std::greater(), &Curve::network_seconds);
  Json list = Json::array();
  for (Curve& curve : curves) list.push_back(std::move(curve.json));
  return list;
}

namespace {

using Json = nlohmann::ordered_json;
using NodeId = Graph::NodeId;

// Bytes of a conv's tensors, each touched once: what it has to move at least.
double BytesOf(const ConvWorkload& workload) {
  const auto elements = [](const Shape& shape) {
    double count = 1;
    for (const int64_t size : shape) count *= static_cast<double>(size);
    return count;
  };
  double floats = elements(workload.input_shape()) + elements(workload.output_shape()) +
                  elements(workload.weights_shape());
  if (workload.post.sum) floats += elements(workload.output_shape());
  for (const ConvWorkload& before : workload.before) floats += elements(before.weights_shape());
  return floats * static_cast<double>(sizeof(float));
}

Json RecordJson(const Record& record) {
  Json config = Json::object();
  for (const auto& [knob, value] : record.config.knobs()) config[knob] = value;
  return {{"workload", WorkloadToString(record.workload)},
          {"template", record.template_name},
          {"config", std::move(config)},
          {"flops", record.workload.flops()},
          {"bytes", BytesOf(record.workload)},
          {"stand_alone_seconds", record.seconds > 0 ? Json(record.seconds) : Json()}};
}

// What was measured, by what it is of.
struct MeasuredSteps {
  std::map<std::string, double> nodes, transforms;  // by the node's name, by the step's

  explicit MeasuredSteps(const std::vector<Json>& steps) {
    for (const Json& step : steps) {
      if (!step["seconds"].is_number() || !step["node"].is_string() || !step["name"].is_string()) continue;
      const std::string& name = step["name"].get_ref<const std::string&>();
      const std::string& node = step["node"].get_ref<const std::string&>();
      const bool converts = name != node && !name.ends_with(">" + node);
      (converts ? transforms[name] : nodes[node]) += step["seconds"].get<double>();
    }
  }
};

Json Found(const std::map<std::string, double>& seconds, const std::string& name) {
  const auto found = seconds.find(name);
  return found == seconds.end() ? Json() : Json(found->second);
}

Json NodeJson(const NodePlan& plan, const MeasuredSteps& measured) {
  Json node = {{"name", plan.node}, {"op", plan.op_type}};
  if (plan.fused_into.empty()) {
    node["layouts"] = {plan.layouts.in.ToString(), plan.layouts.out.ToString()};
  } else {
    node["fused_into"] = plan.fused_into;
  }
  node["predicted_seconds"] = plan.predicted_seconds;
  node["measured_seconds"] = Found(measured.nodes, plan.node);
  if (plan.region > 0) node["region"] = plan.region;
  if (plan.record) node.update(RecordJson(*plan.record));
  return node;
}

Json TransformJson(const TransformPlan& transform, const MeasuredSteps& measured) {
  const std::string from = transform.from.ToString(), to = transform.to.ToString();
  return {{"tensor", transform.tensor},
          {"from", from},
          {"to", to},
          {"predicted_seconds", transform.predicted_seconds},
          {"measured_seconds", Found(measured.transforms, transform.tensor + ": " + from + " -> " + to)}};
}

// Every node but constants and what no output needs, numbered in the graph's order.
std::map<NodeId, int64_t> ShownNodes(const Graph& graph, const std::vector<NodeSchedule>& schedules) {
  std::map<NodeId, int64_t> numbers;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!schedules[id].live || graph.node(id).op->Type() == "Constant") continue;
    numbers.emplace(id, static_cast<int64_t>(numbers.size()));
  }
  return numbers;
}

// Which of the plan's transforms brings a node's output into a layout; null: none is listed.
Json TransformTo(const Plan& plan, const Node& producer, const Layout& layout) {
  for (size_t i = 0; i < plan.transforms.size(); ++i) {
    const TransformPlan& transform = plan.transforms[i];
    if (transform.tensor == producer.name && SameForm(producer.shape, transform.to, layout)) return i;
  }
  return nullptr;
}

struct Edges {
  const Graph& graph;
  const Plan& plan;
  const std::vector<NodeSchedule>& schedules;
  const std::map<NodeId, int64_t>& numbers;

  // `slot` counts what the node's kernel reads: what is fused in front of a conv has no layout between.
  Json Of(NodeId from, NodeId to, size_t slot) const {
    const NodeSchedule& producer = schedules[from];
    const NodeSchedule& consumer = schedules[to];
    const Shape& shape = graph.node(from).shape;
    Json edge = {{"from", numbers.at(from)}, {"to", numbers.at(to)}};
    if (producer.fused_away) {
      edge["fused"] = true;
      return edge;
    }
    const Layout& written = producer.out;
    // What is fused away reads what the conv behind it reads.
    const NodeSchedule& reader = consumer.fused_away ? ReaderFor(to) : consumer;
    const Layout& read = slot < reader.inputs.size() && !consumer.fused_away ? reader.inputs[slot]
                         : !reader.inputs.empty()                            ? reader.inputs[0]
                                                                             : written;
    edge["layout"] = written.ToString();
    if (!SameForm(shape, written, read)) {
      edge["read_as"] = read.ToString();
      edge["transform"] = TransformTo(plan, graph.node(from), read);
    }
    return edge;
  }

  const NodeSchedule& ReaderFor(NodeId fused) const {
    for (const NodeId consumer : graph.Consumers(fused))
      if (schedules[consumer].first == fused) return schedules[consumer];
    return schedules[fused];
  }

  Json All() const {
    Json edges = Json::array();
    for (const auto& [id, number] : numbers) {
      const std::vector<NodeId> inputs = graph.Inputs(id);
      for (size_t slot = 0; slot < inputs.size(); ++slot)
        if (numbers.contains(inputs[slot])) edges.push_back(Of(inputs[slot], id, slot));
    }
    return edges;
  }
};

}  // namespace

Json NetworkView(const Plan& plan, const Graph* graph, const std::vector<Json>& steps) {
  const MeasuredSteps measured(steps);
  Json nodes = Json::array(), edges = Json::array(), transforms = Json::array();
  for (const TransformPlan& transform : plan.transforms)
    transforms.push_back(TransformJson(transform, measured));
  if (!graph) {
    for (const NodePlan& node : plan.nodes) nodes.push_back(NodeJson(node, measured));
  } else {
    std::map<std::string_view, const NodePlan*> planned;
    for (const NodePlan& node : plan.nodes) planned[node.node] = &node;
    const std::vector<NodeSchedule> schedules = ResolveSchedules(*graph, plan, plan.target);
    const std::map<NodeId, int64_t> numbers = ShownNodes(*graph, schedules);
    for (const auto& [id, number] : numbers) {
      const Node& node = graph->node(id);
      const auto found = planned.find(node.name);
      const std::string out = schedules[id].out.ToString();
      Json json = found != planned.end()
                      ? NodeJson(*found->second, measured)
                      : Json{{"name", node.name}, {"op", node.op->Type()}, {"layouts", {out, out}}};
      json["shape"] = node.shape;
      json["type"] = "f32";
      if (graph->IsOutput(id)) json["output"] = true;
      nodes.push_back(std::move(json));
    }
    edges = Edges{*graph, plan, schedules, numbers}.All();
  }
  return {{"nodes", std::move(nodes)}, {"edges", std::move(edges)}, {"transforms", std::move(transforms)}};
}

namespace {

using Json = nlohmann::ordered_json;

// As far as the plan says them; its own options are not known.
GraphTuningArguments ArgumentsFor(const ReportedPlan& explained) {
  GraphTuningArguments arguments;
  arguments.machine.threads = explained.plan.threads;
  arguments.machine.max_isa = IsaName(explained.plan.target.isa);
  arguments.costs_path = explained.costs_path;
  arguments.tuning.accuracy = explained.plan.accuracy;
  arguments.tuning.allow_defaults = std::ranges::any_of(
      explained.plan.nodes, [](const NodePlan& node) { return node.record && node.record->seconds == 0; });
  return arguments;
}

// The choice in the plan, or the runner-up where the plan has the best one.
std::optional<ExplainedChoice> OtherChoice(const SolvedNetwork& solved, const Plan& plan,
                                           Graph::NodeId node) {
  const std::optional<NodeChoice> given = ChosenBy(solved.graph(), solved.built(), plan, node);
  if (given && *given != ChosenBy(solved.built(), solved.assignment, node))
    return ExplainChoice(solved, node, *given);
  return RunnerUp(solved, node);
}

Json ExplanationOf(const SolvedNetwork& solved, const Plan& plan, const NodePlan& best) {
  const Graph::NodeId node = solved.graph().Find(best.node).value();
  const std::vector<NodeChoice> choices = ChoicesOf(solved.built(), node);
  Json json = {{"node", best.node},
               {"choices", choices.size()},
               {"best", ChoiceText(solved.graph(), solved.best, best)},
               {"best_seconds", best.predicted_seconds}};
  if (choices.size() < 2) return json;
  const std::optional<ExplainedChoice> other = OtherChoice(solved, plan, node);
  if (!other) return json;
  json["other"] = ChoiceText(solved.graph(), *other);
  json["other_is_plan"] = ChosenBy(solved.graph(), solved.built(), plan, node) == other->choice;
  json["off_seconds"] = other->total_seconds - solved.best.predicted_seconds;
  const NodeChoice chosen = ChosenBy(solved.built(), solved.assignment, node);
  json["why"] = InequalityText(solved.graph(), ExplainChoice(solved, node, chosen), *other);
  return json;
}

}  // namespace

NodeExplanations ExplainNodes(const ReportedPlan& explained, double seconds, const WorkSinks& sinks) {
  NodeExplanations explanations;
  if (seconds <= 0) return {Json::array(), "not asked for"};
  const Plan& plan = explained.plan;
  const double end = NowSeconds() + seconds;
  try {
    if (!SameMachine(plan.target, CapIsa(DetectCpu(), plan.target.isa)))
      return {Json::array(), "the plan is for another machine"};
    const GraphTuningArguments arguments = ArgumentsFor(explained);
    const DevicePtr machine = OpenMachine(arguments.machine);
    const PinnedTeam team(machine);
    const auto costs = OpenCosts(arguments, machine, sinks);
    GraphTuneOptions options = TuningOptions(arguments, machine, sinks);
    options.ends = plan.ends;
    const NetworkProblem problem(explained.graph, explained.records, *costs, options);
    const SolvedNetwork solved = SolveNetwork(problem, plan.corrections);
    std::vector<NodePlan> nodes = solved.best.nodes;
    std::ranges::stable_sort(nodes, std::greater(), &NodePlan::predicted_seconds);
    for (const NodePlan& node : nodes) {
      ThrowIfStopped(sinks.stop);
      if (NowSeconds() > end) {
        explanations.missing = fmt::format("of {} of {} nodes, as many as {} took", explanations.list.size(),
                                           nodes.size(), DurationText(seconds));
        break;
      }
      sinks.Stage(fmt::format("explaining nodes {}/{}", explanations.list.size() + 1, nodes.size()));
      explanations.list.push_back(ExplanationOf(solved, plan, node));
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInterrupted) throw;
    return {Json::array(), error.what()};
  }
  return explanations;
}

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
  Json regions = Json::array();
  for (const RegionPlan& region : plan.regions) regions.push_back({{"band_rows", region.band_rows}});
  return {{"network", plan.network},
          {"graph_hash", plan.graph_hash},
          {"solver", plan.solver},
          {"certificate", plan.certificate},
          {"predicted_seconds", predicted > 0 ? Json(predicted) : Json()},
          {"version", plan.target.version},
          {"threads", plan.threads},
          {"input_layout", plan.ends.inputs.ToString()},
          {"output_layout", plan.ends.outputs.ToString()},
          {"regions", std::move(regions)}};
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
