// Files that are damaged, stale or made up: every command says what is wrong with which, and goes on where it
// can.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "layouts/base/text_file.h"
#include "templates/base/conv_template.h"
#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tuner/records/database.h"
#include "tuner/records/log.h"
#include "tuner/simulation/measured_space.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

// A record of this machine; its config builds here.
Record GoodRecord() {
  Record record;
  record.target = DetectCpu();
  record.workload = ParseWorkload(kSmallConv);
  const ConvTemplate& portable = FindConvTemplate("portable");
  record.template_name = portable.Name();
  record.config = portable.Default(record.workload, DetectCpu());
  record.layouts = portable.Layouts(record.workload, record.config);
  record.conditions = {1, true, false};
  record.seconds = 1e-9;
  record.sample_seconds = {1e-9, 1e-9};
  record.task_trials = 1000;
  return record;
}

Record StaleRecord() {
  Record record = GoodRecord();
  record.config = {};
  record.config.Set("old_knob", 1);
  return record;
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string SampleSpace() {
  MeasuredSpace measured;
  measured.target = DetectCpu();
  measured.workload = ParseWorkload(kSmallConv);
  measured.template_name = "portable";
  const ConfigSpace portable = FindConvTemplate("portable").Space(measured.workload, DetectCpu());
  for (const Knob& knob : portable.knobs()) measured.knobs.push_back({knob.name, knob.values, ""});
  const ConfigSpace space(measured.knobs, nullptr);
  for (uint64_t index = 0; index < space.size(); index += 3)
    measured.seconds[index] = 1e-4 * static_cast<double>(1 + index % 7);
  const TemporaryDirectory directory;
  WriteMeasuredSpace(measured, directory.File("sample.space"));
  return ReadTextFile(directory.File("sample.space"));
}

TEST(DamagedFiles, SimulateNamesTheLineOfASpace) {
  const TemporaryDirectory directory;
  const std::string good = SampleSpace(), header = good.substr(0, good.find('\n') + 1);
  const auto simulate = [&](const std::string& text, std::vector<std::string> more = {}) {
    WriteFile(directory.File("a.space"), text);
    std::vector<std::string> arguments = {"simulate", directory.File("a.space"), "--seeds", "2", "--trials",
                                          "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Tilesmith(arguments);
  };
  EXPECT_EQ(simulate(good).exit_code, 0);
  EXPECT_NE(simulate(good, {"--curve"}).out.find("No curve: its first point is after 10 trials"),
            std::string::npos);
  for (const std::string& text : {header, header + "18446744073709551615 3.0\n",
                                  good.substr(0, header.size() / 2), header + "0 inf\n"}) {
    const ProgramResult result = simulate(text);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("a.space:"));
    EXPECT_EQ(CountOf(result.err, "\n"), 1) << result.err;
  }
  // What the threads that replay read.
  WriteFile(directory.File("b.space"), header + "x\n");
  const ProgramResult history = simulate(good, {"--history", directory.File("b.space"), "--tuner", "xgb"});
  EXPECT_EQ(history.exit_code, 2) << history.err;
  EXPECT_THAT(history.err, HasSubstr("b.space:2: "));
}

TEST(DamagedFiles, AStaleDatabaseDoesNotKeepTasksFromBeingTuned) {
  const TemporaryDirectory directory;
  const std::string database = directory.File("db.jsonl");
  {
    LogWriter writer(database);
    writer.Append(StaleRecord());
    // Another template's than those that are tuned, and one that did not work: known, yet no result.
    Record failed = GoodRecord();
    failed.status = TrialStatus::kRunCrash;
    failed.seconds = 0;
    writer.Append(failed);
  }
  const ProgramResult result = Tilesmith({"tune", kSmallConv, "-o", directory.File("a.jsonl"), "--trials",
                                          "2", "--db", database, "--threads", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto task = nlohmann::json::parse(result.out)["tasks"][0];
  EXPECT_EQ(task["known"], "");
  EXPECT_GT(task["trials"], 0);
  EXPECT_GT(task["best_seconds"], 1e-9);
  EXPECT_EQ(CountOf(result.err, "warning: database " + database + ": 1 records do not count"), 1)
      << result.err;
}

TEST(DamagedFiles, StaleRecordsOfALogDoNotCount) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  LogWriter(log).Append(StaleRecord());
  const std::string warning = log +
                              ": 1 records do not count, today's templates do not build them (template "
                              "portable: knob ";
  const ProgramResult bench =
      Tilesmith({"bench", kSmallConv, "--log", log, "--threads", "1", "--time", "1ms"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_EQ(CountOf(bench.err, warning), 1) << bench.err;
  const ProgramResult tune = Tilesmith({"tune", kSmallConv, "-o", log, "--resume", "--trials", "2",
                                        "--threads", "1", "--history", log, "--json"});
  ASSERT_EQ(tune.exit_code, 0) << tune.err;
  EXPECT_EQ(CountOf(tune.err, warning), 1) << tune.err;
  EXPECT_GT(nlohmann::json::parse(tune.out)["tasks"][0]["best_seconds"], 1e-9);
}

TEST(DamagedFiles, LogVerifySkipsARecordWithoutKnobs) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("log.jsonl");
  Record record = GoodRecord();
  record.config = {};
  LogWriter(log).Append(record);
  const ProgramResult result = Tilesmith({"log", "verify", log});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no record could be verified"));
}

TEST(DamagedFiles, AKernelTooWideForATemplateIsShownWithAnother) {
  const ProgramResult result = Tilesmith({"log", "show", "mb1ic256ih28oc256oh28kh200+bias+relu"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("portable"));
}

TEST(DamagedFiles, EndlessOnesAreRefused) {
  if (!std::filesystem::exists("/dev/zero")) GTEST_SKIP() << "no /dev/zero to stand for an endless file";
  const ProgramResult result = Tilesmith({"cost-model", "--model", "/dev/zero"});
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_THAT(result.err, HasSubstr("/dev/zero: it is no file"));
}

}  // namespace
}  // namespace tilesmith
