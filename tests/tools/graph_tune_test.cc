// The prediction loop and the baselines from the command line, with a log whose times are made up.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "layouts/base/target.h"
#include "layouts/measure/clock.h"
#include "ops/conv/conv.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tests/tools/made_up_log.h"
#include "tools/cli/model.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

using Json = nlohmann::json;

constexpr const char* kModel = "squeezenet1_1";
constexpr const char* kInput = "input=1x3x48x48";

class GraphTuneTest : public testing::Test {
 protected:
  void SetUp() override { WriteMadeUpLog(kModel, kInput, File("log.jsonl")); }

  std::string File(const std::string& name) const { return directory_.File(name); }

  ProgramResult Run(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"graph-tune",      kModel, "--input-shape",    kInput,      "--log",
                                          File("log.jsonl"), "-o",   File("plan.jsonl"), "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::ranges::find(more, "--time") == more.end()) arguments.insert(arguments.end(), {"--time", "1ms"});
    return Tilesmith(arguments);
  }

  Json RunJson(std::vector<std::string> more) const {
    more.emplace_back("--json");
    const ProgramResult result = Run(std::move(more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }

 private:
  const TemporaryDirectory directory_;
};

TEST(GraphTuneOfNoConvolution, EndsAtOnce) {
  const TemporaryDirectory directory;
  OnnxModel model;
  model.Input("x", {1, 4, 6, 6});
  model.Output("y");
  model.Node("Abs", {"x"}, {"a"});
  model.Node("Softmax", {"a"}, {"y"});
  WriteFile(directory.File("net.onnx"), model.Bytes());
  const double began = NowSeconds();
  const ProgramResult result =
      Tilesmith({"graph-tune", directory.File("net.onnx"), "-o", directory.File("plan.jsonl"),
                 "--default-schedules", "--time-budget", "10m", "--time", "20ms"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(NowSeconds() - began, 120);
}

TEST_F(GraphTuneTest, LearnsFromRunsAndRunsTheBaselines) {
  const Json json = RunJson({"--rounds", "2", "--nodes"});
  ASSERT_GE(json["rounds"].size(), 1u);
  ASSERT_LE(json["rounds"].size(), 8u);  // two solutions and the baselines
  EXPECT_EQ(json["rounds"][0]["name"], "solution 1");
  int chosen = 0;
  for (const Json& round : json["rounds"]) chosen += round["chosen"].get<bool>();
  EXPECT_EQ(chosen, 1);

  ASSERT_EQ(json["baselines"].size(), 7u);
  int executed = 0;
  for (const Json& row : json["baselines"]) {
    SCOPED_TRACE(row.dump());
    if (row["gain"].is_null()) continue;
    ++executed;
    EXPECT_GT(row["measured_seconds"], 0);
    EXPECT_GT(row["predicted_seconds"], 0);
    EXPECT_LE(row["gain_low"], row["gain"]);
    EXPECT_LE(row["gain"], row["gain_high"]);
  }
  EXPECT_GE(executed, 1);
  EXPECT_EQ(json["baselines"][3]["note"], "no candidate in NCHW32c");
  EXPECT_EQ(json["baselines"][6]["baseline"], "the plan");
  EXPECT_GT(json["baselines"][6]["measured_seconds"], 0) << "in turns with the others";

  // The run, divided up.
  double seconds = 0;
  for (const Json& part : json["differences"]) seconds += part["measured_seconds"].get<double>();
  EXPECT_NEAR(seconds, json["measured_seconds"], 1e-9);
  EXPECT_EQ(json["nodes"].size(), json["heavy_nodes"]);
  EXPECT_LE(json["heavy_nodes_predicted"], json["heavy_nodes"]);

  // The plan file has the corrected predictions, and its records their own times.
  std::istringstream plan(ReadFile(File("plan.jsonl")));
  std::string line;
  std::getline(plan, line);
  EXPECT_EQ(Json::parse(line)["predicted_seconds"], json["predicted_seconds"]);
  int convs = 0;
  while (std::getline(plan, line)) {
    const Json node = Json::parse(line);
    if (!node.contains("workload")) continue;
    ++convs;
    EXPECT_TRUE(node["seconds"] == 1e-5 || node["seconds"] == 2e-5) << line;
    EXPECT_NE(node["predicted_seconds"], node["seconds"]) << line;
  }
  EXPECT_EQ(convs, 26);
}

TEST_F(GraphTuneTest, WithoutRoundsAndBaselinesTheLogIsBelieved) {
  const Json json = RunJson({"--rounds", "0", "--no-baselines"});
  EXPECT_FALSE(json.contains("rounds"));
  EXPECT_FALSE(json.contains("baselines"));
  EXPECT_FALSE(json.contains("nodes"));
  EXPECT_EQ(json["prediction"], "from the log");
  EXPECT_GE(json["conv_seconds"], 26e-5 - 1e-9);
  EXPECT_LE(json["conv_seconds"], 52e-5 + 1e-9);
  EXPECT_GT(json["measured_seconds"], 0);
}

TEST_F(GraphTuneTest, OutputsOfThePlanAndItsBaselinesAreCompared) {
  const Json json = RunJson({"--rounds", "0", "--check"});
  ASSERT_EQ(json["outputs"].size(), json["baselines"].size());
  EXPECT_EQ(json["outputs"][0]["plan"], "the plan");
  int compared = 0;
  for (const Json& plan : json["outputs"]) {
    if (plan["difference"].is_null()) continue;
    ++compared;
    EXPECT_LE(plan["difference"], 1e-4) << plan;
  }
  EXPECT_GE(compared, 3);
}

// The last value of every knob that has several and is not about layouts.
Record OtherConfig(const Record& record) {
  const ConfigSpace space = FindConvTemplate(record.template_name).Space(record.workload, DetectCpu());
  Record other = record;
  for (const Knob& knob : space.knobs()) {
    if (knob.name.ends_with("_block")) continue;
    Config changed = other.config;
    changed.Set(knob.name, knob.values.back());
    if (space.WhyInvalid(changed).empty()) other.config = changed;
  }
  return other;
}

TEST_F(GraphTuneTest, OtherConfigsAreTriedInTheNetworkIfAskedFor) {
  {
    const std::vector<Record> records = ReadLog(File("log.jsonl")).records;
    LogWriter log(File("log.jsonl"));
    for (const Record& record : records) log.Append(OtherConfig(record));
  }
  const Json json = RunJson({"--rounds", "1", "--no-baselines", "--variants"});
  for (const Json& round : json["rounds"])
    EXPECT_TRUE(round["name"] == "solution 1" || round["name"] == "configs in context") << round;
  EXPECT_GT(json["measured_seconds"], 0);
  const ProgramResult run = Tilesmith(
      {"run", kModel, "--input-shape", kInput, "--plan", File("plan.jsonl"), "--threads", "1", "--check"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(GraphTuneTest, TablesForPeople) {
  const ProgramResult result = Run({"--rounds", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text :
       {"plans run", "where the time goes", "threads and barriers", "best record of each conv",
        "NHWC everywhere", "plan's gain", "measured within 15%"}) {
    EXPECT_THAT(result.out, testing::HasSubstr(text));
  }
  EXPECT_THAT(result.err, testing::AnyOf(testing::HasSubstr("costs of ops and transforms"),
                                         testing::ContainsRegex("running .*plans by turns, about .* left")));
}

// A budget of seconds, against plans that would take many minutes.
TEST_F(GraphTuneTest, TheTimeBudgetHoldsForAllOfIt) {
  constexpr double kSlack = 60;  // of a busy machine
  const double began = NowSeconds();
  const Json json = RunJson({"--rounds", "3", "--time", "10m", "--time-budget", "4s"});
  EXPECT_LT(NowSeconds() - began, 4 + kSlack);
  EXPECT_EQ(json["plan"], File("plan.jsonl"));
  const ProgramResult run = Tilesmith(
      {"run", kModel, "--input-shape", kInput, "--plan", File("plan.jsonl"), "--threads", "1", "--check"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(GraphTuneTest, WithoutTimeThereIsTheFirstSolution) {
  const Json json = RunJson({"--time-budget", "1ms"});
  EXPECT_EQ(json["finished"], false);
  EXPECT_EQ(json["prediction"], "from the log");
  EXPECT_TRUE(json["measured_seconds"].is_null());
  EXPECT_GT(Lines(ReadFile(File("plan.jsonl"))), 10);
}

TEST_F(GraphTuneTest, SaysWhichRoundItIsInAndWhetherTheMachineWasDisturbed) {
  const ProgramResult result =
      Tilesmith({"graph-tune", kModel, "--input-shape", kInput, "--log", File("log.jsonl"), "-o",
                 File("plan.jsonl"), "--threads", "1", "--rounds", "2", "--time", "1ms", "--json", "-v"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("round 1 of 2: running "));
  const Json json = Json::parse(result.out);
  EXPECT_GE(json["disturbed_share"], 0);
  EXPECT_LE(json["disturbed_share"], 1);
  for (const Json& round : json["rounds"]) EXPECT_LE(round["disturbed_share"], 1) << round;
}

TEST_F(GraphTuneTest, RecordsThatALimitOfErrorsLeavesOutAreSaidToBe) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  WriteFile(log, "");
  ExpectRefusal(
      {"graph-tune", "squeezenet1_1", "--log", log, "--max-error", "1e-9", "-o", directory.File("p")}, 4,
      "with an error of at most 1e-09 (--max-error), of");
}

}  // namespace
}  // namespace tilesmith
