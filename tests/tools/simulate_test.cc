// `tilesmith simulate` on a space that comes with tilesmith.
#include <nlohmann/json.hpp>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SimulateTest, WhatWasNotReachedIsNoNumber) {
  const TemporaryDirectory directory;
  const std::string csv = directory.File("summary.csv");
  std::vector<std::string> arguments = {
      "simulate",  std::string(TILESMITH_SOURCE_DIR) + "/tools/measured_spaces/conv3x3_64_56.space",
      "--tuner",   "random",
      "--seeds",   "3",
      "--trials",  "2",
      "--summary", csv};
  const ProgramResult text = Tilesmith(arguments);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("> 2"));
  EXPECT_THAT(ReadFile(csv), HasSubstr(",random,,,,,0."));
  arguments.emplace_back("--json");
  const auto found = nlohmann::json::parse(Tilesmith(arguments).out)["searchers"][0];
  for (const char* unknown : {"trials_to_5", "trials_to_2", "of_random", "regret_100"})
    EXPECT_TRUE(found[unknown].is_null()) << found;
  EXPECT_GT(found["regret_end"], 0);
}

TEST(SimulateTest, WhatWasReachedIsANumber) {
  const ProgramResult result =
      Tilesmith({"simulate", std::string(TILESMITH_SOURCE_DIR) + "/tools/measured_spaces/conv3x3_64_56.space",
                 "--tuner", "random", "--seeds", "3", "--trials", "2000", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto found = nlohmann::json::parse(result.out)["searchers"][0];
  EXPECT_LE(found["trials_to_5"], 2000);
  EXPECT_EQ(found["of_random"], 1);
  EXPECT_GE(found["regret_100"], found["regret_end"]);
}

}  // namespace
}  // namespace tilesmith
