// `tilesmith bench MODEL --log LOG`: a network in the schedules of a log.
#include <nlohmann/json.hpp>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"
#include "tests/tools/made_up_log.h"

namespace tilesmith {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class BenchLogTest : public testing::Test {
 protected:
  void SetUp() override { WriteMadeUpLog("squeezenet1_1", "input=1x3x48x48", log_); }

  ProgramResult Bench() const {
    const ProgramResult result =
        Tilesmith({"bench", "squeezenet1_1", "--input-shape", "input=1x3x48x48", "--threads", "1", "--log",
                   log_, "--time", "1ms", "--network-time", "1ms", "--onnxruntime", "none", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }

  static int64_t OfOrigin(const Json& bench, const std::string& origin) {
    return std::ranges::count_if(bench["rows"], [&](const Json& row) { return row["schedule"] == origin; });
  }

  const TemporaryDirectory directory_;
  const std::string log_ = directory_.File("log.jsonl");
};

TEST_F(BenchLogTest, ANetworkRunsInItsFastestSchedules) {
  const ProgramResult result = Bench();
  EXPECT_THAT(result.err, Not(HasSubstr("no usable record")));
  const Json bench = Json::parse(result.out);
  EXPECT_EQ(OfOrigin(bench, "log"), std::ssize(bench["rows"]));
  for (const Json& row : bench["rows"]) {
    EXPECT_EQ(row["template"], "portable");
    EXPECT_THAT(row["layouts"], HasSubstr("-> NCHW8c"));
  }
  EXPECT_EQ(bench["network_plan"], "fastest of the log (none)");
  EXPECT_GT(bench["network_untuned_ratio"], 0);
  int64_t steps = 0;
  for (const Json& step : bench["steps"]) steps += step["kind"] == "portable";
  EXPECT_GE(steps, std::ssize(bench["rows"]));
}

TEST_F(BenchLogTest, WhatALogLacksRunsByDefaultAndIsSaid) {
  const std::string all = ReadFile(log_);
  WriteFile(log_, all.substr(0, all.rfind('\n', all.size() / 2) + 1));
  const ProgramResult some = Bench();
  const Json bench = Json::parse(some.out);
  EXPECT_GT(OfOrigin(bench, "log"), 0);
  EXPECT_GT(OfOrigin(bench, "default"), 0);
  EXPECT_THAT(some.err, HasSubstr(fmt::format("has no usable record of {} of {} convolutions",
                                              OfOrigin(bench, "default"), bench["rows"].size())));

  WriteFile(log_, "");
  ASSERT_EQ(
      Tilesmith({"tune", kSmallConv, "-o", log_, "--trials", "1", "--no-baseline", "--resume"}).exit_code, 0);
  const ProgramResult none = Bench();
  EXPECT_EQ(OfOrigin(Json::parse(none.out), "default"), std::ssize(bench["rows"]));
  EXPECT_THAT(none.err, HasSubstr("convolutions, which run in default schedules"));
  EXPECT_EQ(Json::parse(none.out)["network_plan"], "heuristic (none)");
}

}  // namespace
}  // namespace tilesmith
