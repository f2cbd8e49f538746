// Whole networks from the command line: plan, run, compare, report.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph_tuner/check/compare.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/thread_team.h"
#include "layouts/random_tensor.h"
#include "tests/graph_tuner/support/region_plans.h"
#include "tests/support/temporary_files.h"
#include "tests/support/test_cpu.h"
#include "tests/tools/cli.h"
#include "tests/tools/typed_model.h"
#include "tools/cli/model.h"
#include "tools/cli/npz.h"

namespace tilesmith {
namespace {

using Json = nlohmann::json;

std::vector<std::string> Small(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--input-shape", "input=1x3x64x64", "--json"});
  return arguments;
}

TEST(NetworkTest, TasksAsJson) {
  const ProgramResult result = Tilesmith({"tasks", "resnet18", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["convs"], 21);  // the dense layer included
  EXPECT_EQ(json["distinct"], json["tasks"].size());
  EXPECT_NEAR(json["total_gflop"], 3.63, 0.02);
  int64_t count = 0;
  for (const Json& task : json["tasks"]) count += task["count"].get<int64_t>();
  EXPECT_EQ(count, 21);
}

TEST(NetworkTest, TasksNameFusedAlternatives) {
  const auto tasks = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"tasks", "densenet121", "--json", "--max-isa", "avx2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  };
  const Json with = tasks({}), without = tasks({"--no-fusion"});
  int64_t fused = 0;
  for (const Json& task : with["tasks"]) {
    const bool names_two = task["workload"].get<std::string>().find('>') != std::string::npos;
    EXPECT_EQ(task["fused"] != "", names_two) << task;
    fused += names_two;
  }
  EXPECT_EQ(with["fused"], fused);
  EXPECT_EQ(without["fused"], 0);
  EXPECT_EQ(with["tasks"].size(), without["tasks"].size() + static_cast<size_t>(fused));
  EXPECT_EQ(with["total_gflop"], without["total_gflop"]);
  EXPECT_GE(fused, TestCpu().isa == Isa::kPortable ? 0 : 61);
}

TEST(NetworkTest, APlanOfOtherThreadsRunsOnThoseThereAreUnlessThatIsRefused) {
  const TemporaryDirectory directory;
  const std::string file = directory.File("plan.jsonl");
  const Graph graph = LoadModel({.model = "squeezenet1_1", .input_shapes = {"input=1x3x64x64"}});
  Plan plan = HeuristicPlan(graph, DetectCpu(), 2);
  for (NodePlan& node : plan.nodes) plan.predicted_seconds += node.predicted_seconds = 1e-6;
  WritePlan(file, plan);
  const std::vector<std::string> run = Small({"run", "squeezenet1_1", "--plan", file, "--runs", "1"});
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const std::string said = file + ": made for 2 threads, and 1 runs it";
  ExpectRefusal(with({"--threads", "1", "--strict"}), 2, "made for 2 threads, asked to run with 1");
  ExpectRefusal(with({"--force", "--strict"}), 2, "--force and --strict exclude each other");
  for (const bool force : {false, true}) {
    std::vector<std::string> arguments = with({"--threads", "1", "--check"});
    if (force) arguments.emplace_back("--force");
    const ProgramResult result = Tilesmith(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err.find(said) == std::string::npos, force) << result.err;
    EXPECT_EQ(result.err.find(said), result.err.rfind(said)) << "it is said once";
    EXPECT_EQ(Json::parse(result.out)["threads"], 1);
    EXPECT_TRUE(Json::parse(result.out)["predicted_seconds"].is_null()) << "it is of two";
  }
  const ProgramResult bench =
      Tilesmith(Small({"bench", "squeezenet1_1", "--plan", file, "--threads", "1", "--time", "1ms",
                       "--network-time", "1ms", "--onnxruntime", "none"}));
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_THAT(bench.err, testing::HasSubstr(said));
  ExpectRefusal(Small({"bench", "squeezenet1_1", "--plan", file, "--threads", "1", "--strict"}), 2,
                "made for 2 threads");
}

// As in a container with one: a server goes on.
TEST(NetworkTest, APlanOfTwoThreadsRunsOnOneCore) {
  const TemporaryDirectory directory;
  const std::string file = directory.File("plan.jsonl"), core = std::to_string(ProcessCores().front());
  WritePlan(file, HeuristicPlan(LoadModel({.model = "squeezenet1_1", .input_shapes = {"input=1x3x64x64"}}),
                                DetectCpu(), 2));
  std::vector<std::string> command = {"taskset", "-c", core, TILESMITH_BINARY};
  for (const std::string& argument :
       Small({"run", "squeezenet1_1", "--plan", file, "--runs", "1", "--check"}))
    command.push_back(argument);
  const ProgramResult result = RunProgram(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("made for 2 threads, and 1 runs it"));
  command.insert(command.end(), {"--threads", "2"});
  EXPECT_EQ(RunProgram(command).exit_code, 0) << "the plan's own, as whoever starts it says";
  command.emplace_back("--strict");
  EXPECT_EQ(RunProgram(command).exit_code, 2);
}

TEST(NetworkTest, InputsAndOutputsOfOtherTypes) {
  const TemporaryDirectory directory;
  const std::string model = WriteTypedModel(directory);
  Tensor x({1, 2, 2, 3}, Layout::Nchw(DataType::kU8));
  for (int i = 0; i < 12; ++i) x.data<uint8_t>()[i] = static_cast<uint8_t>(191 + i);
  WriteNpy(directory.File("x.npy"), x);
  const std::string input = "x=" + directory.File("x.npy"), plan = directory.File("plan.jsonl");
  const ProgramResult planned = Tilesmith(
      {"graph-tune", model, "--default-schedules", "--rounds", "0", "--time", "1ms", "-o", plan, "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  for (const bool with_plan : {false, true}) {
    std::vector<std::string> arguments = {
        "run", model, "--runs", "1", "--check", "--input", input, "--output", directory.File("out.npz")};
    if (with_plan) arguments.insert(arguments.end(), {"--plan", plan});
    const ProgramResult run = Tilesmith(arguments);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::vector<NamedTensor> outputs = ReadNpz(directory.File("out.npz"));
    ASSERT_EQ(outputs.size(), 2u);
    ASSERT_EQ(outputs[0].second.type(), DataType::kI32);
    ASSERT_EQ(outputs[1].second.type(), DataType::kBool);
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(outputs[0].second.data<int32_t>()[i], 1191 + i);
      EXPECT_EQ(outputs[1].second.data<bool>()[i], i == 9);
    }
  }
  WriteNpy(directory.File("x.npy"), Tensor({1, 2, 2, 3}));
  const ProgramResult refused = Tilesmith({"run", model, "--input", input});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("1x2x2x3 of u8, the file holds 1x2x2x3 of f32"), std::string::npos)
      << refused.err;
}

// Through every command that takes a model.
TEST(NetworkTest, EndsOfFloat16) {
  const TemporaryDirectory directory;
  const std::string model = WriteFloat16Model(directory), log = directory.File("log.jsonl"),
                    plan = directory.File("plan.jsonl"), quantized = directory.File("int8.onnx");
  const auto succeed = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
    return result.out;
  };
  const Tensor x = RandomInput({1, 4, 8, 8}, DataType::kF16, 1);
  WriteNpz(directory.File("x.npz"), {{"x", x}});
  const auto run = [&](const std::string& network, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run",      network,
                                          "--runs",   "1",
                                          "--input",  directory.File("x.npz"),
                                          "--output", directory.File("out.npz")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    succeed(arguments);
    return ReadNpz(directory.File("out.npz")).at(0).second;
  };
  EXPECT_EQ(Json::parse(succeed({"tasks", model, "--json"}))["convs"], 2);
  succeed({"tune", model, "-o", log, "--trials", "4", "--threads", "1", "--no-db", "--no-baseline"});
  succeed({"graph-tune", model, "--log", log, "--default-schedules", "--rounds", "1", "--time", "1ms",
           "--threads", "1", "-o", plan});
  const Tensor y = run(model, {"--check", "--threads", "1"});
  ASSERT_EQ(y.type(), DataType::kF16);
  EXPECT_LE(CompareTensors(run(model, {"--check", "--plan", plan, "--threads", "1"}), y).relative, 2e-3);
  succeed({"explain", model, "a_node", "--log", log, "--threads", "1", "--default-schedules"});
  const Json bench = Json::parse(succeed({"bench", model, "--plan", plan, "--time", "1ms", "--network-time",
                                          "20ms", "--threads", "1", "--json"}));
  EXPECT_EQ(bench["network_onednn_guests"], "2 Cast");
  EXPECT_LE(bench["network_onednn_difference"].get<double>(), 1e-3);
  succeed({"quantize", model, "-o", quantized, "--samples", "2", "--json"});
  const Tensor rounded = run(quantized, {"--check", "--threads", "1"});
  ASSERT_EQ(rounded.type(), DataType::kF16);
  EXPECT_LE(CompareTensors(rounded, y).relative, 0.05);
}

TEST(NetworkTest, PlanRunsAndAgreesWithTheReference) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  const ProgramResult planned = Tilesmith(Small(
      {"graph-tune", "squeezenet1_1", "--default-schedules", "--rounds", "0", "--time", "1ms", "-o", plan}));
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Json summary = Json::parse(planned.out);
  EXPECT_EQ(summary["convs"], 26);
  EXPECT_EQ(summary["unmeasured"], 26);
  EXPECT_GT(summary["measured_seconds"], 0);
  EXPECT_EQ(summary["baselines"][0]["note"], "the same as the plan");

  const std::string trace = directory.File("trace.json"), csv = directory.File("steps.csv");
  const ProgramResult run = Tilesmith(Small({"run", "squeezenet1_1", "--plan", plan, "--check", "--runs", "3",
                                             "--profile", "--trace", trace, "--csv", csv}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = Json::parse(run.out);
  EXPECT_LE(json["difference"], 1e-4);
  EXPECT_EQ(json["allowed_difference"], 1e-4);
  EXPECT_EQ(json["checked_steps"], json["steps"].size());
  EXPECT_NE(json["worst_step"], "");
  EXPECT_LE(json["worst_step_difference"], json["worst_step_allowed"]);
  EXPECT_EQ(json["runs"], 3);
  EXPECT_GE(json["steps"].size(), 26u);
  EXPECT_EQ(Json::parse(ReadFile(trace))["traceEvents"].size(), json["steps"].size());
  EXPECT_EQ(static_cast<size_t>(Lines(ReadFile(csv))), json["steps"].size() + 1);
  ASSERT_EQ(json["totals"].size(), 4u);
  double steps = 0, parts = 0;
  for (const Json& step : json["steps"]) steps += step["seconds"].get<double>();
  for (size_t i = 0; i < 3; ++i) parts += json["totals"][i]["seconds"].get<double>();
  EXPECT_NEAR(json["totals"][0]["seconds"].get<double>(), steps, 1e-12);
  EXPECT_NEAR(json["totals"][3]["seconds"].get<double>(), parts, 1e-12);
  EXPECT_EQ(json["totals"][3]["seconds"], json["median_seconds"]);
}

// As a model and compiled, whose file needs the plan beside it for the check.
TEST(NetworkTest, PlansWithRegionsRunAndAgree) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("plan.jsonl"), trace = directory.File("trace.json"),
                    file = directory.File("resnet18.tsc");
  const Graph graph = LoadModel({.model = "resnet18", .input_shapes = {"input=1x3x64x64"}});
  Plan plan = FewRowsPlan(graph, DetectCpu(), 2);
  AddRegion(plan, {"layer1.0.conv1", "layer1.0.conv2"}, 2);
  AddRegion(plan, {"layer1.1.conv1", "layer1.1.conv2"}, 4);
  WritePlan(path, plan);
  const auto expect_regions = [](const ProgramResult& run) {
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const Json json = Json::parse(run.out);
    ASSERT_EQ(json["regions"].size(), 2u);
    EXPECT_EQ(json["regions"][1]["band_rows"], 4);
    EXPECT_EQ(json["regions"][1]["steps"], 2);
    EXPECT_EQ(
        std::ranges::count_if(json["steps"], [](const Json& step) { return step["region"].is_number(); }), 4);
    EXPECT_EQ(json["checked_steps"], json["steps"].size());
  };
  const ProgramResult planned = Tilesmith(Small({"run", "resnet18", "--plan", path, "--check", "--runs", "2",
                                                 "--profile", "--trace", trace, "--threads", "2"}));
  expect_regions(planned);
  EXPECT_GT(Json::parse(planned.out)["layer_by_layer_bytes"], 0);
  const Json events = Json::parse(ReadFile(trace))["traceEvents"];
  EXPECT_EQ(std::ranges::count_if(events, [](const Json& event) { return event["cat"] == "region"; }), 2);
  const ProgramResult compiled = Tilesmith({"compile", "resnet18", "--input-shape", "input=1x3x64x64",
                                            "--plan", path, "--threads", "2", "-o", file});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  expect_regions(Tilesmith(Small({"run", file, "--model", "resnet18", "--plan", path, "--check", "--runs",
                                  "2", "--profile", "--threads", "2"})));
}

TEST(NetworkTest, OutputsAreTheSameForTheSameInputFile) {
  const TemporaryDirectory directory;
  Tensor input({1, 3, 64, 64});
  for (int64_t i = 0; i < input.size(); ++i) input.floats()[i] = static_cast<float>(i % 17) / 8 - 1;
  WriteNpy(directory.File("in.npy"), input);
  WriteNpz(directory.File("in.npz"), {{"input", input}});
  const auto run = [&](const std::string& argument, const std::string& output) {
    const ProgramResult result = Tilesmith(Small(
        {"run", "squeezenet1_1", "--runs", "1", "--input", argument, "--output", directory.File(output)}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  };
  run("input=" + directory.File("in.npy"), "a.npz");
  run(directory.File("in.npz"), "b.npz");
  run(directory.File("in.npy"), "folder");
  const ProgramResult twice = Tilesmith(Small({"run", "squeezenet1_1", "--input", directory.File("in.npz"),
                                               "--input", "input=" + directory.File("in.npy")}));
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_NE(twice.err.find("input \"input\" is given twice"), std::string::npos) << twice.err;
  const std::vector<NamedTensor> outputs = ReadNpz(directory.File("a.npz"));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].second.shape(), (Shape{1, 1000}));
  EXPECT_EQ(ReadFile(directory.File("a.npz")), ReadFile(directory.File("b.npz")));
  const Tensor single = ReadNpy(directory.File("folder/" + outputs[0].first + ".npy"));
  EXPECT_EQ(single.floats()[7], outputs[0].second.floats()[7]);
}

TEST(NetworkTest, BenchTable) {
  const TemporaryDirectory directory;
  const std::string csv = directory.File("rows.csv");
  const ProgramResult result =
      Tilesmith(Small({"bench", "squeezenet1_1", "--time", "1ms", "--network-time", "1ms", "--csv", csv}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const std::string rows = ReadFile(csv);
  EXPECT_THAT(rows, testing::StartsWith("# title: "));
  for (const char* key : {"machine", "date", "commit", "command: tilesmith bench squeezenet1_1"})
    EXPECT_THAT(rows, testing::HasSubstr(std::string("\n# ") + key));
  EXPECT_EQ(static_cast<size_t>(Lines(rows.substr(rows.find("\nworkload,") + 1))), json["rows"].size() + 1);
  for (const Json& row : json["rows"]) {
    EXPECT_GT(row["ours_seconds"], 0);
    EXPECT_GT(row["onednn_seconds"], 0);
    EXPECT_LE(row["ratio_p10"], row["ratio"]);
    EXPECT_LE(row["ratio"], row["ratio_p90"]);
  }
  EXPECT_GT(json["network_seconds"], 0);
}

// oneDNN's Winograd pads 3 channels to a block, and what it is fed must be zero there.
TEST(NetworkTest, BenchOfScaledAndPaddedChannels) {
  const ProgramResult result =
      Tilesmith({"bench", "scale_shift>mb1ic3ih56oc32oh56kh3ph1+bias", "--time", "1ms", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(NetworkTest, PlansForNhwcCallersAgreeWithTheReferenceAndOneDnn) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  const ProgramResult planned =
      Tilesmith(Small({"graph-tune", "squeezenet1_1", "--default-schedules", "--input-layout", "NHWC",
                       "--output-layout", "NHWC", "--time", "1ms", "-o", plan}));
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(ReadFile(plan), testing::HasSubstr(R"("input_layout":"NHWC")"));
  const ProgramResult run =
      Tilesmith(Small({"run", "squeezenet1_1", "--plan", plan, "--runs", "1", "--check"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LT(Json::parse(run.out)["difference"], 1e-4);
  const ProgramResult bench =
      Tilesmith(Small({"bench", "squeezenet1_1", "--plan", plan, "--time", "1ms", "--network-time", "1ms"}));
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
}

TEST(NetworkTest, BenchFailsBelowTheLimit) {
  const ProgramResult result = Tilesmith(
      {"bench", "ic8ih8oc8kh1+bias", "--time", "1ms", "--against", "direct", "--fail-below", "1e9"});
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("is below"));
}

TEST(NetworkTest, SpaceNamesKnobsAndRefusals) {
  const ProgramResult result = Tilesmith({"space", "g32ic32ih16oc32kh3ph1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const auto portable = std::ranges::find(json["templates"], "portable",
                                          [](const Json& row) { return row["template"].get<std::string>(); });
  ASSERT_NE(portable, json["templates"].end());
  EXPECT_EQ((*portable)["supported"], true);
  EXPECT_GE(json["templates"].size(), 2u);
  EXPECT_FALSE(json["portable_knobs"].empty());
}

TEST(NetworkTest, EveryCommandExplainsItself) {
  for (const char* command : {"tasks", "space", "tune", "graph-tune", "explain", "bench", "run", "doctor"}) {
    const ProgramResult result = Tilesmith({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_THAT(result.out, testing::HasSubstr("Examples:\n  tilesmith " + std::string(command)));
    EXPECT_EQ(result.err, "");
  }
}

TEST(NetworkTest, DoctorAsJson) {
  const ProgramResult result = Tilesmith({"doctor", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_GE(json["checks"].size(), 10u);
  for (const Json& check : json["checks"]) EXPECT_THAT(check["verdict"], testing::AnyOf("ok", "warn"));
}

}  // namespace
}  // namespace tilesmith
