// tilesmith.torch, where a Python of the build's version has PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

class TorchTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "Python would have to be built with sanitizers, too";
#endif
    if (!std::filesystem::exists(kPackage))
      GTEST_SKIP() << "the Python package is not built: pybind11-dev or python3-dev is missing";
    const char* named = std::getenv("TILESMITH_TORCH_PYTHON");
    const std::string has_all =
        "import pathlib, sysconfig, torch, torchvision, onnxscript; suffix = "
        "sysconfig.get_config_var('EXT_SUFFIX');"
        " raise SystemExit(not pathlib.Path('" +
        kPackage + "/_tilesmith' + suffix).exists())";
    for (const std::string candidate :
         {named ? named : "python3", TILESMITH_SOURCE_DIR "/peers/torch/bin/python3"})
      if (python_.empty() &&
          RunProgram({"sh", "-c", "exec \"$0\" \"$@\"", candidate, "-c", has_all}).exit_code == 0)
        python_ = candidate;
    if (python_.empty())
      GTEST_SKIP() << "no Python of the build's version has torch, torchvision and onnxscript "
                      "(tools/bench-torch fetches one, TILESMITH_TORCH_PYTHON names another)";
  }

  // In a cache of its own.
  ProgramResult Run(const std::string& script, const std::vector<std::string>& arguments = {}) const {
    std::vector<std::string> command = {python_, TILESMITH_SOURCE_DIR + script};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(
        command, {.environment = {"PYTHONPATH=" + std::filesystem::path(kPackage).parent_path().string(),
                                  "TILESMITH=" TILESMITH_BINARY, "XDG_CACHE_HOME=" + directory_.path()}});
  }

  const std::string kPackage = TILESMITH_BUILD_DIR "/python/tilesmith";
  const TemporaryDirectory directory_;
  std::string python_;
};

TEST_F(TorchTest, CompilesModulesAndGraphs) {
  const ProgramResult result = Run("/tests/tools/torch_test.py");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(TorchTest, TheExampleRuns) {
  const ProgramResult result = Run("/tools/api/example/classify_torch.py", {"squeezenet1_1", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* way : {"tilesmith.torch.compile", "torch.compile"})
    EXPECT_THAT(result.out,
                testing::ContainsRegex(std::string("(^|\n)") + way +
                                       ": the largest of 1000 is number [0-9]+, error [0-9.]+e-0[5-9]"));
  EXPECT_THAT(result.out, testing::HasSubstr("batches of 2 and 3: (2, 1000), (3, 1000)"));
}

TEST_F(TorchTest, BenchTorchLeavesATable) {
  const ProgramResult result =
      RunProgram({TILESMITH_SOURCE_DIR "/tools/bench-torch", "--python", python_, "--for", "1s", "--threads",
                  "1", "--turns", "1", "--seconds", "0.05", "--out", directory_.File("out"), "--csv",
                  directory_.path(), "squeezenet1_1"},
                 {.environment = {"TILESMITH_BINARY=" TILESMITH_BINARY}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("\n\\| squeezenet1_1 \\| [0-9.e-]+ \\| "));
  EXPECT_THAT(ReadFile(directory_.File("torch.csv")), testing::HasSubstr("\nsqueezenet1_1,1,1,"));
}

}  // namespace
}  // namespace tilesmith
