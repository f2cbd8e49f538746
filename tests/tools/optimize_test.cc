// `tilesmith optimize`, end to end, on a network small enough for a test.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "graph_tuner/plan/plan_file.h"
#include "graph_tuner/planner/network_types.h"
#include "layouts/measure/clock.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tools/api/tilesmith.h"
#include "tools/api/tilesmith_c.h"

namespace tilesmith {
namespace {

const std::vector<std::string> kSmallNetwork = {"squeezenet1_1", "--input-shape", "input=1x3x48x48",
                                                "--threads", "1"};
constexpr double kFinish = 15;  // seconds that loading and the last trial may take on a machine that is busy

std::vector<std::string> OnSmallNetwork(const std::string& command, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {command};
  arguments.insert(arguments.end(), kSmallNetwork.begin(), kSmallNetwork.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(OptimizeTest, WritesAPlanThatRunsWithinItsTimeAndGoesOn) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  const std::vector<std::string> arguments =
      OnSmallNetwork("optimize", {"--for", "4s", "-o", plan, "--json"});
  const double began = NowSeconds();
  const ProgramResult result = Tilesmith(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(NowSeconds() - began, 4 + kFinish);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_GE(json["plans_written"], 1);
  EXPECT_LT(json["first_plan_seconds"], kFinish);
  EXPECT_EQ(json["log"], plan + ".log.jsonl");
  EXPECT_TRUE(json["tasks"][0]["onednn_seconds"].is_null()) << "nobody asked for it";
  if (json["measured_seconds"].is_number()) {
    EXPECT_DOUBLE_EQ(json["predicted_seconds"], ReadPlan(plan).predicted_seconds)
        << "what is written is said";
  }
  EXPECT_EQ(Tilesmith(OnSmallNetwork("run", {"--plan", plan, "--runs", "1", "--check"})).exit_code, 0);

  ExpectRefusal(arguments, 2, "exists: give --resume");
  std::vector<std::string> again = arguments;
  again.insert(again.end(), {"--resume", "--baseline", "--save", directory.File("again.json")});
  const ProgramResult more = Tilesmith(again);
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(ReadFile(directory.File("again.json")), more.out);
}

// A network tuned on near cores knows what another one saw of far ones.
TEST(OptimizeTest, PricesOfCrossingAreSharedBetweenNetworks) {
  const TemporaryDirectory directory;
  const std::string data = directory.File("data");
  const auto optimize = [&](const std::string& plan) {
    const ProgramResult result =
        Tilesmith({"optimize", "squeezenet1_1", "--input-shape", "input=1x3x48x48", "--threads", "2", "--for",
                   "2s", "--no-shipped", "-o", directory.File(plan)},
                  {.environment = {"XDG_DATA_HOME=" + data}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? ReadFile(directory.File(plan + ".log.costs.jsonl")) : "";
  };
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one core";
  EXPECT_THAT(optimize("near.jsonl"), testing::HasSubstr("\"kind\":\"crossing\""));
  std::string shared;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/tilesmith"))
    if (entry.path().string().ends_with(".costs.jsonl")) shared = entry.path();
  ASSERT_NE(shared, "");
  std::string elsewhere;
  std::istringstream lines(ReadFile(shared));
  for (std::string line; std::getline(lines, line);) {
    auto cost = nlohmann::json::parse(line);
    EXPECT_EQ(cost["kind"], "crossing") << line;
    cost["distance"] = "1048576ns";
    elsewhere += cost.dump() + "\n";
  }
  WriteFile(shared, ReadFile(shared) + elsewhere);
  EXPECT_THAT(optimize("far.jsonl"), testing::HasSubstr("1048576ns"));
}

TEST(OptimizeTest, ASignalKeepsTheBestPlanSoFar) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryDirectory directory;
    const std::string plan = directory.File("plan.jsonl");
    std::vector<std::string> arguments = OnSmallNetwork(
        "optimize", {"--for", "10m", "-o", plan, "--no-db", "--log", directory.File("l.jsonl")});
    arguments.insert(arguments.begin(), TILESMITH_BINARY);
    BackgroundProgram optimizing(arguments, {.seconds = 240});
    for (int i = 0; i < 12000 && access(plan.c_str(), F_OK) != 0; ++i) usleep(10000);
    usleep(signal == SIGINT ? 0 : 2000000);
    optimizing.Signal(signal);
    const ProgramResult result = optimizing.Wait();
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr("interrupted; the best plan so far is in " + plan));
    EXPECT_EQ(Tilesmith(OnSmallNetwork("run", {"--plan", plan, "--runs", "1"})).exit_code, 0);
  }
}

TEST(OptimizeTest, Bf16IsTunedAndItsErrorSaid) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl"), log = directory.File("log.jsonl");
  const ProgramResult result = Tilesmith(OnSmallNetwork(
      "optimize", {"--precision", "bf16", "--for", "4s", "-o", plan, "--log", log, "--no-db", "--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  // Where f32 is faster the plan may have kept to it.
  EXPECT_GE(json["output_error"], 0);
  EXPECT_LT(json["output_error"], 0.1);
  EXPECT_EQ(Tilesmith(OnSmallNetwork("run", {"--plan", plan, "--runs", "1"})).exit_code, 0);
  EXPECT_THAT(ReadFile(log), HasTemplates(DetectCpu(), DataType::kBf16) ? testing::HasSubstr("bf16")
                                                                        : testing::HasSubstr("direct"));
  ExpectRefusal(OnSmallNetwork("optimize", {"--max-output-error", "0.1", "-o", plan}), 2,
                "--max-output-error is for --precision mixed, not f32");
  ExpectRefusal(OnSmallNetwork("optimize", {"--precision", "mixed", "--max-output-error", "0", "-o", plan}),
                2, "--max-output-error must be above 0");
}

TEST(OptimizeTest, MixesTypesWithinALimit) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  const std::vector<std::string> asked = {
      "--precision", "mixed", "--max-output-error", "0.05", "--for", "12s", "--no-db", "--json", "-o", plan};
  for (const bool again : {false, true}) {
    std::vector<std::string> arguments = asked;
    if (again) arguments.emplace_back("--resume");
    const ProgramResult result = Tilesmith(OnSmallNetwork("optimize", arguments));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_LE(json["output_error"], 0.05);
    std::set<std::string> types;
    for (const auto& type : json["types"]) types.insert(type["type"]);
    EXPECT_THAT(types, testing::IsSupersetOf({"int8", "mixed"})) << result.out;
    EXPECT_EQ(Tilesmith(OnSmallNetwork("run", {"--plan", plan, "--runs", "1"})).exit_code, 0);
    // No type leaves a plan of its own behind.
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
      EXPECT_EQ(entry.path().string().find(".partial"), std::string::npos) << entry.path();
  }
}

TEST(OptimizeTest, WhatThereIsNoTimeForIsLeftOut) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  for (const std::string precision : {"mixed", "int8", "bf16"}) {
    const ProgramResult result =
        Tilesmith(OnSmallNetwork("optimize", {"--precision", precision, "--for", "20ms", "--no-db", "--json",
                                              "--overwrite", "-o", plan}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr("there is no time to")) << precision;
    EXPECT_FALSE(nlohmann::json::parse(result.out).contains("output_error")) << precision;
    EXPECT_EQ(Tilesmith(OnSmallNetwork("run", {"--plan", plan, "--runs", "1"})).exit_code, 0) << precision;
    if (precision != "mixed") continue;
    EXPECT_THAT(result.err,
                testing::AllOf(testing::HasSubstr("there is no time to tune in other types than f32"),
                               testing::HasSubstr("there was no time to mix types"),
                               testing::HasSubstr("all is in f32")));
  }
}

TEST(OptimizeTest, SeveralSizesHaveAPlanEach) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  const ProgramResult result =
      Tilesmith(OnSmallNetwork("optimize", {"--input-shape", "input=1x3x64x64", "--for", "2s", "-o", plan}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadPlans(plan).size(), 2u);
  const std::vector<std::string> sizes = {"input=1x3x48x48", "input=1x3x64x64"};
  for (const std::string& size : sizes)
    EXPECT_THAT(result.out, testing::ContainsRegex("input shapes +" + size));
  // What it goes on with stays, unless it is another network's.
  const ProgramResult more = Tilesmith(
      OnSmallNetwork("optimize", {"--input-shape", "input=1x3x64x64", "--input-shape", "input=1x3x96x96",
                                  "--for", "2s", "-o", plan, "--resume", "--json"}));
  ASSERT_EQ(more.exit_code, 0) << more.err;
  std::istringstream objects(more.out);
  for (const std::string& size : {sizes[0], sizes[1], std::string("input=1x3x96x96")}) {
    nlohmann::json object;
    objects >> object;
    EXPECT_EQ(object["input_shapes"], size);
  }
  ExpectRefusal(OnSmallNetwork("optimize", {"--input-shape", "input=1x3x64x64", "-o", plan, "--resume",
                                            "--save", directory.File("both.json")}),
                2, "--save is for one size of the inputs");
  EXPECT_EQ(ReadPlans(plan).size(), 3u);
  // So do plans for other numbers of threads.
  const std::string threads = directory.File("threads.jsonl");
  for (const std::string count : {"2", "1"}) {
    const ProgramResult added = Tilesmith({"optimize", "squeezenet1_1", "--input-shape", sizes[0], "--for",
                                           "1s", "--threads", count, "-o", threads, "--resume"});
    ASSERT_EQ(added.exit_code, 0) << added.err;
  }
  const std::vector<Plan> both = ReadPlans(threads);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].threads + both[1].threads, 3);
  for (const int count : {1, 2}) EXPECT_EQ(PlanFor(both, both[0].graph_hash, count)->threads, count);
  EXPECT_EQ(PlanFor(both, both[0].graph_hash, 3), both.data());
  EXPECT_EQ(PlanFor(both, "another", 1), nullptr);
  ExpectRefusal({"optimize", "resnet18", "--for", "1s", "-o", plan, "--resume"}, 2,
                "is a plan for network \"squeezenet1_1\", not for \"resnet18\"");
  ExpectRefusal({"tune", "ic16ih13oc16oh13kh3ph1", "-o", plan, "--resume"}, 2,
                "something else than a tuning log");
  ExpectRefusal({"tune", "ic16ih13oc16oh13kh3ph1", "-o", directory.File("l.jsonl"), "--db", plan}, 2,
                "something else than a tuning log");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "--default-schedules", "-o", directory.File("p.jsonl"),
                 "--costs", plan},
                2, "something else than a file of costs");
  ExpectRefusal({"optimize", "squeezenet1_1", "-o", plan, "--log", directory.path() + "/./plan.jsonl"}, 2,
                "is named for two outputs");
  const std::string fresh = directory.File("new.jsonl");
  ExpectRefusal({"optimize", "squeezenet1_1", "-o", fresh, "--log", directory.path() + "/./new.jsonl"}, 2,
                "is named for two outputs");
  EXPECT_EQ(ReadPlans(plan).size(), 3u);
}

TEST(OptimizeTest, ALogIsEmptiedLast) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  const std::string workload = "ic16ih13oc16oh13kh3ph1";
  ASSERT_EQ(Tilesmith({"tune", workload, "-o", log, "--trials", "2", "--no-db"}).exit_code, 0);
  const std::string before = ReadFile(log);
  std::vector<std::string> nothing = {"tune", workload, "-o", log, "--overwrite"};
  for (const ConvTemplate* conv_template : ConvTemplates())
    nothing.insert(nothing.end(), {"--forbid", std::string(conv_template->Name())});
  ExpectRefusal(nothing, 4, "--forbid leaves no template that computes");
  ExpectRefusal({"tune", workload, "-o", log, "--overwrite", "--db", directory.path()}, 2, "is a directory");
  ExpectRefusal(OnSmallNetwork("optimize", {"-o", directory.File("plan.jsonl"), "--log", log, "--overwrite",
                                            "--max-weights", "1", "--for", "1s", "--no-db"}),
                4, "allowed are 1.0 (--max-weights)");
  EXPECT_EQ(ReadFile(log), before);
  EXPECT_FALSE(std::filesystem::exists(directory.File("plan.jsonl")));
}

TEST(OptimizeTest, RefusesWhatMakesNoSense) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  ExpectRefusal({"optimize", "squeezenet1_1"}, 2, "-o PLAN is required");
  ExpectRefusal({"optimize", kSmallConv, "-o", plan}, 2, "");
  ExpectRefusal({"optimize", "squeezenet1_1", "-o", plan, "--resume", "--overwrite"}, 2, "exclude");
  ExpectRefusal({"optimize", "squeezenet1_1", "-o", plan, "--for", "soon"}, 2, "--for");
}

TEST(OptimizeApiTest, TellsProgressAndKeepsThePlanWhenStopped) {
  const TemporaryDirectory directory;
  const std::string plan = directory.File("plan.jsonl");
  std::atomic<bool> stop = false;
  std::vector<std::string> stages;
  OptimizeSettings settings = {.seconds = 600,
                               .database = false,
                               .threads = 1,
                               .input_shapes = {"input=1x3x48x48"},
                               .program = TILESMITH_BINARY,
                               .on_progress =
                                   [&](const std::string& stage) {
                                     stages.push_back(stage);
                                     if (stage.find("running") != std::string::npos) stop = true;
                                   },
                               .stop = &stop};
  try {
    Optimize("squeezenet1_1", plan, settings);
    FAIL() << "it was stopped";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("interrupted; the best plan so far is in " + plan));
  }
  EXPECT_THAT(stages, testing::Contains(testing::HasSubstr(" trials, about ")));
  const LoadOptions load = {.plan = plan, .threads = 1, .input_shapes = settings.input_shapes};
  EXPECT_NO_THROW(Model::Load("squeezenet1_1", load));
  EXPECT_THROW(Optimize("squeezenet1_1", plan, {.seconds = -1}), std::runtime_error);

  const char* shape = settings.input_shapes[0].c_str();
  tilesmith_tune_settings of_c = {};
  of_c.seconds = 1;
  of_c.no_database = 1;
  of_c.threads = 1;
  of_c.input_shapes = &shape;
  of_c.input_shape_count = 1;
  of_c.program = TILESMITH_BINARY;
  EXPECT_EQ(tilesmith_optimize("squeezenet1_1", plan.c_str(), &of_c), 0) << tilesmith_last_error();
  EXPECT_EQ(tilesmith_optimize("squeezenet1_1", nullptr, &of_c), 2);
}

}  // namespace
}  // namespace tilesmith
