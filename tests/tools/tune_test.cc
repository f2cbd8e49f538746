// Tuning from the command line, end to end, on a convolution small enough for a test.
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/test_cpu.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

constexpr const char* kWorkload = "mb1ic16ih14oc16oh14kh3ph1+bias+relu";

// Distinct configs of the log's complete lines.
std::set<std::string> ConfigsIn(const std::string& log) {
  std::set<std::string> configs;
  std::istringstream lines(ReadFile(log));
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    const auto record = nlohmann::json::parse(line);
    EXPECT_EQ(record["workload"], kWorkload);
    configs.insert(record["template"].get<std::string>() + record["config"].dump());
  }
  return configs;
}

TEST(TuneTest, WritesALogAndATable) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  const ProgramResult result = Tilesmith({"tune", kWorkload, "-o", log, "--trials", "6", "--tuner", "random",
                                          "--dump-code", directory.File("code"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LE(ConfigsIn(log).size(), 6u);
  EXPECT_GE(ConfigsIn(log).size(), 1u);
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["tasks"].size(), 1u);
  EXPECT_EQ(json["tasks"][0]["workload"], kWorkload);
  EXPECT_GT(json["tasks"][0]["best_seconds"], 0);
  EXPECT_GT(json["tasks"][0]["onednn_seconds"], 0);
  EXPECT_EQ(json["log"], log);
}

TEST(TuneTest, ResumeMeasuresOnlyWhatIsMissing) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  const auto tune = [&](const char* trials, const char* how) {
    return Tilesmith({"tune", kWorkload, "-o", log, "--trials", trials, how, "--json"});
  };
  ASSERT_EQ(tune("6", "--resume").exit_code, 0);
  const std::string before = ReadFile(log);
  const std::set<std::string> configs = ConfigsIn(log);

  const ProgramResult again = tune("6", "--resume");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["tasks"][0]["trials"], 0);
  EXPECT_EQ(ConfigsIn(log), configs);
  EXPECT_TRUE(ReadFile(log).starts_with(before));

  ASSERT_EQ(tune("4", "--overwrite").exit_code, 0);
  EXPECT_FALSE(ReadFile(log).starts_with(before));
}

TEST(TuneTest, FusedWorkloadsAreTunedResumedAndBenched) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "no template fuses anything on this CPU";
  constexpr const char* kFused = "scale_shift+relu>mb1ic16ih14oc16oh14kh1+bias";
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  const auto tune = [&](const char* workload) {
    const ProgramResult result =
        Tilesmith({"tune", workload, "-o", log, "--trials", "4", "--resume", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out)["tasks"][0];
  };
  const auto first = tune(kFused);
  EXPECT_EQ(first["workload"], kFused);
  EXPECT_EQ(first["fused"], "input ops");
  EXPECT_GT(first["onednn_seconds"], 0);
  EXPECT_EQ(tune(kFused)["trials"], 0);
  EXPECT_EQ(tune("mb1ic16ih14oc16oh14kh1+bias")["fused"], "");

  const ProgramResult bench = Tilesmith({"bench", kFused, "--log", log, "--time", "50ms", "--json"});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  const auto json = nlohmann::json::parse(bench.out);
  EXPECT_EQ(json["rows"][0]["schedule"], "log");
  EXPECT_GT(json["rows"][0]["onednn_seconds"], 0);
  EXPECT_EQ(json["fused"][0]["workload"], kFused);
  EXPECT_GT(json["fused"][0]["separate_seconds"], 0);
}

TEST(TuneTest, FusedWorkloadsNobodyComputesAreRefused) {
  const TemporaryDirectory directory;
  ExpectRefusal({"tune", "ic16ih14oc16kh3ph1>ic16ih14oc16kh3ph1", "-o", directory.File("log.jsonl")}, 4,
                "no template computes mb1ic16");
  ExpectRefusal({"tune", "ic16ih14oc16kh3ph1>ic8ih14oc16kh3ph1", "-o", directory.File("log.jsonl")}, 2,
                "the second reads");
}

TEST(TuneTest, KilledTuningIsResumedWithAllItHadWritten) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  std::string before;
  {
    BackgroundProgram tuning({TILESMITH_BINARY, "tune", kWorkload, "-o", log, "--trials", "100000"});
    for (int i = 0; i < 60000 && Lines(ReadFile(log)) < 5; ++i) usleep(2000);
    tuning.Signal(SIGKILL);
    EXPECT_EQ(tuning.Wait().exit_code, 128 + SIGKILL);
    before = ReadFile(log);
  }
  ASSERT_GE(Lines(before), 5);
  WriteFile(log, before + R"({"torn line)");  // as a kill during the write would leave it

  const ProgramResult resumed =
      Tilesmith({"tune", kWorkload, "-o", log, "--trials", "1", "--resume", "--json"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, testing::HasSubstr("skipped"));
  EXPECT_TRUE(ReadFile(log).starts_with(before));
}

TEST(TuneTest, InterruptedTuningReportsWhatItHas) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  BackgroundProgram tuning({TILESMITH_BINARY, "tune", kWorkload, "-o", log, "--trials", "100000"});
  for (int i = 0; i < 60000 && Lines(ReadFile(log)) < 3; ++i) usleep(2000);
  tuning.Signal(SIGINT);
  const ProgramResult result = tuning.Wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr(kWorkload));
  EXPECT_THAT(result.err, testing::HasSubstr("--resume goes on"));
  EXPECT_GE(Lines(ReadFile(log)), 3);
}

TEST(TuneTest, TimeBudgetEndsIt) {
  const TemporaryDirectory directory;
  const ProgramResult result = Tilesmith({"tune", kWorkload, "-o", directory.File("log"), "--trials",
                                          "100000000", "--time-budget", "2s", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace tilesmith
