// graph-tune on a farm: the same as here, whatever becomes of its workers.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "tests/support/ops/onnx_model.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tests/tuner/support/farm/redis_server.h"
#include "tools/commands/graph_tune_farm.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string CommandLineOf(pid_t pid) { return ReadFile("/proc/" + std::to_string(pid) + "/cmdline"); }

// The child process in which a worker does its job; 0: none.
pid_t JobOf(pid_t worker) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = std::stoi(name);
    if (CommandLineOf(pid).find("graph-tune-job") == std::string::npos) continue;
    const std::string status = ReadFile("/proc/" + name + "/status");
    if (status.find("\nPPid:\t" + std::to_string(worker) + "\n") != std::string::npos) return pid;
  }
  return 0;
}

class FarmGraphTuneTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    redis_ = std::make_unique<RedisServer>("pa55word");
    OnnxModel model;
    model.Input("x", {1, 16, 14, 14});
    model.Floats("w", {16, 16, 1, 1}, std::vector<float>(256, 0.5F));
    model.Node("Conv", {"x", "w"}, {"c"});
    model.Node("Relu", {"c"}, {"r"});
    SetInts(model.Node("MaxPool", {"r"}, {"y"}), "kernel_shape", {2, 2});
    model.Output("y");
    WriteFile(File("one.onnx"), model.Bytes());
  }

  std::string File(const std::string& name) const { return directory_.File(name); }
  ProgramOptions WithPassword() const {
    return {{},
            {"REDISCLI_AUTH=pa55word", "XDG_DATA_HOME=" + directory_.path(), "TMPDIR=" + directory_.path()}};
  }
  std::unique_ptr<BackgroundProgram> Serve() const {
    return std::make_unique<BackgroundProgram>(
        std::vector<std::string>{TILESMITH_BINARY, "worker", "--farm", redis_->url(), "--class", "here"},
        WithPassword());
  }
  nlohmann::json Workers() const {
    return nlohmann::json::parse(
        Tilesmith({"worker", "--list", "--farm", redis_->url(), "--json"}, WithPassword()).out);
  }
  void AwaitWorkers(int count) const {
    for (int i = 0; i < 300 && Workers()["alive"] != count; ++i) usleep(50000);
    EXPECT_EQ(Workers()["alive"], count);
  }
  std::vector<std::string> Command(const std::string& plan, const std::string& costs,
                                   const std::vector<std::string>& more) const {
    std::vector<std::string> command = {
        "graph-tune", File("one.onnx"), "--default-schedules", "--costs", File(costs), "-o", File(plan)};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  void ExpectPlanRuns(const std::string& plan) const {
    const ProgramResult result = Tilesmith({"run", File("one.onnx"), "--plan", File(plan), "--check"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  static std::vector<std::string> Keys(const nlohmann::json& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<RedisServer> redis_;
};

TEST_F(FarmGraphTuneTest, IsTheSameAsHere) {
  const auto worker = Serve();
  const std::vector<std::string> quick = {"--rounds", "1", "--time", "1ms", "--json"};
  const ProgramResult local = Tilesmith(Command("local.jsonl", "local.costs", quick));
  ASSERT_EQ(local.exit_code, 0) << local.err;
  AwaitWorkers(1);
  std::vector<std::string> on_farm = quick;
  on_farm.insert(on_farm.end(), {"--farm", redis_->url(), "--check", "--save", File("saved.json"), "--report",
                                 File("page.html")});
  const ProgramResult farm = Tilesmith(Command("farm.jsonl", "farm.costs", on_farm), WithPassword());
  ASSERT_EQ(farm.exit_code, 0) << farm.err;
  EXPECT_THAT(farm.out + farm.err, Not(HasSubstr("pa55word")));
  const auto told = nlohmann::json::parse(farm.out), here = nlohmann::json::parse(local.out);
  EXPECT_THAT(Keys(told), testing::IsSupersetOf(Keys(here)));
  EXPECT_EQ(told["plan"], File("farm.jsonl"));
  EXPECT_EQ(told["network"], here["network"]);
  EXPECT_EQ(told["graph_hash"], here["graph_hash"]);
  EXPECT_THAT(told["command"].get<std::string>(), HasSubstr("--farm"));
  EXPECT_EQ(ReadFile(File("saved.json")), farm.out);
  EXPECT_THAT(ReadFile(File("page.html")), HasSubstr("<html"));
  const Plan plan = ReadPlan(File("farm.jsonl")), own = ReadPlan(File("local.jsonl"));
  EXPECT_EQ(plan.network, own.network);
  EXPECT_EQ(plan.graph_hash, own.graph_hash);
  EXPECT_EQ(plan.threads, own.threads);
  EXPECT_EQ(plan.nodes.size(), own.nodes.size());
  ExpectPlanRuns("farm.jsonl");

  // Costs are here now, and brought along the next time.
  const std::string costs = ReadFile(File("farm.costs"));
  EXPECT_THAT(costs, HasSubstr("\"kind\":\"op\""));
  const ProgramResult text = Tilesmith(
      Command("again.jsonl", "farm.costs", {"--rounds", "0", "--time", "1ms", "--farm", redis_->url()}),
      WithPassword());
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(File("again.jsonl")));
  EXPECT_THAT(ReadFile(File("farm.costs")), testing::StartsWith(costs));

  // What is wrong there is said here.
  ExpectRefusal(Command("x.jsonl", "x.costs", {"--forbid", "nonsense", "-q", "--farm", redis_->url()}), 2,
                "nonsense", WithPassword());
  EXPECT_FALSE(std::filesystem::exists(File("x.jsonl")));
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait().exit_code, 0);
}

TEST_F(FarmGraphTuneTest, EndsElsewhereWhenItsWorkerIsKilled) {
  std::vector<std::unique_ptr<BackgroundProgram>> workers;
  for (int i = 0; i < 2; ++i) workers.push_back(Serve());
  AwaitWorkers(2);
  std::vector<std::string> command = Command(
      "plan.jsonl", "costs", {"--rounds", "1", "--time", "100ms", "--no-baselines", "--farm", redis_->url()});
  command.insert(command.begin(), TILESMITH_BINARY);
  BackgroundProgram coordinator(command, WithPassword());
  pid_t job = 0;
  for (const double end = NowSeconds() + 60; NowSeconds() < end && job == 0; usleep(1000)) {
    for (const auto& worker : workers) {
      job = JobOf(worker->pid());
      if (job == 0) continue;
      worker->Signal(SIGKILL);
      break;
    }
  }
  ASSERT_NE(job, 0);
  const ProgramResult result = coordinator.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ExpectPlanRuns("plan.jsonl");
  EXPECT_THAT(CommandLineOf(job), Not(HasSubstr("graph-tune-job"))) << "it ends with its worker";
}

std::string Refusal(const std::string& text) {
  try {
    GraphTuneJobFromText(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "taken";
}

TEST(GraphTuneJob, WhatIsWrittenIsReadAndWhatNamesFilesIsRefused) {
  GraphTuneJob job;
  job.model = "one.onnx";
  job.options = {"--rounds=2", "--input-shape=x=1x2x3x4", "--forbid=winograd"};
  job.log = true;
  job.plan_shown = "a plan";
  EXPECT_EQ(ToText(GraphTuneJobFromText(ToText(job))), ToText(job));
  for (const char* option : {"batch", "precision", "solver", "max-error", "threads", "max-isa", "time-budget",
                             "time", "check", "json", "max-output-error", "no-fusion", "wait"})
    EXPECT_TRUE(IsJobOption("--" + std::string(option) + "=x")) << option;
  EXPECT_THAT(ArgumentsOf(job), testing::ElementsAre("one.onnx", "--output=plan.jsonl", "--costs=costs.jsonl",
                                                     "--log=log.jsonl", "--rounds=2",
                                                     "--input-shape=x=1x2x3x4", "--forbid=winograd"));
  for (const char* model : {"../one.onnx", "/one.onnx", "-x.onnx", ".onnx", "plan.jsonl", "", "one.onnx/"}) {
    GraphTuneJob hostile = job;
    hostile.model = model;
    EXPECT_THAT(Refusal(ToText(hostile)), HasSubstr("model")) << model;
  }
  for (const char* option :
       {"--output=x", "--save=/x", "--log=/x", "--costs=x", "--report=x", "--onnxruntime=x",
        "--farm=redis://x", "--class=x", "--calibrate=x", "--target=cuda", "-o", "x", "--rounds", "--", ""}) {
    GraphTuneJob hostile = job;
    hostile.options = {option};
    EXPECT_THAT(Refusal(ToText(hostile)), HasSubstr("does not take")) << option;
  }
  for (const char* text : {"", "[]", "{}", R"({"model":7})", R"({"model":"one.onnx","options":[7]})"})
    EXPECT_NE(Refusal(text), "taken") << text;
}

}  // namespace
}  // namespace tilesmith
