#include "tools/manual/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/tools/cli.h"
#include "tools/cli/args.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;

TEST(ArgsTest, DescribeWhatTheyTake) {
  std::string model, tuner;
  int64_t trials = 0;
  bool json = false;
  Args args;
  args.Positional("MODEL", &model, "A file");
  args.Positive("-n,--trials", &trials, "How many");
  args.Choice("--tuner", &tuner, {"xgb", "ga"}, "Strategy");
  args.Flag("--json", &json, "Print JSON");
  const std::vector<ArgumentDescription> described = args.Describe();
  ASSERT_EQ(described.size(), 4U);
  EXPECT_EQ(described[0].names, "MODEL");
  EXPECT_TRUE(described[0].positional);
  EXPECT_EQ(described[1].names, "-n,--trials");
  EXPECT_EQ(described[1].value, "N");
  EXPECT_EQ(described[2].value, "{xgb,ga}");
  EXPECT_EQ(described[3].names, "--json");
  EXPECT_EQ(described[3].value, "");
  EXPECT_EQ(described[3].help, "Print JSON");
}

TEST(ArgsTest, SettingsOfMessagesAreCalledAfterTheirOptions) {
  EXPECT_EQ(WithOptionNames("`input_shapes` must be a=1; `max_memory` is 3 (`max_memory`), not `x`"),
            "--input-shape must be a=1; --max-memory is 3 (--max-memory), not `x`");
}

TEST(ArgsTest, GivenOptionsAreGivenBack) {
  Args args;
  std::string model, log, left_out;
  std::vector<std::string> shapes;
  bool json = false, check = false;
  args.Positional("MODEL", &model, "");
  args.Text("-o,--output", &log, "");
  args.Text("--log", &left_out, "");
  args.Texts("--shape", &shapes, "");
  args.Flag("--json", &json, "");
  args.Flag("--check", &check, "");
  args.Parse({"--shape", "a=1x2", "net", "--json", "-o", "x.jsonl", "--shape=b=3"});
  EXPECT_THAT(args.GivenOptions(), testing::UnorderedElementsAre("--output=x.jsonl", "--shape=a=1x2",
                                                                 "--shape=b=3", "--json=true"));
  bool again = false;
  Args others;
  others.Flag("--json", &again, "");
  others.Parse({"--json=true"});
  EXPECT_TRUE(again);
}

TEST(ManualTest, EveryCommandHasAPageWithItsOptionsAndExamples) {
  const auto pages = ManPages();
  const std::vector<CommandDescription> commands = DescribeCommands();
  EXPECT_EQ(pages.size(), commands.size() + 1);
  EXPECT_THAT(pages.at("tilesmith.1"), HasSubstr(".BR tilesmith\\-log\\-best (1)"));
  const std::string& tune = pages.at("tilesmith-tune.1");
  EXPECT_THAT(tune, testing::StartsWith(".TH tilesmith\\-tune 1 "));
  EXPECT_THAT(tune, HasSubstr(".TP\n.B \\-\\-time\\-budget,\\-\\-for TIME\n"));
  EXPECT_THAT(tune, HasSubstr(".SH EXAMPLES\n.nf\ntilesmith tune "));
  EXPECT_THAT(pages.at("tilesmith-log.1"), HasSubstr(".BR tilesmith\\-log\\-merge (1)"));
  for (const char* hidden : {"tilesmith-manual.1", "tilesmith-measure-worker.1"})
    EXPECT_FALSE(pages.contains(hidden));
}

TEST(ManualTest, CompletionKnowsEveryCommandAndOption) {
  const std::string bash = BashCompletion(), zsh = ZshCompletion();
  for (const CommandDescription& command : DescribeCommands()) {
    EXPECT_THAT(bash, HasSubstr("'" + command.name + "') words="));
    EXPECT_THAT(zsh, HasSubstr("'" + command.name + "')"));
    for (const ArgumentDescription& argument : command.arguments) {
      if (argument.positional) continue;
      std::istringstream names(argument.names);
      for (std::string name; std::getline(names, name, ',');) {
        if (!name.starts_with("--")) continue;
        EXPECT_THAT(bash, HasSubstr(name)) << command.name;
        EXPECT_THAT(zsh, HasSubstr(name)) << command.name;
      }
    }
  }
}

TEST(VersionTest, TellsCommitInstructionsAndLibraries) {
  const std::string text = Tilesmith({"--version"}).out;
  EXPECT_THAT(text, testing::ContainsRegex("^tilesmith [0-9.]+ \\(commit [0-9a-z-]+\\)\n"));
  for (const char* part : {"instructions: ", "oneDNN ", "XGBoost ", "protobuf "})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace tilesmith
