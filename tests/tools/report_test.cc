// `tilesmith report`: the data behind the page, and the page itself in a browser.
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "ops/networks/networks.h"
#include "ops/passes/passes.h"
#include "tests/graph_tuner/support/region_plans.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/cli/system_files.h"
#include "tools/report/report_data.h"
#include "tools/report/write_report.h"

namespace tilesmith {
namespace {

using Document = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

// Ends scripts, attributes and strings, runs what it can, hides, turns text around, and is no UTF-8.
const std::string kHostile =
    "</script><img src=x "
    "onerror=\"document.body.dataset.hacked=1\"><!--<script>'\"`${1}\\\n\x1b[2J\u202e&lt;\xff";

TEST(ReportPageTest, NoTextEndsTheScriptItIsIn) {
  const Document data = {{"name", kHostile}, {kHostile, {kHostile}}};
  const std::string embedded = EmbeddedJson(data);
  EXPECT_EQ(embedded.find('<'), std::string::npos);
  EXPECT_EQ(embedded.find('\n'), std::string::npos);
  std::string expected = kHostile;
  expected.replace(expected.size() - 1, 1, "\uFFFD");
  EXPECT_EQ(Document::parse(embedded)["name"], expected);
}

TEST(ReportPageTest, LicencesAndLibrariesAreKept) {
  const PageFile files[] = {{"some.js", "/* a library */"}, {"some-LICENSE.txt", "free as <in> speech"}};
  const std::string page = ReportPage({{"tilesmith_report", 1}}, files);
  EXPECT_THAT(page, HasSubstr("<script>\n/* a library */\n</script>"));
  EXPECT_THAT(page, HasSubstr("free as &lt;in> speech"));
  EXPECT_THAT(page, HasSubstr("{\"tilesmith_report\":1}</script>"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  for (const PageFile& file : ThirdPartyFiles()) {
    EXPECT_EQ(file.text.find("</script"), std::string_view::npos) << file.name;
    EXPECT_EQ(file.text.find("<!--"), std::string_view::npos) << file.name;
  }
}

// A built-in network, with a text in front of the name of every node.
Graph NetworkWithNames(const std::string& network, const std::string& prefix) {
  const Graph graph = LoadModel({.model = network, .input_shapes = {"input=1x3x32x32"}});
  return RewriteGraph(graph, [&](Graph::NodeId id, const std::vector<Graph::NodeId>& inputs, Graph& result) {
    return result.Add(prefix + graph.node(id).name, graph.node(id).op, inputs);
  });
}

// A network with a plan, a log and measurements that nobody took.
struct Example {
  explicit Example(const std::string& network = "squeezenet1_1", const std::string& prefix = "")
      : graph(NetworkWithNames(network, prefix)),
        plan(HeuristicPlan(graph, CapIsa(DetectCpu(), Isa::kAvx2), 2)) {
    double seconds = 1e-5;
    for (NodePlan& node : plan.nodes) {
      node.predicted_seconds = node.op_type == "Flatten" ? 0 : seconds *= 1.05;
      if (!node.record) continue;
      node.record->sample_seconds = {seconds};
      node.record->seconds = seconds;
      for (const double slower : {2.0, 3.0, 1.5, 1.0}) {
        records.push_back(*node.record);
        records.back().seconds = seconds * slower;
      }
      records.push_back(*node.record);
      records.back().status = TrialStatus::kRunCrash;
      records.push_back(*node.record);
      records.back().purpose = kPurposeRetime;
    }
    for (TransformPlan& transform : plan.transforms) transform.predicted_seconds = 1e-6;
    plan.predicted_seconds = 2e-3;
  }

  SavedResults Results(const std::string& prefix = "") const {
    Document bench = {{"graph_hash", plan.graph_hash},
                      {"peak_flops", 1e11},
                      {"read_bytes_per_second", 2e10},
                      {"network_seconds", 2e-3},
                      {"network_onednn_seconds", 3e-3},
                      {"network_ratio", 1.5},
                      {"network_ratio_low", 1.4},
                      {"network_ratio_high", 1.6},
                      {"network_untuned_ratio", 1.8},
                      {"network_disturbed_share", 0.41},
                      {"command", "tilesmith bench " + prefix}};
    for (const NodePlan& node : plan.nodes) {
      bench["steps"].push_back({{"name", node.node},
                                {"node", node.node},
                                {"kind", node.op_type},
                                {"seconds", node.predicted_seconds * 1.1}});
      if (!node.record) continue;
      bench["rows"].push_back({{"workload", WorkloadToString(node.record->workload)},
                               {"shape", prefix + "3x3"},
                               {"count", 1},
                               {"ours_seconds", 1e-4},
                               {"onednn_seconds", 2e-4},
                               {"ratio", 2}});
    }
    for (int i = 0; i < 50; ++i) bench["network_sample_seconds"].push_back(2e-3 + 1e-5 * (i % 7));
    const Document alone = {{"threads", 2},
                            {"batch", 1},
                            {"streams", 1},
                            {"schedule", prefix},
                            {"p50_seconds", 2e-3},
                            {"p99_seconds", 3e-3},
                            {"images_per_second", 490}};
    Document beside = alone;
    beside.update(
        {{"onnxruntime_images_per_second", 300}, {"onnxruntime_p50_seconds", 3e-3}, {"ratio", 1.6}});
    bench["sweep"] = {alone, beside};
    const Document tuned = {{"command", "tilesmith graph-tune"},
                            {"baselines", {{{"baseline", "best record of each conv"}, {"gain", 0.1}}}}};
    SavedResults results;
    results.Add(bench.dump(-1, ' ', false, Document::error_handler_t::replace), "bench.json", plan);
    results.Add(tuned.dump(), "graph-tune.json", plan);
    return results;
  }

  Document Data(const std::string& prefix = "") const {
    const SavedResults results = Results(prefix);
    Document trace;
    for (int i = 0; i < 20; ++i)
      trace.push_back({{"ph", "X"},
                       {"name", prefix + "step"},
                       {"cat", "direct"},
                       {"tid", i % 2},
                       {"ts", 1e6 + 10 * i},
                       {"dur", 9}});
    Document data = ReportData({plan, records, &graph, "", results, {}, trace});
    data["verdict"]["text"] = VerdictText(data);
    data["missing"] = Document::array();
    return data;
  }

  Graph graph;
  Plan plan;
  std::vector<Record> records;
};

TEST(ReportDataTest, SaysWhatWasMeasured) {
  const Example example;
  const Document data = example.Data();
  EXPECT_EQ(data["tilesmith_report"], kReportFormat);
  EXPECT_EQ(data["verdict"]["onednn_ratio"], 1.5);
  EXPECT_THAT(VerdictText(data), testing::EndsWith("takes 2.000 ms: 1.50 times as fast as oneDNN (3.000 ms); "
                                                   "disturbed: 41% of the turns, measure again"));
  ASSERT_EQ(data["improvement"].size(), 3u);
  EXPECT_DOUBLE_EQ(data["improvement"][0]["seconds"], 3.6e-3);
  EXPECT_DOUBLE_EQ(data["improvement"][1]["seconds"], 2.2e-3);
  EXPECT_EQ(data["layers"].size(), 26u);
  EXPECT_EQ(data["runs"][0]["seconds"].size(), 50u);
  EXPECT_EQ(data["timeline"].size(), 20u);
  EXPECT_EQ(data["timeline"][0]["begin_seconds"], 0);
}

TEST(ReportDataTest, CurvesCountTrialsAndKeepWhatGotBetter) {
  const Example example;
  const Document tasks = example.Data()["tasks"];
  ASSERT_FALSE(tasks.empty());
  double last = HUGE_VAL;
  for (const Document& task : tasks) {
    const int64_t count = task["count"];
    EXPECT_EQ(task["trials"], 5 * count);
    EXPECT_EQ(task["failures"]["run_crash"], count);
    ASSERT_GE(task["best"].size(), 3u);
    EXPECT_EQ(task["best"][0][0], 1);
    EXPECT_EQ(task["best"][1][0], 3);  // the second trial was slower
    const double seconds = task["best"].back()[1].get<double>() * static_cast<double>(count);
    EXPECT_LE(seconds, last);
    last = seconds;
  }
}

TEST(ReportDataTest, EdgesSayLayoutsAndTransforms) {
  const Example example;
  const Document data = example.Data();
  std::map<std::string, int64_t> transforms;
  for (const Document& edge : data["edges"]) {
    EXPECT_LT(edge["from"], edge["to"]);
    const Document& from = data["nodes"][edge["from"].get<size_t>()];
    EXPECT_EQ(edge["layout"], from["layouts"][1]);
    if (!edge.contains("read_as")) continue;
    ASSERT_TRUE(edge["transform"].is_number()) << edge;
    const Document& transform = data["transforms"][edge["transform"].get<size_t>()];
    EXPECT_EQ(transform["tensor"], from["name"]);
    ++transforms[from["name"]];
  }
  EXPECT_EQ(transforms.size(), example.plan.transforms.size());
  for (const Document& node : data["nodes"]) {
    if (!node.contains("workload")) continue;
    EXPECT_GT(node["flops"], 0);
    EXPECT_DOUBLE_EQ(node["measured_seconds"].get<double>(), node["predicted_seconds"].get<double>() * 1.1);
  }
}

// Two nodes of the example in a region, for its picture.
Document DataWithRegion() {
  Example example;
  AddRegion(example.plan, {"features.3.squeeze", "features.3.expand1x1"}, 4);
  return example.Data();
}

TEST(ReportDataTest, NodesSayTheirRegion) {
  const Document data = DataWithRegion();
  EXPECT_EQ(data["plan"]["regions"], Document::parse(R"([{"band_rows": 4}])"));
  EXPECT_EQ(
      std::ranges::count_if(data["nodes"], [](const Document& node) { return node.value("region", 0) == 1; }),
      2);
  EXPECT_EQ(Example().Data()["plan"]["regions"], Document::array());
}

TEST(ReportDataTest, ResultsOfAnotherPlanAreRefused) {
  const Example example;
  const auto measured_with = [&](const Plan& plan) {
    return Document{{"command", "bench"}, {"graph_hash", plan.graph_hash}, {"plan_hash", PlanHash(plan)}}
        .dump();
  };
  Plan other = example.plan;
  other.predicted_seconds *= 2;
  SavedResults results;
  results.Add(measured_with(other), "same.json", example.plan);
  EXPECT_THAT(results.without_plan(), testing::IsEmpty());
  other.nodes.back().split = Split::kRows;
  EXPECT_THROW(results.Add(measured_with(other), "other.json", example.plan), Error);
  results.Add(Document{{"command", "bench"}, {"graph_hash", example.plan.graph_hash}}.dump(), "old.json",
              example.plan);
  EXPECT_THAT(results.without_plan(), testing::ElementsAre("old.json"));
}

TEST(ReportDataTest, ResultsMayHoldAnything) {
  const Example example;
  SavedResults results;
  EXPECT_THROW(results.Add("[1]", "a.json", example.plan), Error);
  EXPECT_THROW(results.Add("{\"a\":", "a.json", example.plan), Error);
  EXPECT_THROW(results.Add(R"({"network_seconds": 1})", "a.json", example.plan), Error)
      << "no command printed it";
  EXPECT_THROW(results.Add(R"({"command": "", "graph_hash": "0123"})", "a.json", example.plan), Error);
  results.Add(
      R"({"network_seconds": "soon", "rows": [1, {"ours_seconds": [2], "shape": {"a": 1}}], "steps": {"a": 2},
                  "baselines": 7, "network_sample_seconds": [1, "2", null], "peak_flops": null, "command": 3})",
      "a.json", example.plan);
  const Document trace =
      Document::parse(R"({"traceEvents": [3, {"ph": "X"}, {"ph": "B", "ts": 1, "dur": 1}]})");
  const Document data =
      ReportData({example.plan, example.records, nullptr, "nobody knows", results, {}, trace});
  EXPECT_TRUE(data["verdict"]["ours_seconds"].is_null());
  ASSERT_EQ(data["layers"].size(), 1u);
  EXPECT_TRUE(data["layers"][0]["ours_seconds"].is_null());
  EXPECT_EQ(data["runs"][0]["seconds"].size(), 1u);
  EXPECT_TRUE(data["timeline"].empty());
  EXPECT_TRUE(data["edges"].empty());
  EXPECT_EQ(data["graph_missing"], "nobody knows");
  EXPECT_EQ(data["nodes"].size(), example.plan.nodes.size());
}

// The page after its scripts ran, and what they complained of.
class BrowserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!FindProgram("chromium"))
      GTEST_SKIP() << "chromium is not installed (tools/install-deps --for-checks)";
  }

  void Open(const Document& data, std::span<const PageFile> third_party = ThirdPartyFiles(),
            int width = 1200) {
    WriteFile(directory_.File("report.html"), ReportPage(data, third_party));
    const ProgramResult result =
        RunProgram({"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                    "--user-data-dir=" + directory_.File("profile"), "--virtual-time-budget=20000",
                    fmt::format("--window-size={},900", width), "--enable-logging=stderr", "--dump-dom",
                    "file://" + directory_.File("report.html")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    dom_ = result.out.substr(0, result.out.find("<script"));  // not the page's own source
    EXPECT_THAT(result.err, Not(HasSubstr("CONSOLE")));
    EXPECT_THAT(dom_, HasSubstr("data-ready=\"yes\""));
  }

  // What was drawn for a chart, up to the next one.
  std::string Chart(const std::string& name) const {
    const size_t begin = dom_.find("data-chart=\"" + name + "\"");
    if (begin == std::string::npos) return "";
    return dom_.substr(begin, dom_.find("data-chart=", begin + 1) - begin);
  }

  const TemporaryDirectory directory_;
  std::string dom_;
};

const std::vector<std::string> kCharts = {"layers",    "improvement", "curves",    "roofline",
                                          "histogram", "settings",    "prediction"};

TEST_F(BrowserTest, EveryChartIsDrawn) {
  if (ThirdPartyFiles().empty()) GTEST_SKIP() << "built without the libraries of tools/fetch-report";
  const Example example;
  Open(example.Data());
  for (const std::string& chart : kCharts) {
    EXPECT_THAT(Chart(chart), HasSubstr("<svg")) << chart;
    EXPECT_THAT(Chart(chart), HasSubstr("<path")) << chart;
  }
  for (const std::string chart : {"network", "timeline"})
    EXPECT_THAT(Chart(chart), HasSubstr("<rect")) << chart;
  EXPECT_THAT(dom_, HasSubstr(example.plan.nodes[5].node));
  EXPECT_THAT(dom_, Not(HasSubstr("Not shown")));
  EXPECT_THAT(dom_, Not(HasSubstr("NaN")));
}

TEST_F(BrowserTest, WithoutLibrariesThereAreTables) {
  const Example example;
  Open(example.Data(), {});
  for (const std::string& chart : kCharts) EXPECT_EQ(Chart(chart), "") << chart;
  for (const std::string chart : {"network", "timeline"})
    EXPECT_THAT(Chart(chart), HasSubstr("<rect")) << chart;
  EXPECT_THAT(dom_, testing::ContainsRegex("<details open=\"\">"));
}

TEST_F(BrowserTest, WithoutMeasurementsItSaysWhatIsMissing) {
  const Example example;
  const SavedResults none;
  Document data = ReportData({example.plan, {}, nullptr, "no model", none, {}, {}});
  data["verdict"]["text"] = VerdictText(data);
  data["missing"] = {"the network: no model"};
  Open(data);
  // Behind what there is.
  EXPECT_THAT(dom_,
              testing::ContainsRegex("id=\"absent\"><h2>Not shown</h2>.*"
                                     "<dt>Layer by layer</dt><dd>needs what bench printed as JSON</dd>"));
  EXPECT_THAT(dom_, Not(HasSubstr("<section id=\"layers\"")));
  EXPECT_LT(dom_.find("<section id=\"plan\""), dom_.find("<section id=\"absent\""));
  EXPECT_THAT(dom_, HasSubstr("predicted 2.000 ms, not measured"));
  EXPECT_THAT(dom_, HasSubstr("Not in this page: the network: no model"));
}

TEST_F(BrowserTest, RegionsAreFramed) {
  Open(DataWithRegion(), {});
  EXPECT_THAT(Chart("network"),
              HasSubstr("<title>region 1, computed depth first in bands of 4 rows</title>"));
  EXPECT_THAT(Chart("network"), HasSubstr(">region 1</text>"));
  EXPECT_THAT(dom_, HasSubstr(">region</th>"));
  Open(Example().Data(), {});
  EXPECT_THAT(dom_, Not(HasSubstr(">region</th>")));
}

// What is drawn of a label may be in several lines.
TEST_F(BrowserTest, LabelsKeepTheKernelOnAPhone) {
  if (ThirdPartyFiles().empty()) GTEST_SKIP() << "built without the libraries of tools/fetch-report";
  const Example example;
  Document data = example.Data();
  for (Document& row : data["layers"]) row["shape"] = "256x14x14 -> 256x14x14, 3x3";
  data["layers"][0]["shape"] = "1024x14x14 -> 2048x7x7, 5x7 /2 d2 +sum";
  Open(data, ThirdPartyFiles(), 390);
  const std::string drawn = std::regex_replace(Chart("layers"), std::regex("<[^>]*>"), "");
  EXPECT_THAT(drawn, HasSubstr("256x14x14 -&gt; 256, 3x3"));
  EXPECT_THAT(drawn, HasSubstr("1024x14x14"));
  EXPECT_THAT(drawn, HasSubstr("5x7"));
  EXPECT_THAT(drawn, HasSubstr("+sum"));
  EXPECT_THAT(drawn, Not(HasSubstr("...")));
  Open(data);
  EXPECT_THAT(Chart("layers"), HasSubstr("256x14x14 -&gt; 256x14x14, 3x3"));
}

TEST_F(BrowserTest, NamesAreTextWhateverTheyHold) {
  const Example example("squeezenet1_1", kHostile);
  Open(example.Data(kHostile));
  EXPECT_THAT(dom_, Not(HasSubstr("data-hacked")));
  EXPECT_THAT(dom_, HasSubstr("\\u001b[2J\\u202e"));
}

TEST_F(BrowserTest, LargeNetworksAreDrawn) {
  const Example example("densenet121");
  EXPECT_GT(example.plan.nodes.size(), 200u);
  Open(example.Data());
  EXPECT_THAT(Chart("network"), HasSubstr("<rect"));
}

TEST(ReportCommandTest, RefusesWhatDoesNotBelongTogether) {
  const TemporaryDirectory directory;
  const Example example;
  const std::string plan = directory.File("plan.jsonl"), log = directory.File("log.jsonl");
  WritePlan(plan, example.plan);
  WriteFile(directory.File("other.json"), R"({"graph_hash": "0123456789abcdef"})");
  ExpectRefusal({"report", log, plan}, 2, "-o FILE is required");
  ExpectRefusal({"report", log, plan, "-o", directory.File("a.html")}, 7, "log.jsonl");
}

TEST(ReportCommandTest, OneOfPlansForSeveralSizesIsChosen) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl"), page = directory.File("a.html");
  const std::string log = directory.File("log.jsonl");
  WriteFile(log, "");
  std::vector<Plan> plans;
  for (const int64_t batch : {1, 2}) {
    const Graph graph = OptimizeGraph(BuildNetwork("squeezenet1_1", {.batch = batch}));
    plans.push_back(HeuristicPlan(graph, DetectCpu(), 1));
  }
  WritePlans(plan, plans);
  const std::vector<std::string> report = {"report", log, plan, "-o", page, "--no-explain"};
  const auto with_batch = [&](const char* batch) {
    std::vector<std::string> arguments = report;
    arguments.insert(arguments.end(), {"--batch", batch});
    return arguments;
  };
  ASSERT_EQ(Tilesmith(with_batch("2")).exit_code, 0);
  EXPECT_THAT(ReadFile(page), HasSubstr(plans[1].graph_hash));
  EXPECT_EQ(Tilesmith(report).exit_code, 0);
  EXPECT_THAT(ReadFile(page), HasSubstr(plans[0].graph_hash));
  ExpectRefusal(with_batch("3"), 2,
                "plans for 2 sizes of the inputs, none for squeezenet1_1 as it is asked for");
}

TEST(ReportCommandTest, WritesAPageOfATunedNetwork) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl"), plan = directory.File("plan.jsonl");
  const std::string bench = directory.File("bench.json"), page = directory.File("a.html");
  const std::vector<std::string> shape = {"--input-shape", "input=1x3x32x32"};
  const auto with_shape = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    return Tilesmith(arguments);
  };
  ASSERT_EQ(with_shape({"tune", "squeezenet1_1", "-o", log, "--trials", "2", "--threads", "1"}).exit_code, 0);
  const ProgramResult tuned =
      with_shape({"graph-tune", "squeezenet1_1", "--log", log, "-o", plan, "--rounds", "1", "--time", "1ms",
                  "--threads", "1", "--report", directory.File("tuned.html")});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(ReadFile(directory.File("tuned.html")), HasSubstr("\"tilesmith_report\":1"));
  ASSERT_EQ(with_shape({"bench", "squeezenet1_1", "--plan", plan, "--time", "1ms", "--network-time", "1ms",
                        "--threads", "1", "--onnxruntime", "none", "--save", bench})
                .exit_code,
            0);
  const ProgramResult result = with_shape({"report", log, plan, bench, "-o", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("times as fast as oneDNN"));
  EXPECT_THAT(ReadFile(page), HasSubstr("\"why\":"));
  const ProgramResult without = Tilesmith({"report", log, plan, bench, "-o", page});
  EXPECT_EQ(without.exit_code, 0);
  EXPECT_THAT(without.out, HasSubstr("give its sizes with --input-shape"));
  ExpectRefusal({"report", log, plan, bench, "-o", page, "--model", "resnet18"}, 2, "is another network");
  ExpectRefusal({"report", log, plan, bench, "-o", page, "--batch", "8"}, 2, "is another network");
  Document of_another = Document::parse(ReadFile(bench));
  of_another["plan_hash"] = "0123456789abcdef";
  WriteFile(directory.File("of_another.json"), of_another.dump());
  ExpectRefusal({"report", log, plan, directory.File("of_another.json"), "-o", page}, 2,
                "measured with another plan");
  const std::string foreign = directory.File("foreign.jsonl");
  ASSERT_EQ(Tilesmith({"tune", kSmallConv, "-o", foreign, "--trials", "1", "--no-baseline"}).exit_code, 0);
  const ProgramResult unlike = with_shape({"report", foreign, plan, "-o", page, "--no-explain"});
  EXPECT_THAT(unlike.err, HasSubstr("has no record of them"));
  EXPECT_THAT(unlike.out, HasSubstr("not in it: the tuning of 18 of the plan's 18 convolutions"));
  EXPECT_THAT(ReadFile(page), HasSubstr("has no record of them"));
  WriteFile(directory.File("other.json"), R"({"command": "", "version": [1, 7, 4]})");
  ExpectRefusal({"report", log, plan, directory.File("other.json"), "-o", page}, 2,
                "not what `tilesmith bench --json` prints");
  WriteFile(directory.File("foreign.json"), R"({"network_seconds": 1})");
  ExpectRefusal({"report", log, plan, bench, "--results", directory.File("foreign.json"), "-o", page}, 2,
                "foreign.json: not a JSON object as");
}

}  // namespace
}  // namespace tilesmith
