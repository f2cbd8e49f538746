// Every command line of README.md works: each line of its ```sh blocks that starts with tilesmith is run, in
// the order of the page, in one directory. What makes them slow is scaled down, nothing else is changed.
#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

namespace fs = std::filesystem;

// Other programs in the page's blocks, which this test does not run: tools/check runs this very test,
// tools/quickstart is tools/install-deps, a build, and commands that the page also shows one by one, and
// tools/bench-networks has a test of its own (scripts_test.cc).
const std::vector<std::string> kNotRun{
    "git ",  "cd ",        "tools/quickstart", "tools/check", "tools/bench-networks", "tools/install-deps",
    "cmake", "ninja ",     "objdump ",         "perf ",       "tools/fetch-models",   "tools/fetch-peers",
    "ctest", "export PATH"};

struct CommandLine {
  int line = 0;
  std::string text;
};

std::vector<CommandLine> CommandLines() {
  std::vector<CommandLine> commands;
  std::istringstream page(ReadFile(TILESMITH_SOURCE_DIR "/README.md"));
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(page, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (inside && !line.empty() && line[0] != '#') {
      commands.push_back({number, line.substr(0, line.find("  #"))});
    }
  }
  return commands;
}

std::string ScaledDown(std::string text) {
  const std::pair<const char*, const char*> substitutions[] = {
      {"--time-budget [0-9a-z.]+", "--trials 2"},  // a short budget could leave a task without a record
      {"--trials [0-9]+", "--trials 2"},
      {"--time [0-9a-z.]+", "--time 1ms"},
      {"--runs [0-9]+", "--runs 2"},
      {"--seeds [0-9]+", "--seeds 1"},
      {"--suite [a-z_]+", "--suite tools/suites/two.txt"},
      {"resnet(18|50) ", "squeezenet1_1 --input-shape input=1x3x64x64 "},
      {"layer1.0.conv2 ", "features.3.expand3x3 "},
  };
  for (const auto& [pattern, replacement] : substitutions) {
    text = std::regex_replace(text, std::regex(pattern), replacement);
  }
  const auto lacks = [&](const char* option) { return text.find(option) == std::string::npos; };
  if (!lacks("tilesmith tune") && lacks("--trials")) text += " --trials 2";
  if (!lacks("tilesmith simulate")) text += " --trials 10";
  if (!lacks("tilesmith graph-tune")) text += " --time 1ms --rounds 1";
  if (!lacks("tilesmith bench") && lacks("--time ") && lacks("--transforms")) text += " --time 1ms";
  return text;
}

TEST(ReadmeTest, EveryCommandLineWorks) {
  const TemporaryDirectory directory;
  const fs::path root = TILESMITH_SOURCE_DIR, here = directory.path();
  fs::create_directories(here / "build");
  fs::create_directories(here / "tools/suites");
  fs::create_symlink(TILESMITH_BINARY, here / "build/tilesmith");
  fs::create_directory_symlink(root / "tools/measured_spaces", here / "tools/measured_spaces");
  WriteFile(here / "tools/suites/two.txt", "ic16ih14oc16oh14kh3ph1+bias+relu\nn\"odd\"ic16ih7oc17kh3ph1\n");
  const bool has_models = fs::exists(root / "models");
  if (has_models) fs::create_directory_symlink(root / "models", here / "models");

  int ran = 0;
  for (const CommandLine& command : CommandLines()) {
    SCOPED_TRACE("README.md:" + std::to_string(command.line) + ": " + command.text);
    const bool ours = command.text.starts_with("tilesmith ") || command.text.starts_with("build/tilesmith ");
    if (!ours) {
      const bool known = std::any_of(kNotRun.begin(), kNotRun.end(), [&](const std::string& start) {
        return command.text.starts_with(start);
      });
      EXPECT_TRUE(known) << "neither tilesmith nor a documented exception";
      continue;
    }
    if (command.text.find("models/") != std::string::npos && !has_models) {
      std::printf("skipped, tools/fetch-models has not run: %s\n", command.text.c_str());
      continue;
    }
    const std::string text = ScaledDown(command.text);
    const ProgramResult result = RunProgram({"bash", "-c", "PATH=$PWD/build:$PATH; " + text},
                                            {here.string(), {"XDG_DATA_HOME=" + here.string()}});
    EXPECT_EQ(result.exit_code, 0) << text << "\n" << result.err;
    ++ran;
  }
  EXPECT_GT(ran, 10);
}

}  // namespace
}  // namespace tilesmith
