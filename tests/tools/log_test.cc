// `tilesmith log`, end to end on a log of a convolution small enough for a test.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/support/test_cpu.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr const char* kAutotvm =
    R"({"input": ["llvm -mcpu=core-avx2", "conv2d_NCHWc.x86", [["TENSOR", [1, 16, 14, 14], "float32"], )"
    R"(["TENSOR", [16, 16, 3, 3], "float32"], [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], {}], )"
    R"("config": {"index": 4, "code_hash": null, "entity": [["tile_ic", "sp", [-1, 8]], )"
    R"(["tile_oc", "sp", [-1, 8]], ["tile_ow", "sp", [-1, 7]], ["unroll_kw", "ot", true]]}, )"
    R"("result": [[1e-05], 0, 0.5, 1676344759.0], "version": 0.2, "tvm_version": "0.10.0"})";

class LogCommandTest : public testing::Test {
 protected:
  // Tuned once for all tests.
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory();
    const ProgramResult result =
        Tilesmith({"tune", kSmallConv, "-o", Log(), "--trials", "12", "--seed", "3"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }
  static std::string Log() { return directory_->File("log.jsonl"); }
  static std::string File(const std::string& name) { return directory_->File(name); }
  static std::string File(const std::string& name, const std::string& contents) {
    WriteFile(File(name), contents);
    return File(name);
  }

  // `log` before and --json after the arguments; expects the exit code.
  static json Run(std::vector<std::string> arguments, int exit_code = 0) {
    arguments.insert(arguments.begin(), "log");
    arguments.emplace_back("--json");
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return json::parse(result.out, nullptr, false);
  }

  // One line on stderr that begins with the command's whole name.
  static void ExpectLogRefusal(std::vector<std::string> arguments, int exit_code,
                               const std::string& mentions) {
    arguments.insert(arguments.begin(), "log");
    const ProgramResult result = Tilesmith(arguments);
    SCOPED_TRACE(result.err);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(Lines(result.err), 1);
    EXPECT_THAT(result.err, testing::StartsWith("tilesmith log " + arguments[1] + ": "));
    EXPECT_THAT(result.err, HasSubstr(mentions));
  }

  // The records of a log as JSON.
  static std::vector<json> Records(const std::string& path) {
    std::vector<json> records;
    std::istringstream lines(ReadFile(path));
    for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
    return records;
  }
  static std::string WithRecords(const std::string& name, const std::vector<json>& records) {
    std::string text;
    for (const json& record : records) text += record.dump() + "\n";
    return File(name, text);
  }

 private:
  static inline TemporaryDirectory* directory_ = nullptr;
};

TEST_F(LogCommandTest, IsAGroupWithHelp) {
  const ProgramResult none = Tilesmith({"log"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("usage: tilesmith log COMMAND"));
  const ProgramResult help = Tilesmith({"log", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* name : {"best", "stats", "show", "verify", "distill", "merge", "import", "export"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + name));
    const ProgramResult one = Tilesmith({"log", name, "--help"});
    EXPECT_EQ(one.exit_code, 0);
    EXPECT_THAT(one.out, HasSubstr(std::string("tilesmith log ") + name));
  }
  const ProgramResult unknown = Tilesmith({"log", "burn"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("tilesmith log: unknown command burn (known: best, "));
}

TEST_F(LogCommandTest, BestListsTheFastest) {
  const json best = Run({"best", Log()});
  ASSERT_EQ(best["records"].size(), 1u);
  EXPECT_EQ(best["records"][0]["workload"], kSmallConv);
  EXPECT_GT(best["records"][0]["gflops"], 0);
  EXPECT_EQ(best["targets"].size(), 1u);
  EXPECT_EQ(best["targets"][0]["this_machine"], true);
  const json all = Run({"best", Log(), "--all-layouts", "--workload", "ic16ih14oc16kh3ph1+bias+relu"});
  EXPECT_GE(all["records"].size(), best["records"].size());
  EXPECT_EQ(all["records"][0], best["records"][0]);
  for (size_t i = 1; i < all["records"].size(); ++i)
    EXPECT_GE(all["records"][i]["seconds"], all["records"][i - 1]["seconds"]);
  ExpectLogRefusal({"best", Log(), "--workload", "ic8ih8oc8kh1"}, 2, "no record of mb1ic8ih8oc8oh8kh1");
  ExpectLogRefusal({"best"}, 2, "LOG is required");
  ExpectLogRefusal({"best", File("missing.jsonl")}, 7, "missing.jsonl");
  ExpectLogRefusal({"best", File("garbage.jsonl", "garbage\n")}, 2, "garbage.jsonl:1: ");
}

TEST_F(LogCommandTest, StatsCountTrials) {
  const json stats = Run({"stats", Log()});
  ASSERT_EQ(stats["tasks"].size(), 1u);
  EXPECT_GE(stats["tasks"][0]["trials"], 1);
  EXPECT_LE(stats["tasks"][0]["trials"], 12);
  EXPECT_LE(stats["tasks"][0]["until_5_percent"], stats["tasks"][0]["until_2_percent"]);
  EXPECT_EQ(stats["records"], Records(Log()).size());
  EXPECT_EQ(stats["tuners"], json::array({"xgb"}));
}

TEST_F(LogCommandTest, DistillKeepsTheBest) {
  const std::string distilled = File("distilled.jsonl");
  const json report = Run({"distill", Log(), "-o", distilled});
  EXPECT_EQ(report["kept"], Records(distilled).size());
  EXPECT_LE(report["kept"], report["records"]);
  EXPECT_EQ(Run({"best", distilled, "--all-layouts"})["records"],
            Run({"best", Log(), "--all-layouts"})["records"]);
  ExpectLogRefusal({"distill", Log()}, 2, "-o OUT is required");
  ExpectLogRefusal({"distill", Log(), "-o", Log()}, 2, "is both an input and the output");
  ExpectLogRefusal({"distill", Log(), "-o", File("no/such/folder")}, 7, "cannot write");
}

TEST_F(LogCommandTest, MergeLosesNothing) {
  std::vector<json> foreign = Records(Log());
  for (json& record : foreign) {
    record["target"]["cpu"] = "Another CPU";
    record["time"] = "2001-01-01T00:00:00Z";
    record["new_field"] = 1;  // of a later version: lines stay as they are
  }
  const std::string other = WithRecords("other.jsonl", foreign);
  WriteFile(other, ReadFile(other) + "{\"torn");
  const std::string merged = File("merged.jsonl");
  const ProgramResult result = Tilesmith({"log", "merge", Log(), other, Log(), "-o", merged, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("other.jsonl:" + std::to_string(foreign.size() + 1) + ": skipped: not JSON"));
  const json report = json::parse(result.out);
  EXPECT_EQ(report["logs"][2]["duplicates"], report["logs"][0]["records"]);
  EXPECT_EQ(report["logs"][1]["skipped"], 1);
  ASSERT_EQ(report["targets"].size(), 2u);
  std::vector<json> expected = foreign;
  for (const json& record : Records(Log())) expected.push_back(record);
  EXPECT_THAT(Records(merged), testing::UnorderedElementsAreArray(expected));
  EXPECT_EQ(Records(merged)[0]["target"]["cpu"], "Another CPU") << "by time";
  EXPECT_EQ(Run({"best", merged})["records"].size(), 2u) << "machines are kept apart";
  EXPECT_EQ(Tilesmith({"log", "merge", Log(), "-o", merged}).err, merged + " existed and was replaced\n");
  ExpectLogRefusal({"merge", Log(), merged, "-o", merged}, 2, "is both an input and the output");
  ExpectLogRefusal({"merge", File("bad.jsonl", "bad\n"), "-o", merged}, 2,
                   "no line of this file is a tuning record");
}

TEST_F(LogCommandTest, VerifyMeasuresAgain) {
  const std::string again = File("again.jsonl");
  const json report = Run({"verify", Log(), "--top", "2", "--tolerance", "900%", "-o", again});
  ASSERT_EQ(report["records"].size(), 2u);
  EXPECT_EQ(report["records"][0]["answer"], "ok");
  EXPECT_GT(report["records"][0]["ratio"], 0);
  EXPECT_EQ(report["verified"], 2);
  EXPECT_EQ(Records(again).size(), 2u);
  ExpectLogRefusal({"verify", Log(), "--tolerance", "much"}, 2,
                   "--tolerance must be a percentage such as 10%, got much");
}

TEST_F(LogCommandTest, VerifyTellsWhenTimesOrMachinesDiffer) {
  std::vector<json> records = Records(Log());
  std::erase_if(records, [](const json& record) { return record["status"] != "ok"; });
  json lucky = records.back();
  lucky["seconds"] = lucky["seconds"].get<double>() / 1000;
  const std::string fast = WithRecords("fast.jsonl", {lucky});
  EXPECT_EQ(Run({"verify", fast})["slower"], 1);
  EXPECT_EQ(Tilesmith({"log", "verify", fast, "--strict"}).exit_code, 6);

  lucky["target"]["cpu"] = "Another CPU";
  const std::string foreign = WithRecords("foreign.jsonl", {lucky});
  const json skipped = Run({"verify", foreign}, 4);
  EXPECT_THAT(skipped["records"][0]["note"], HasSubstr("measured on Another CPU"));
  EXPECT_EQ(Run({"verify", foreign, "--retarget"})["verified"], 1);
}

TEST_F(LogCommandTest, ShowExplainsARecord) {
  const ProgramResult shown = Tilesmith({"log", "show", Log()});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* part :
       {"parallel for ", "bytes touched by", "a register tile", "registers with sums", "L1 ("})
    EXPECT_THAT(shown.out, HasSubstr(part));
  const json line = Run({"show", Log(), "--line", "2"});
  EXPECT_EQ(line["template"], Records(Log())[1]["template"]);
  EXPECT_GT(line["loops"].size(), 3u);
  EXPECT_EQ(line["bytes"].size(), 3u);
  ExpectLogRefusal({"show", Log(), "--line", "1000"}, 2, "no such line");
  ExpectLogRefusal({"show", "nonsense"}, 7, "nonsense");
  ExpectLogRefusal({"show", Log(), "--config", "rows=1"}, 2,
                   "--config, --max-isa and --target are for a WORKLOAD");
  ExpectLogRefusal({"show", kSmallConv, "--line", "1"}, 2, "are for a LOG");
}

TEST_F(LogCommandTest, ShowExplainsAnyConfig) {
  const json shown = Run({"show", kSmallConv, "--template", "portable", "--config", "rows=1,ow_tile=2"});
  EXPECT_EQ(shown["config"]["ow_tile"], 2);
  ExpectLogRefusal({"show", kSmallConv, "--template", "sorcery"}, 2, "unknown template \"sorcery\" (known: ");
  ExpectLogRefusal({"show", kSmallConv, "--template", "depthwise"}, 2, "does not compute");
  ExpectLogRefusal({"show", kSmallConv, "--config", "rows=77"}, 2, "knob \"rows\" is 77 (allowed: ");
  ExpectLogRefusal({"show", kSmallConv, "--config", "speed=11"}, 2, "unknown knob \"speed\"");
  ExpectLogRefusal({"show", kSmallConv, "--config", "rows"}, 2, "--config must be KNOB=NUMBER");
  ExpectLogRefusal({"show", kSmallConv, "--asm", "--json"}, 2, "exclude each other");
}

TEST_F(LogCommandTest, ShowPrintsCode) {
  if (TestCpu().isa == Isa::kPortable) GTEST_SKIP() << "no code is generated on this CPU";
  const ProgramResult bytes = Tilesmith({"log", "show", kSmallConv, "--template", "direct", "--asm"},
                                        {.environment = {"PATH=/nowhere"}});
  EXPECT_EQ(bytes.exit_code, 0) << bytes.err;
  EXPECT_THAT(bytes.out, HasSubstr("\n       0: "));
  EXPECT_THAT(bytes.out, HasSubstr("objdump, of binutils, is not in PATH"));
  if (RunProgram({"objdump", "--version"}).exit_code != 0) GTEST_SKIP() << "no objdump";
  const ProgramResult code = Tilesmith({"log", "show", kSmallConv, "--template", "direct", "--asm"});
  EXPECT_THAT(code.out, HasSubstr("vfmadd231ps"));
  EXPECT_THAT(code.out, testing::Not(HasSubstr("file format")));
}

TEST_F(LogCommandTest, ImportedRecordsCanBeMeasuredHereAndExported) {
  if (DetectCpu().isa == Isa::kPortable) GTEST_SKIP() << "no generated templates on this CPU";
  const std::string theirs = File("autotvm.log", std::string(kAutotvm) + "\n# a comment\nnonsense\n");
  const std::string imported = File("imported.jsonl");
  const json report = Run({"import", theirs, "-o", imported});
  EXPECT_EQ(report["records"], 1);
  EXPECT_EQ(report["skipped"], 1);
  EXPECT_EQ(Run({"verify", imported}, 4)["records"][0]["answer"], "-");
  const ProgramResult skipped = Tilesmith({"log", "verify", imported});
  EXPECT_THAT(skipped.out, HasSubstr("measured on llvm -mcpu=core-avx2"));
  EXPECT_THAT(skipped.err, HasSubstr("--retarget takes others'"));
  const std::string here = File("here.jsonl");
  EXPECT_EQ(Run({"verify", imported, "--retarget", "-o", here})["verified"], 1);
  EXPECT_EQ(Run({"best", here})["targets"][0]["this_machine"], true);
  const std::string exported = File("exported.log");
  EXPECT_EQ(Run({"export", imported, "-o", exported})["exported"], 1);
  json original = json::parse(kAutotvm);
  original["result"][2] = Records(exported)[0]["result"][2];  // what the measuring took is not kept
  EXPECT_EQ(Records(exported)[0], original);
  EXPECT_EQ(Run({"export", here, "-o", exported})["exported"], 1);
  ExpectLogRefusal({"import", File("none.log", "nonsense\n"), "-o", imported}, 2, "none.log:1: ");
  ExpectLogRefusal({"import", File("missing.log"), "-o", imported}, 7, "cannot read");
  ExpectLogRefusal({"best", theirs}, 2, "a log of AutoTVM's, which `tilesmith log import` reads");
}

TEST_F(LogCommandTest, AnEmptyLogIsSaidToBeEmpty) {
  const std::string empty = File("empty.jsonl", "");
  for (const char* command : {"best", "stats"}) {
    const ProgramResult result = Tilesmith({"log", command, empty});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, testing::AllOf(HasSubstr("no records\n"), testing::Not(HasSubstr("workload"))));
  }
  EXPECT_THAT(Tilesmith({"log", "verify", empty}).err, HasSubstr("empty.jsonl holds no record to verify"));
}

TEST_F(LogCommandTest, LoopsAndReasonsStayInTheWidth) {
  const ProgramOptions narrow = {.environment = {"COLUMNS=80"}};
  const ProgramResult shown =
      Tilesmith({"log", "show", "ic64ih56oc64oh56kh3ph1", "--template", "portable"}, narrow);
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const ProgramResult exported = Tilesmith({"log", "export", Log(), "-o", File("narrow.log")}, narrow);
  if (exported.out.find("left out") != std::string::npos) {  // records of templates that AutoTVM has not
    EXPECT_THAT(exported.out, HasSubstr("because"));
  }
  std::istringstream lines(shown.out + exported.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(LogCommandTest, TimesStayInNarrowTables) {
  const auto narrow = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "log");
    return Tilesmith(arguments, {.environment = {"COLUMNS=80"}}).out;
  };
  EXPECT_THAT(narrow({"best", Log()}), ContainsRegex("^workload +ms +.*template"));
  EXPECT_THAT(narrow({"stats", Log()}), ContainsRegex("^workload +trials +.*best ms"));
  EXPECT_THAT(narrow({"verify", Log()}), ContainsRegex("^workload +.*new ms +new/old +answer"));
}

TEST_F(LogCommandTest, HelpIsAskedForInBothOrders) {
  const ProgramResult help = Tilesmith({"log", "help", "best"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out, Tilesmith({"log", "best", "--help"}).out);
}

}  // namespace
}  // namespace tilesmith
