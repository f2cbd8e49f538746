// The pieces under the commands.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "layouts/base/error.h"
#include "layouts/base/visible.h"
#include "layouts/random_tensor.h"
#include "ops/dense/tasks.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_files.h"
#include "tools/cli/args.h"
#include "tools/cli/model.h"
#include "tools/cli/npz.h"
#include "tools/cli/progress.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/targets.h"
#include "tools/cli/tasks.h"

namespace tilesmith {
namespace {

TEST(ArgsTest, ValuesReachTheirVariables) {
  Args args;
  std::string model, log;
  std::vector<std::string> shapes;
  int64_t trials = 7, seed = 1;
  double budget = 0;
  bool json = false;
  args.Positional("MODEL", &model, "");
  args.Text("-o,--output", &log, "");
  args.Texts("--shape", &shapes, "");
  args.Positive("--trials", &trials, "");
  args.NonNegative("--seed", &seed, "");
  args.Duration("--budget", &budget, "");
  args.Flag("--json", &json, "");
  args.Parse({"--shape", "a=1", "resnet18", "-o", "x.jsonl", "--seed=0", "--shape", "b=2", "--budget",
              "1h2m3s", "--json"});
  EXPECT_EQ(model, "resnet18");
  EXPECT_EQ(log, "x.jsonl");
  EXPECT_EQ(shapes, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(trials, 7);
  EXPECT_EQ(seed, 0);
  EXPECT_EQ(budget, 3723);
  EXPECT_TRUE(json);
}

TEST(ArgsTest, RepeatedOptionsAreRefused) {
  Args args;
  int64_t trials = 0;
  args.Positive("--trials", &trials, "");
  EXPECT_EQ(Refusal(ErrorCode::kUsage,
                    [&] {
                      args.Parse({"--trials", "1", "--trials", "2"});
                    }),
            "--trials may be given only once");
}

TEST(ArgsTest, MisspeltOptionsAreGuessed) {
  const auto meant = [](const std::string& option) {
    Args args;
    double budget = 0;
    int64_t threads = 0;
    args.Duration("--time-budget", &budget, "");
    args.Positive("--threads", &threads, "");
    return Refusal(ErrorCode::kUsage, [&] { args.Parse({option, "3"}); });
  };
  EXPECT_EQ(meant("--treads"), "unexpected argument --treads (did you mean --threads?)");
  EXPECT_EQ(meant("--budget"), "unexpected argument --budget (did you mean --time-budget?)");
  EXPECT_EQ(meant("--num-threads=3"), "unexpected argument --num-threads=3 (did you mean --threads?)");
  EXPECT_EQ(meant("--verbosity"), "unexpected argument --verbosity");
}

TEST(ArgsTest, Durations) {
  EXPECT_DOUBLE_EQ(ParseDuration("--t", "90"), 90);
  EXPECT_DOUBLE_EQ(ParseDuration("--t", "90s"), 90);
  EXPECT_DOUBLE_EQ(ParseDuration("--t", "1.5m"), 90);
  EXPECT_DOUBLE_EQ(ParseDuration("--t", "500ms"), 0.5);
  for (const char* text : {"", "-1s", "0", "8x", "m", "1m30", "inf", "nan", "1e3s", "8 m", "0s"}) {
    EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ParseDuration("--t", text); }),
                testing::HasSubstr("--t must be a duration"))
        << text;
  }
}

Report SampleReport() {
  Report report;
  Table& table = report.AddTable({"rows", "", {{"name", "name"}, {"seconds", "ms"}, {"ok", "ok"}}});
  table.AddRow({TextCell("a,\"b\""), MillisecondsCell(0.00123456), {true, "yes"}});
  table.AddRow({TextCell("long name"), NoCell(), {false, "no"}});
  report.Fact("count", "how many", CountCell(2));
  report.Note("a note");
  return report;
}

TEST(ReportTest, TextIsAligned) {
  EXPECT_EQ(SampleReport().ToText(),
            "name          ms   ok\n"
            "a,\"b\"      1.235  yes\n"
            "long name      -   no\n"
            "\n"
            "how many  2\n"
            "a note\n");
}

TEST(ArgsTest, TextIsWrappedWithoutLinesThatLookLikeOptions) {
  EXPECT_EQ(Wrapped("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(Wrapped("one two --three four", 8, 2), "one\n  two --three\n  four");
  EXPECT_EQ(Wrapped("one two --three four", 12, 2), "one\n  two --three\n  four") << "it fits with its word";
  EXPECT_EQ(Wrapped("", 8, 2), "");
}

TEST(ReportTest, JsonHoldsValuesAndNulls) {
  const auto json = nlohmann::json::parse(SampleReport().ToJson());
  EXPECT_EQ(json["count"], 2);
  EXPECT_EQ(json["rows"][0]["seconds"], 0.00123456);
  EXPECT_EQ(json["rows"][0]["ok"], true);
  EXPECT_TRUE(json["rows"][1]["seconds"].is_null());
}

TEST(ReportTest, ShowsNamesThatTerminalsActOnAndJsonKeepsThem) {
  const std::string name = "conv\n\033[1mX\u009b";
  Report report;
  report.Fact("name", "name", TextCell(name));
  report.AddTable({"nodes", "", {{"node", "node"}}}).AddRow({TextCell(name)});
  const std::string text = report.ToText();
  EXPECT_EQ(text, "name  conv\\n\\u001b[1mX\\u009b\n\nnode\nconv\\n\\u001b[1mX\\u009b\n\n");
  const auto json = nlohmann::json::parse(Visible(report.ToJson()));
  EXPECT_EQ(json["name"], name);
  EXPECT_EQ(json["nodes"][0]["node"], name);
}

TEST(ReportTest, CsvQuotesAndKeepsPrecision) {
  Table table("t", "", {{"name", "n"}, {"seconds", "s"}});
  table.AddRow({TextCell("a,\"b\""), MillisecondsCell(0.00123456)});
  table.AddRow({TextCell("c"), NoCell()});
  EXPECT_EQ(table.ToCsv(), "name,seconds\n\"a,\"\"b\"\"\",0.00123456\nc,\n");
}

TEST(NpyTest, RoundTrips) {
  const TemporaryDirectory directory;
  const Tensor floats = RandomTensor({2, 3, 5}, 1);
  Tensor ints({4}, Layout::Nchw(DataType::kI64));
  ints.ints()[2] = -7;
  const Tensor scalar = RandomTensor({}, 2);
  WriteNpz(directory.File("a.npz"), {{"floats", floats}, {"ints", ints}, {"scalar", scalar}});
  const auto read = ReadNpz(directory.File("a.npz"));
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].first, "floats");
  EXPECT_EQ(read[0].second.shape(), (Shape{2, 3, 5}));
  for (int64_t i = 0; i < floats.size(); ++i) EXPECT_EQ(read[0].second.floats()[i], floats.floats()[i]);
  EXPECT_EQ(read[1].second.type(), DataType::kI64);
  EXPECT_EQ(read[1].second.ints()[2], -7);
  EXPECT_EQ(read[2].second.shape(), Shape{});
  WriteNpy(directory.File("f.npy"), floats);
  EXPECT_EQ(ReadNpy(directory.File("f.npy")).shape(), floats.shape());
  EXPECT_EQ(ReadFile(directory.File("f.npy")).find('\n') % 64, 63u);
}

TEST(NpyTest, EveryTypeRoundTrips) {
  const TemporaryDirectory directory;
  std::vector<NamedTensor> written;
  for (int number = 0; number < kDataTypes; ++number) {
    const auto type = static_cast<DataType>(number);
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 0, 3}, Shape{1, 2, 3, 1, 2}}) {
      Tensor tensor(shape, Layout::Nchw(type));
      VisitType(type, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        for (int64_t i = 0; i < tensor.size(); ++i) tensor.data<T>()[i] = ConvertElement<T>(37 * (i + 1));
      });
      const Tensor read = ParseNpy(FormatNpy(tensor), "x.npy");
      EXPECT_EQ(read.shape(), shape);
      ASSERT_EQ(read.type(), type);
      EXPECT_TRUE(std::equal(read.raw(), read.raw() + read.bytes(), tensor.raw())) << DataTypeName(type);
      written.emplace_back(fmt::format("{}_{}", DataTypeName(type), shape.size()), std::move(tensor));
    }
  }
  WriteNpz(directory.File("all.npz"), written);
  const std::vector<NamedTensor> read = ReadNpz(directory.File("all.npz"));
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].first, written[i].first);
    EXPECT_EQ(read[i].second.type(), written[i].second.type());
    EXPECT_EQ(FormatNpy(read[i].second), FormatNpy(written[i].second));
  }
}

TEST(NpyTest, ConvertsOtherTypesAndRefusesWhatItCannotRead) {
  const TemporaryDirectory directory;
  const auto file = [&](const std::string& descr, const std::string& order, const std::string& data) {
    const std::string header =
        "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': (2,), }\n";
    const std::string path = directory.File("x.npy");
    WriteFile(path,
              std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data);
    return path;
  };
  const double doubles[] = {0.5, -2};
  const std::string eight(reinterpret_cast<const char*>(doubles), sizeof(doubles));
  EXPECT_EQ(ReadNpy(file("<f8", "False", eight)).floats()[1], -2);
  EXPECT_EQ(ReadNpy(file("|u1", "False", "\x05\xff")).data<uint8_t>()[1], 255);
  EXPECT_TRUE(ReadNpy(file("|b1", "False", "\x07\x01")).data<bool>()[0]);
  EXPECT_EQ(ReadNpy(file("<f2", "False", std::string("\0\x3e\0\xc0", 4))).data<F16>()[1], -2.0f);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadNpy(file("<c8", "False", eight)); }),
              testing::HasSubstr("<c8"));
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadNpy(file("<f8", "True", eight)); }),
              testing::HasSubstr("Fortran"));
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadNpy(file(">f8", "False", eight)); }),
              testing::HasSubstr(">f8"));
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadNpy(file("<f8", "False", "short")); }),
              testing::HasSubstr("needs 16 bytes"));
}

TEST(NpyTest, DamagedArchivesAreRefusedAtEveryLength) {
  const TemporaryDirectory directory;
  WriteNpz(directory.File("a.npz"), {{"x", RandomTensor({3}, 1)}});
  const std::string whole = ReadFile(directory.File("a.npz"));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    WriteFile(directory.File("cut.npz"), whole.substr(0, bytes));
    EXPECT_NE(Refusal(ErrorCode::kUsage, [&] { ReadNpz(directory.File("cut.npz")); }), "") << bytes;
  }
}

// An archive with one entry, packed by `method`.
void WritePacked(const std::string& path, const std::string& contents, int method) {
  zip_t* const zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  ASSERT_NE(zip, nullptr);
  zip_source_t* const source = zip_source_buffer(zip, contents.data(), contents.size(), 0);
  const zip_int64_t index = zip_file_add(zip, "x.npy", source, 0);
  ASSERT_EQ(zip_set_file_compression(zip, zip_uint64_t(index), method, 0), 0);
  ASSERT_EQ(zip_close(zip), 0);
}

TEST(NpyTest, DeflatedEntriesAreReadAndWrongOnesRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("packed.npz");
  Tensor zeros({300, 1000});
  zeros.floats()[299'999] = 5;
  WritePacked(path, FormatNpy(zeros), ZIP_CM_DEFLATE);
  std::string bytes = ReadFile(path);
  EXPECT_LT(bytes.size(), 10'000u);
  const auto read = ReadNpz(path);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].first, "x");
  EXPECT_EQ(read[0].second.floats()[299'999], 5);

  bytes[bytes.size() / 2] ^= 1;
  WriteFile(path, bytes);
  EXPECT_NE(Refusal(ErrorCode::kUsage, [&] { ReadNpz(path); }), "");
  WriteNpz(path, {{"x", zeros}});
  bytes = ReadFile(path);
  bytes[bytes.size() / 2] ^= 1;
  WriteFile(path, bytes);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadNpz(path); }), testing::HasSubstr("CRC"));
  if (zip_compression_method_supported(ZIP_CM_BZIP2, 1) != 0) {
    WritePacked(path, FormatNpy(zeros), ZIP_CM_BZIP2);
    EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { ReadNpz(path); }),
                testing::HasSubstr("packed by method 12"));
  }
}

// A contestant that takes what the clock says, so that ratios are known whatever else the machine does.
TEST(ProgressTest, StagesEstimateTheTimeLeft) {
  testing::internal::CaptureStderr();
  {
    ProgressLine line;
    const WorkSinks sinks = SinksOf(line);
    StageProgress stages(sinks, 2);
    stages.Expect(3);
    stages.Begin("running the first");
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("running the first, about 6.0s left"));
}

TEST(ProgressTest, WithoutAGuessNothingIsSaidOfTheTimeAtFirst) {
  std::vector<std::string> said;
  const WorkSinks sinks = {.on_stage = [&](const std::string& text) { said.push_back(text); }};
  StageProgress stages(sinks, 0);
  stages.Expect(3);
  stages.Begin("first");
  stages.Begin("second");
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0], "first");
  EXPECT_THAT(said[1], testing::ContainsRegex("second, about .*s left"));
}

TEST(ProgressTest, AStageCountsDownAndKeepsToTheLimit) {
  std::vector<std::string> said;
  const WorkSinks sinks = {.on_stage = [&](const std::string& text) { said.push_back(text); }};
  StageProgress stages(sinks, 100, {.end = NowSeconds() + 30});
  stages.Expect(10);
  EXPECT_LT(stages.SecondsEach(), 3);
  EXPECT_GT(stages.SecondsEach(), 0.5);
  stages.Begin("running");
  stages.Tick();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], testing::ContainsRegex("running, about (30.0|2[0-9]..)s left"));
  const WorkLimit over = {.end = NowSeconds()};
  EXPECT_TRUE(over.out_of_time());
  EXPECT_THROW(over.ThrowIfOver(), Error);
  EXPECT_NO_THROW(WorkLimit().ThrowIfOver());
}

TEST(TasksTest, WorkloadsAreToldFromModels) {
  for (const char* text : {"ic64ih56oc64kh3ph1", "mb1ic3", "g2ic64", "n\"x\"ic64", "ic64ih56oc64kz1",
                           "scale_shift+relu>ic64ih56", "g8ic8ih5oc8kh3>ic8ih3oc4kh1", "what>ic8",
                           "ic8oc8kh1+clip:0:6.5", "n\"a/b.c\"ic64"}) {
    EXPECT_TRUE(LooksLikeWorkload(text)) << text;
  }
  for (const char* text : {"resnet50", "vgg16", "net", "", "../ic64", "mobilenet_v1", "v2.jsonl", "v2/log"}) {
    EXPECT_FALSE(LooksLikeWorkload(text)) << text;
  }
}

TEST(SuiteTest, DirectivesSayWhatIsExpected) {
  const Suite suite = ParseSuite(
      "# a suite\n@title Three convs\n@against direct\nn\"a\"ic8ih8oc8kh1\n@each 1.5\n@peak 0.9\n"
      "ic16ih8oc8kh1  # why\n@each 0\nic17ih8oc8kh1\n@weights cold\n@forbid portable\n@geomean 1.1\n",
      "dir/three.txt");
  EXPECT_EQ(suite.name, "three");
  EXPECT_EQ(suite.title, "Three convs");
  EXPECT_TRUE(suite.against_direct);
  EXPECT_TRUE(suite.cold_weights);
  EXPECT_EQ(suite.geomean_goal, 1.1);
  ASSERT_EQ(suite.rows.size(), 3u);
  EXPECT_EQ(suite.rows[0].task.name, "a");
  EXPECT_TRUE(suite.rows[0].task.cold_weights);
  EXPECT_EQ(suite.rows[0].task.forbidden_templates, std::vector<std::string>{"portable"});
  EXPECT_EQ(suite.rows[0].ratio_goal, 0);
  EXPECT_EQ(suite.rows[1].ratio_goal, 1.5);
  EXPECT_EQ(suite.rows[1].peak_goal, 0.9);
  EXPECT_EQ(suite.rows[2].ratio_goal, 0);
  EXPECT_EQ(suite.rows[2].task.workload.ic, 17);
}

TEST(SuiteTest, FusedPairsHoldsAllOfTheMobilenetsAndTheirParts) {
  const Suite suite = LoadSuites("fused_pairs").front();
  std::set<std::string> held;
  for (const SuiteRow& row : suite.rows) held.insert(WorkloadToString(row.task.workload));
  const auto is_pointwise = [](const ConvWorkload& w) { return w.g == 1 && w.kh == 1 && w.kw == 1; };
  for (const char* network : {"mobilenet_v1", "mobilenet_v2"}) {
    int pairs = 0;
    for (const FusablePair& pair : FusablePairs(LoadModel({network, 0, {}}))) {
      if (pair.workload.before.empty()) continue;
      const ConvWorkload &first = pair.workload.before[0], second = pair.workload.main_conv();
      if (!(first.g > 1 && is_pointwise(second)) && !(is_pointwise(first) && second.g > 1)) continue;
      ++pairs;
      for (const ConvWorkload& workload : {pair.workload, first, second})
        EXPECT_TRUE(held.count(WorkloadToString(workload))) << WorkloadToString(workload);
    }
    EXPECT_GE(pairs, 25) << network;
  }
}

TEST(SuiteTest, TheBuiltInOnesParseAndHoldEveryConvOfTheResnets) {
  const std::vector<Suite> suites = LoadSuites("all");
  EXPECT_EQ(suites.size(), BuiltInSuites().size());
  const Suite dense = LoadSuites("dense").front();
  std::set<std::string> held;
  for (const SuiteRow& row : dense.rows) held.insert(WorkloadToString(row.task.workload));
  for (const char* network : {"resnet18", "resnet50"}) {
    for (const ConvTask& task : TasksOf(LoadModel({network, 0, {}}))) {
      if (task.workload.ih * task.workload.iw == 1) continue;  // the dense layer
      EXPECT_TRUE(held.count(WorkloadToString(task.workload))) << WorkloadToString(task.workload);
    }
  }
}

TEST(RecordsTest, CostsLieBesideTheLog) {
  EXPECT_EQ(CostsPathFor("a/b.jsonl"), "a/b.costs.jsonl");
  EXPECT_EQ(CostsPathFor("log"), "log.costs.jsonl");
}

}  // namespace
}  // namespace tilesmith
