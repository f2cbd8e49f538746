// Tuning from the command line, end to end, on a convolution small enough for a test.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/temporary_files.h"
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
  EXPECT_FALSE(json.contains("network_seconds")) << "of networks only";
  const auto record = nlohmann::json::parse(ReadFile(log).substr(0, ReadFile(log).find('\n')));
  EXPECT_EQ(record["purpose"], "search");
}

TEST(TuneTest, NetworksAreTunedTogetherAndTotalled) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  const ProgramResult result = Tilesmith({"tune", "squeezenet1_1", "--input-shape", "input=1x3x32x32", "-o",
                                          log, "--trials", "3", "--no-fusion", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  double total = 0;
  int64_t trials = 0;
  for (const auto& task : json["tasks"]) {
    EXPECT_GT(task["trials"], 0) << task["workload"];
    trials += task["trials"].get<int64_t>();
    total += task["best_seconds"].get<double>() * task["count"].get<double>();
  }
  EXPECT_EQ(trials, 3 * static_cast<int64_t>(json["tasks"].size()));
  EXPECT_DOUBLE_EQ(json["network_seconds"].get<double>(), total);
  EXPECT_GT(json["network_ratio"], 0);
}

TEST(TuneTest, TheDatabaseMakesKnownTasksCostNothing) {
  const TemporaryDirectory directory;
  const auto tune = [&](const char* log, const char* trials, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"tune",     kWorkload, "-o",    directory.File(log),
                                          "--trials", trials,    "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result =
        Tilesmith(arguments, {.environment = {"XDG_DATA_HOME=" + directory.File("data")}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  EXPECT_EQ(tune("off.jsonl", "4", {"--no-db"}).contains("database"), false);
  const auto first = tune("a.jsonl", "8");
  EXPECT_EQ(first["tasks"][0]["trials"], 8);
  EXPECT_EQ(first["tasks"][0]["known"], "");
  EXPECT_THAT(first["database"].get<std::string>(), testing::StartsWith(directory.File("data/tilesmith/")));

  const auto again = tune("b.jsonl", "8");
  EXPECT_EQ(again["tasks"][0]["trials"], 0);
  EXPECT_EQ(again["tasks"][0]["known"], "database");
  EXPECT_EQ(again["tasks"][0]["best_seconds"], first["tasks"][0]["best_seconds"]);
  EXPECT_FALSE(ConfigsIn(directory.File("b.jsonl")).empty()) << "the graph tuner finds it in the log";
  EXPECT_GT(tune("c.jsonl", "20")["tasks"][0]["trials"], 0) << "more than it was given then";
  EXPECT_EQ(tune("d.jsonl", "8", {"--db", directory.File("own.jsonl")})["tasks"][0]["trials"], 8);
  EXPECT_EQ(tune("e.jsonl", "8", {"--db", directory.File("own.jsonl")})["tasks"][0]["trials"], 0);
}

TEST(TuneTest, ADatabaseThatIsTornOrUnwritableIsOnlyAWarning) {
  const TemporaryDirectory directory;
  const std::string broken = directory.File("broken.jsonl");
  WriteFile(broken, "{\"tilesmith\":3,\"workl\n");
  const ProgramResult result =
      Tilesmith({"tune", kWorkload, "-o", directory.File("a.jsonl"), "--trials", "2", "--db", broken});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, testing::HasSubstr("warning: database " + broken + ": 1 lines skipped"));
  const ProgramResult nowhere = Tilesmith({"tune", kWorkload, "-o", directory.File("b.jsonl"), "--trials",
                                           "2", "--db", "/proc/nowhere/db.jsonl"});
  EXPECT_EQ(nowhere.exit_code, 0);
  EXPECT_THAT(nowhere.err, testing::HasSubstr("warning: database: cannot make directory /proc/nowhere: "));
}

// What is no database stays as it is.
TEST(TuneTest, AnotherFileGivenAsADatabaseIsRefused) {
  const TemporaryDirectory directory;
  const std::string other = directory.File("other.jsonl");
  WriteFile(other, "no log at all\n");
  const std::vector<std::string> tune = {"tune",     kWorkload, "-o",  directory.File("a.jsonl"),
                                         "--trials", "2",       "--db"};
  for (const auto& [path, why] : {std::pair(other, "something else than a tuning log"),
                                  {directory.path(), "is a directory, not a database"}}) {
    std::vector<std::string> arguments = tune;
    arguments.push_back(path);
    const ProgramResult refused = Tilesmith(arguments);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, testing::HasSubstr(why));
  }
  EXPECT_EQ(ReadFile(other), "no log at all\n");
}

TEST(TuneTest, TheFirstConfigsOfASpaceTellNothingOfTheTimeLeft) {
  const TemporaryDirectory directory;
  const ProgramResult result = Tilesmith({"measure-space", kSmallConv, "-o", directory.File("a.space"),
                                          "--template", "portable", "--keep", "rows=1,2 ow_tile=1,2", "-v"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, testing::ContainsRegex("^1/[0-9]+\n[^l]*\n19/[0-9]+\n20/[0-9]+  left "));
}

TEST(TuneTest, WhatIsAskedOfAConfigIsNamedWhereThereIsNone) {
  const TemporaryDirectory directory;
  const ProgramResult result = Tilesmith({"tune", kWorkload, "-o", directory.File("log.jsonl"), "--trials",
                                          "2", "--max-error", "1e-30", "--no-baseline"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, testing::ContainsRegex(
                              "worked with an error of at most 1e-30 in [0-9]+ trials, [0-9]+ more than"));
}

TEST(TuneTest, AFullDiskIsNamedAndTearsNothing) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  // 4 blocks of 1024 bytes; bash counts in them.
  const ProgramResult result = RunProgram({"bash", "-c",
                                           std::string("ulimit -f 4; exec " TILESMITH_BINARY " tune '") +
                                               kWorkload + "' -o " + log + " --no-db --trials 1000"});
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr(log + ": cannot write a record"));
  EXPECT_GE(ConfigsIn(log).size(), 1u);
  EXPECT_EQ(ReadFile(log).back(), '\n');
  const ProgramResult full = Tilesmith({"tune", kWorkload, "-o", "/dev/full", "--trials", "2", "--resume"});
  EXPECT_EQ(full.exit_code, 7) << full.err;
  EXPECT_THAT(full.err, testing::HasSubstr("No space left"));
}

TEST(TuneTest, ALogRemovedUnderneathIsStartedAgainWithAWarning) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  BackgroundProgram tuning({TILESMITH_BINARY, "tune", kWorkload, "-o", log, "--trials", "100000", "--no-db"});
  for (int i = 0; i < 60000 && Lines(ReadFile(log)) < 3; ++i) usleep(2000);
  std::filesystem::remove(log);
  for (int i = 0; i < 60000 && Lines(ReadFile(log)) < 3; ++i) usleep(2000);
  tuning.Signal(SIGINT);
  const ProgramResult result = tuning.Wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr(log + " was removed or replaced"));
  EXPECT_GE(ConfigsIn(log).size(), 3u);
}

TEST(TuneTest, TwoTunersShareALog) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  const std::vector<std::string> command = {
      TILESMITH_BINARY, "tune",    kWorkload,   "-o", log,     "--trials", "40",
      "--resume",       "--no-db", "--threads", "1",  "--seed"};
  std::vector<std::string> one = command, two = command;
  one.push_back("1");
  two.push_back("2");
  BackgroundProgram first(one), second(two);
  EXPECT_EQ(first.Wait().exit_code, 0);
  EXPECT_EQ(second.Wait().exit_code, 0);
  std::set<int> seeds;
  std::istringstream lines(ReadFile(log));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    seeds.insert(nlohmann::json::parse(line)["seed"].get<int>());
  }
  EXPECT_GE(count, 80);
  EXPECT_EQ(seeds, (std::set<int>{1, 2}));
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
    BackgroundProgram tuning(
        {TILESMITH_BINARY, "tune", kWorkload, "-o", log, "--trials", "100000", "--no-db"});
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
  BackgroundProgram tuning({TILESMITH_BINARY, "tune", kWorkload, "-o", log, "--trials", "100000", "--no-db"});
  for (int i = 0; i < 60000 && Lines(ReadFile(log)) < 3; ++i) usleep(2000);
  tuning.Signal(SIGINT);
  const ProgramResult result = tuning.Wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr(kWorkload));
  EXPECT_THAT(result.err, testing::HasSubstr("--resume goes on"));
  EXPECT_GE(Lines(ReadFile(log)), 3);
}

TEST(TuneTest, TimeBudgetEndsItWithEverythingCounted) {
  constexpr double kSlack = 60;  // of a busy machine
  const TemporaryDirectory directory;
  const ProgramResult result = Tilesmith({"tune", "squeezenet1_1", "--input-shape", "input=1x3x64x64", "-o",
                                          directory.File("log"), "--time-budget", "2s", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_LT(json["elapsed_seconds"], 2 + kSlack);
  EXPECT_GE(json["disturbed_share"], 0);
  for (const auto& task : json["tasks"]) EXPECT_GT(task["best_seconds"], 0) << "each has a trial";
}

// oneDNN's times are taken once; without any of them the table has none.
TEST(TuneTest, BaselinesAreKeptBesideTheLogOrLeftOut) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl"), cache = directory.File("log.onednn.jsonl");
  const auto tune = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"tune", kWorkload, "-o", log, "--trials", "2", "--resume", "--json", "-v"});
    const ProgramResult result = Tilesmith(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  };
  const ProgramResult without = tune({"--no-baseline"});
  EXPECT_FALSE(std::filesystem::exists(cache));
  EXPECT_THAT(without.err, testing::Not(testing::HasSubstr("oneDNN")));
  EXPECT_TRUE(nlohmann::json::parse(without.out)["tasks"][0]["onednn_seconds"].is_null());

  EXPECT_THAT(tune({}).err, testing::HasSubstr("oneDNN 1/1, about "));
  nlohmann::json kept = nlohmann::json::parse(ReadFile(cache));
  kept["disturbed_share"] = 0;  // whatever it was
  WriteFile(cache, kept.dump() + "\n");
  const ProgramResult again = tune({});
  EXPECT_THAT(again.err, testing::Not(testing::HasSubstr("oneDNN 1/1")));
  EXPECT_EQ(nlohmann::json::parse(again.out)["tasks"][0]["onednn_seconds"], kept["seconds"]);
  WriteFile(cache, "no JSON\n{\"key\": 7}\n" + kept.dump() + "\n");
  EXPECT_THAT(tune({}).err, testing::Not(testing::HasSubstr("oneDNN 1/1")));
  EXPECT_THAT(tune({"--threads", "1", "--conditions", "cold"}).err, testing::HasSubstr("oneDNN 1/1"));
}

TEST(TuneTest, ADisturbedBaselineIsTakenAgain) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl"), cache = directory.File("log.onednn.jsonl");
  const auto tune = [&] {
    const ProgramResult result =
        Tilesmith({"tune", kWorkload, "-o", log, "--trials", "2", "--resume", "--json", "-v"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  };
  tune();
  ASSERT_TRUE(std::filesystem::exists(cache)) << "kept, whatever the machine did";
  nlohmann::json kept = nlohmann::json::parse(ReadFile(cache));
  kept["disturbed_share"] = 1;
  kept["seconds"] = 1000;
  WriteFile(cache, kept.dump() + "\n");
  const ProgramResult again = tune();
  EXPECT_THAT(again.err, testing::HasSubstr("oneDNN 1/1"));
  EXPECT_LT(nlohmann::json::parse(again.out)["tasks"][0]["onednn_seconds"], 1);
  EXPECT_EQ(Lines(ReadFile(cache)), 2) << "the last one counts";
}

TEST(TuneTest, ALogThatIsADirectoryIsSaidToBeOne) {
  const TemporaryDirectory directory;
  ExpectRefusal({"tune", kWorkload, "-o", directory.path()}, 2, "is a directory");
}

}  // namespace
}  // namespace tilesmith
