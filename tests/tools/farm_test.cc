// Farms from the command line: what is refused, and a tuning on a real worker.
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/ops/onnx_model.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tests/tuner/support/farm/redis_server.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One option for all that take a farm.
std::vector<std::vector<std::string>> FarmCommands(const std::string& url,
                                                   const TemporaryDirectory& directory) {
  return {
      {"worker", "--farm", url},
      {"worker", "--list", "--farm", url},
      {"tune", kSmallConv, "-o", directory.File("a.jsonl"), "--farm", url},
      {"measure-space", kSmallConv, "-o", directory.File("a.space"), "--farm", url},
      {"graph-tune", "squeezenet1_1", "--default-schedules", "-o", directory.File("a.plan"), "--farm", url}};
}

TEST(FarmCommandTest, AFarmOutOfReachIsAnErrorOfTheEnvironment) {
  const TemporaryDirectory directory;
  for (const auto& command : FarmCommands("redis://:pa55word@127.0.0.1:1/0", directory)) {
    const ProgramResult result = Tilesmith(command);
    EXPECT_EQ(result.exit_code, 7) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("pa55word")));
    EXPECT_THAT(result.err, testing::AnyOf(HasSubstr("redis://127.0.0.1:1/0"), HasSubstr("hiredis")));
  }
}

TEST(FarmCommandTest, WhatMakesNoSenseIsUsage) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("a.jsonl");
  ExpectRefusal({"worker"}, 2, "--farm URL is required");
  ExpectRefusal({"worker", "--farm", "http://x"}, 2, "begins neither");
  ExpectRefusal({"worker", "--farm", "unix:///x", "--class", "all"}, 2, "--class");
  ExpectRefusal({"worker", "--farm", "unix:///x", "--class", "a/b"}, 2, "a/b");
  ExpectRefusal({"tune", kSmallConv, "-o", log, "--class", "fast"}, 2, "--class is for --farm");
  ExpectRefusal({"measure-space", kSmallConv, "-o", log, "--farm", "unix:///x", "--class", "all"}, 2, "tune");
  ExpectRefusal({"tune", kSmallConv, "-o", log, "--farm", "rediss://x"}, 2, "tunnel");
  const auto graph_tune = [&](const std::vector<std::string>& more, const std::string& mentions) {
    std::vector<std::string> command = {"graph-tune", "squeezenet1_1", "--default-schedules", "-o", log};
    command.insert(command.end(), more.begin(), more.end());
    ExpectRefusal(command, 2, mentions);
  };
  graph_tune({"--class", "fast"}, "--class is for --farm");
  graph_tune({"--farm", "unix:///x", "--class", "all"}, "tune");
  graph_tune({"--farm", "unix:///x", "--onnxruntime", "x.so"}, "--onnxruntime is not for --farm");
}

TEST(FarmCommandTest, AFarmsLogIsALogLikeAllOthers) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  const TemporaryDirectory directory;
  RedisServer redis("pa55word");
  const ProgramOptions with_password = {{}, {"REDISCLI_AUTH=pa55word", "XDG_DATA_HOME=" + directory.path()}};
  const std::string log = directory.File("farm.jsonl");
  EXPECT_EQ(Tilesmith({"tune", kSmallConv, "-o", log, "--farm", redis.url()}, with_password).exit_code, 7)
      << "nobody serves";
  BackgroundProgram worker({TILESMITH_BINARY, "worker", "--farm", redis.url(), "--class", "here"},
                           with_password);
  std::string listed;
  for (int i = 0; i < 600 && listed.find("\"alive\": 1") == std::string::npos; ++i) {
    if (i > 0) usleep(50000);
    listed = Tilesmith({"worker", "--list", "--farm", redis.url(), "--json"}, with_password).out;
  }
  const auto workers = nlohmann::json::parse(listed)["workers"];
  ASSERT_EQ(workers.size(), 1u) << listed;
  EXPECT_EQ(workers[0]["class"], "here");
  EXPECT_GE(workers[0]["cores"], 1);

  ProgramResult result = Tilesmith(
      {"tune", kSmallConv, "-o", log, "--trials", "5", "--tuner", "random", "--farm", redis.url(), "--json"},
      with_password);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["class"], "here");
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("pa55word")));
  result = Tilesmith({"worker", "--list", "--farm", "redis://:pa55word@127.0.0.1:1/0", "--json"});
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("pa55word")));
  const LogContents contents = ReadLog(log);
  EXPECT_TRUE(contents.problems.empty());
  ASSERT_FALSE(contents.records.empty());
  for (const Record& record : contents.records) EXPECT_EQ(record.target.model, DetectCpu().model);

  ExpectRefusal(
      {"tune", kSmallConv, "-o", directory.File("b.jsonl"), "--farm", redis.url(), "--class", "there"}, 7,
      "no workers of class there (known: here)", with_password);
  ExpectRefusal(
      {"tune", kSmallConv, "-o", directory.File("b.jsonl"), "--farm", redis.url(), "--threads", "9999"}, 2,
      "the cores of class here", with_password);
  ExpectRefusal({"tune", kSmallConv, "-o", directory.File("b.jsonl"), "--farm", redis.url()}, 7, "NOAUTH",
                {{}, {"XDG_DATA_HOME=" + directory.path()}});

  // What is known costs nothing more; a log for each class says which it is of.
  result = Tilesmith(
      {"tune", kSmallConv, "-o", log, "--trials", "5", "--resume", "--no-db", "--farm", redis.url()},
      with_password);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  result = Tilesmith(
      {"tune", kSmallConv, "-o", log, "--trials", "2", "--no-db", "--farm", redis.url(), "--class", "all"},
      with_password);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(ReadLog(directory.File("farm.here.jsonl")).records.empty());
  EXPECT_EQ(
      Tilesmith({"log", "merge", log, directory.File("farm.here.jsonl"), "-o", directory.File("m.jsonl")})
          .exit_code,
      0);
  EXPECT_EQ(Tilesmith({"log", "verify", log, "--tolerance", "1000%", "--farm", redis.url()}, with_password)
                .exit_code,
            0);

  // A network's log is one to plan from.
  OnnxModel model;
  model.Input("x", {1, 16, 14, 14});
  model.Floats("w", {16, 16, 1, 1}, std::vector<float>(256, 0.5F));
  model.Node("Conv", {"x", "w"}, {"y"});
  model.Output("y");
  const std::string network = directory.File("one.onnx"), of_network = directory.File("one.jsonl");
  WriteFile(network, model.Bytes());
  result = Tilesmith({"tune", network, "-o", of_network, "--trials", "3", "--no-db", "--farm", redis.url()},
                     with_password);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = Tilesmith({"graph-tune", network, "--log", of_network, "-o", directory.File("plan.jsonl"),
                      "--time", "1ms", "--rounds", "0", "--no-baselines"});
  EXPECT_EQ(result.exit_code, 0) << result.err;

  worker.Signal(SIGTERM);
  const ProgramResult served = worker.Wait();
  EXPECT_EQ(served.exit_code, 0) << served.err;
  EXPECT_THAT(served.err, HasSubstr("of class here serves"));
  EXPECT_THAT(served.err, Not(HasSubstr("pa55word")));
}

}  // namespace
}  // namespace tilesmith
