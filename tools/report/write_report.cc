#include "tools/report/write_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "ops/networks/networks.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/report/report_data.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

std::string_view PageText(std::string_view name) {
  const auto files = PageFiles();
  const auto found = std::ranges::find(files, name, &PageFile::name);
  TILESMITH_CHECK(found != files.end(), "the page lacks {}", name);
  return found->text;
}

std::string EscapedHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else
      escaped += c;
  }
  return escaped;
}

std::string Script(std::string_view text) {
  std::string script = "<script>\n";
  script += text;
  return script + "\n</script>\n";
}

// What stands for `{{name}}` in page.html.
std::string Part(std::string_view name, const nlohmann::ordered_json& data,
                 std::span<const PageFile> third_party) {
  std::string part;
  if (name == "style") return std::string(PageText("page.css"));
  if (name == "data") return EmbeddedJson(data);
  if (name == "libraries" || name == "licences") {
    for (const PageFile& file : third_party) {
      const bool is_script = file.name.ends_with(".js");
      if (is_script != (name == "libraries")) continue;
      part += is_script
                  ? Script(file.text)
                  : "<h3>" + EscapedHtml(file.name) + "</h3>\n<pre>" + EscapedHtml(file.text) + "</pre>\n";
    }
    return part;
  }
  TILESMITH_CHECK(name == "scripts", "page.html asks for {}", name);
  for (const char* file : {"base.js", "charts.js", "graph.js", "sections.js"}) part += Script(PageText(file));
  return part;
}

}  // namespace

std::string EmbeddedJson(const nlohmann::ordered_json& data) {
  const std::string json = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string embedded;
  embedded.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      embedded += "\\u003c";
    else
      embedded += c;
  }
  return embedded;
}

std::string ReportPage(const nlohmann::ordered_json& data, std::span<const PageFile> third_party) {
  std::string page;
  std::string_view rest = PageText("page.html");
  for (size_t begin; (begin = rest.find("{{")) != std::string_view::npos;) {
    const size_t end = rest.find("}}", begin);
    page += rest.substr(0, begin);
    page += Part(rest.substr(begin + 2, end - begin - 2), data, third_party);
    rest.remove_prefix(end + 2);
  }
  page += rest;
  return page;
}

namespace {

// Chooses, of plans for several sizes, the one for the sizes that the request gives.
Plan ChoosePlan(const ReportRequest& request, std::vector<std::string>* skipped) {
  std::vector<Plan> plans = ReadPlans(request.plan_path, skipped);
  if (plans.size() == 1) return std::move(plans.front());
  const std::string several =
      fmt::format("{}: plans for {} sizes of the inputs", request.plan_path, plans.size());
  ModelOptions model = request.model;
  if (model.model.empty()) model.model = plans.front().network;
  if (request.model.model.empty() && !IsBuiltInNetwork(model.model))
    throw Error(ErrorCode::kUsage,
                several + ": name the network with --model, and one of them with --batch or --input-shape");
  model.quantization = plans.front().quantization;
  const auto chosen = std::ranges::find(plans, GraphHash(LoadModel(model)), &Plan::graph_hash);
  if (chosen == plans.end()) {
    throw Error(
        ErrorCode::kUsage,
        several + fmt::format(", none for {} as it is asked for: choose one with --batch or --input-shape",
                              model.model));
  }
  return std::move(*chosen);
}

struct FoundGraph {
  std::optional<Graph> graph;
  std::string missing;
};

// The network that the plan is for. A model that is named, or whose sizes are, must be it; one that is
// guessed need not.
FoundGraph FindGraph(ModelOptions model, const Plan& plan) {
  const bool is_guess = model.model.empty(), has_sizes = model.batch > 0 || !model.input_shapes.empty();
  if (is_guess) {
    if (!IsBuiltInNetwork(plan.network))
      return {std::nullopt, "not a built-in network: name it with --model"};
    model.model = plan.network;
  }
  model.quantization = plan.quantization;
  Graph graph = LoadModel(model);
  const std::string hash = GraphHash(graph);
  if (hash == plan.graph_hash) return {std::move(graph), ""};
  const std::string reason =
      fmt::format("{} with these input sizes is another network ({}) than the plan's ({})", model.model, hash,
                  plan.graph_hash);
  if (!is_guess || has_sizes) throw Error(ErrorCode::kUsage, reason);
  return {std::nullopt, reason + ": give its sizes with --input-shape or --batch"};
}

void AddBench(const std::string& path, const Plan& plan, SavedResults& results) {
  if (path.empty()) return;
  results.Add(ReadTextFile(path), path, plan);
  // A network without convolutions has no mean of their ratios.
  if (!results.Has("geomean_ratio") && !results.Has("network_plan") && !results.Has("sweep"))
    throw Error(ErrorCode::kUsage, fmt::format("{}: not what `tilesmith bench --json` prints", path));
}

// How many of the plan's convolutions the log has no record of.
std::string MissingTuning(const std::string& log_path, const std::vector<Record>& records, const Plan& plan) {
  if (log_path.empty()) return "";
  std::set<std::string> tuned, planned;
  for (const Record& record : records) tuned.insert(WorkloadToString(record.workload));
  for (const NodePlan& node : plan.nodes)
    if (node.record) planned.insert(WorkloadToString(node.record->workload));
  const int64_t missing =
      std::ranges::count_if(planned, [&](const std::string& workload) { return !tuned.contains(workload); });
  if (missing == 0) return "";
  return fmt::format("the tuning of {} of the plan's {} convolutions: {} has no record of them", missing,
                     planned.size(), log_path);
}

nlohmann::json ReadTrace(const std::string& path) {
  if (path.empty()) return nullptr;
  nlohmann::json trace = ParseJson(ReadTextFile(path));
  if (!trace.is_object() && !trace.is_array())
    throw Error(ErrorCode::kUsage, fmt::format("{}: not a trace, as run --trace writes it", path));
  return trace;
}

}  // namespace

WrittenReport WriteReport(const ReportRequest& request, const WorkSinks& sinks) {
  std::vector<std::string> read = request.result_paths;
  read.insert(read.end(), {request.bench_path, request.log_path, request.plan_path, request.trace_path,
                           request.costs_path, request.model.model});
  RequireReplaceable(request.output_path, OutputFormat::kPage, read);
  std::vector<std::string> skipped;
  const Plan plan = ChoosePlan(request, &skipped);
  for (const std::string& line : skipped) sinks.Warn(line);
  const std::vector<Record> records =
      request.log_path.empty() ? std::vector<Record>() : LoadRecords(request.log_path);
  SavedResults results;
  AddBench(request.bench_path, plan, results);
  for (const std::string& path : request.result_paths) results.Add(ReadTextFile(path), path, plan);
  for (const std::string& text : request.results) results.Add(text, "results", plan);
  nlohmann::json trace = ReadTrace(request.trace_path);
  FoundGraph found = FindGraph(request.model, plan);

  NodeExplanations explanations{nlohmann::ordered_json::array(), "the network is not known"};
  if (found.graph) {
    std::string costs = request.costs_path;
    if (costs.empty() && !request.log_path.empty()) costs = CostsPathFor(request.log_path);
    explanations = ExplainNodes({*found.graph, plan, records, costs}, request.explain_seconds, sinks);
  }
  WrittenReport written;
  if (!found.graph) written.missing.push_back("the network: " + found.missing);
  if (const std::string tuning = MissingTuning(request.log_path, records, plan); !tuning.empty()) {
    sinks.Warn("not in the report: " + tuning);
    written.missing.push_back(tuning);
  }
  for (const std::string& source : results.without_plan())
    written.missing.push_back(fmt::format("which plan was measured: {} does not say", source));
  if (!explanations.missing.empty()) written.missing.push_back("explanations: " + explanations.missing);
  if (ThirdPartyFiles().empty()) {
    written.missing.push_back(
        "charts: the libraries that draw them were not there when tilesmith was built (tools/fetch-report)");
  }
  nlohmann::ordered_json data =
      ReportData({plan, records, found.graph ? &*found.graph : nullptr, found.missing, results,
                  std::move(explanations), std::move(trace)});
  written.verdict = VerdictText(data);
  data["verdict"]["text"] = written.verdict;
  data["missing"] = written.missing;
  WriteTextFile(request.output_path, ReportPage(data, ThirdPartyFiles()));
  return written;
}

}  // namespace tilesmith
