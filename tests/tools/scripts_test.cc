// The scripts: they parse, explain themselves, and refuse what they do not know.
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

std::string Script(const std::string& name) { return TILESMITH_SOURCE_DIR "/" + name; }

TEST(ScriptsTest, AllParse) {
  for (const char* name : {"tools/install-deps", "tools/quickstart", "tools/check", "tools/fetch-models",
                           "tools/fetch-peers", "tools/lib.sh", ".ci/run"}) {
    const ProgramResult result = RunProgram({"bash", "-n", Script(name)});
    EXPECT_EQ(result.exit_code, 0) << name << "\n" << result.err;
  }
}

TEST(ScriptsTest, HelpAndUnknownArguments) {
  for (const char* name : {"tools/install-deps", "tools/quickstart", "tools/check"}) {
    const ProgramResult help = RunProgram({Script(name), "--help"});
    EXPECT_EQ(help.exit_code, 0) << name;
    EXPECT_THAT(help.out, testing::StartsWith(std::string("usage: ") + name));
    const ProgramResult refused = RunProgram({Script(name), "--frobnicate"});
    EXPECT_EQ(refused.exit_code, 2) << name;
    EXPECT_THAT(refused.err, testing::HasSubstr("unknown argument --frobnicate"));
  }
}

TEST(ScriptsTest, WrongValuesAreNamed) {
  EXPECT_THAT(RunProgram({Script("tools/check"), "--isa", "sse9"}).err, testing::HasSubstr("got sse9"));
  const ProgramResult result = RunProgram({Script("tools/quickstart"), "no/such/model.onnx"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("cannot read no/such/model.onnx"));
}

}  // namespace
}  // namespace tilesmith
