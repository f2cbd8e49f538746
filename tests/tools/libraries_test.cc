// Which libraries of the system what is installed needs to start, and what is said where the others are
// missing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

constexpr bool kWithSanitizers =
#ifdef __SANITIZE_ADDRESS__
    true;
#else
    false;
#endif

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

// Loaded when they are asked for: who runs a network needs none of them.
constexpr const char* kLoadedLater[] = {"libdnnl", "libgomp", "libxgboost", "libhiredis"};

TEST(LibrariesTest, NothingNeedsWhatIsLoadedLater) {
  const std::string build = TILESMITH_BUILD_DIR;
  int seen = 0;
  for (const std::string& file :
       {std::string(TILESMITH_BINARY), build + "/tools/api/libtilesmith.so",
        build + "/tools/api/libtilesmith_run.so", build + "/tools/ort/libtilesmith_ort.so"}) {
    if (!std::filesystem::exists(file)) continue;  // the plug-in's headers were not fetched
    SCOPED_TRACE(file);
    ++seen;
    const ProgramResult needed = RunProgram({"readelf", "-d", file});
    ASSERT_EQ(needed.exit_code, 0) << needed.err;
    ASSERT_THAT(needed.out, HasSubstr("Shared library: [libc.so"));
    for (const char* name : kLoadedLater)
      EXPECT_THAT(needed.out, Not(HasSubstr(fmt::format("Shared library: [{}.", name))));
  }
  EXPECT_GE(seen, 2);
}

// What only runs networks needs C's and C++'s libraries, and has nothing that tunes.
TEST(LibrariesTest, RunningNeedsLess) {
  const std::string build = TILESMITH_BUILD_DIR, run = build + "/tools/api/libtilesmith_run.so";
  for (const std::string& file : {run, build + "/tools/ort/libtilesmith_ort.so"}) {
    if (file != run && !std::filesystem::exists(file)) continue;  // the plug-in's headers were not fetched
    const ProgramResult needed = RunProgram({"readelf", "-d", file});
    ASSERT_EQ(needed.exit_code, 0) << needed.err;
    EXPECT_THAT(needed.out, Not(HasSubstr("Shared library: [libzip."))) << file;
  }
  std::istringstream lines(RunProgram({"readelf", "-d", run}).out);
  for (std::string line; std::getline(lines, line);) {
    if (kWithSanitizers || line.find("(NEEDED)") == std::string::npos) continue;
    EXPECT_THAT(line, AnyOf(HasSubstr("[libc.so."), HasSubstr("[libm.so."), HasSubstr("[libstdc++.so."),
                            HasSubstr("[libgcc_s.so."), HasSubstr("[ld-linux")));
  }
  const ProgramResult symbols = RunProgram({"nm", "-D", "--defined-only", run});
  EXPECT_THAT(symbols.out, HasSubstr(" tilesmith_load\n"));
  EXPECT_THAT(symbols.out, Not(HasSubstr(" tilesmith_tune\n")));
  namespace fs = std::filesystem;
  EXPECT_LT(fs::file_size(run), fs::file_size(build + "/tools/api/libtilesmith.so") * 2 / 3);
}

// As where they are not installed: what is found first cannot be loaded.
class MissingLibrariesTest : public testing::Test {
 protected:
  MissingLibrariesTest() {
    for (const char* name : {"libdnnl.so.2", "libdnnl.so.3", "libxgboost.so.0", "libxgboost.so"})
      std::ofstream(folder_.File(name));
  }

  ProgramResult Run(const std::vector<std::string>& arguments) const {
    return Tilesmith(arguments, options_);
  }

  const TemporaryDirectory folder_;
  const ProgramOptions options_ = {
      .environment = {"LD_LIBRARY_PATH=" + folder_.path(), "HOME=" + folder_.path()}};
};

TEST_F(MissingLibrariesTest, NetworksRunWithoutThem) {
  const ProgramResult ran =
      Run({"run", "squeezenet1_1", "--input-shape", "input=1x3x32x32", "--threads", "1", "--check"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const ProgramResult version = Run({"--version"});
  EXPECT_THAT(version.out, HasSubstr("oneDNN not installed, XGBoost not installed"));
}

TEST_F(MissingLibrariesTest, BenchSaysWhichPackageItNeeds) {
  ExpectRefusal({"bench", kSmallConv, "--threads", "1"}, 7, "package libdnnl", options_);
}

// Before anything is measured or written.
TEST_F(MissingLibrariesTest, TuningSaysWhichPackageItNeeds) {
  const std::string log = folder_.File("log.jsonl");
  ExpectRefusal({"tune", kSmallConv, "--threads", "1", "-o", log}, 7, "package libxgboost", options_);
  ExpectRefusal(
      {"optimize", "squeezenet1_1", "--threads", "1", "--for", "5s", "-o", folder_.File("plan.jsonl")}, 7,
      "package libxgboost", options_);
  EXPECT_FALSE(std::filesystem::exists(log));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("plan.jsonl")));
}

TEST_F(MissingLibrariesTest, OtherSearchersTuneWithoutThem) {
  const ProgramResult tuned = Run({"tune", kSmallConv, "--threads", "1", "--tuner", "ga", "--trials", "8",
                                   "-o", folder_.File("log.jsonl")});
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("warning: oneDNN, which ours is set beside, is not installed"));
  EXPECT_THAT(tuned.out, HasSubstr("GFLOP/s"));
}

}  // namespace
}  // namespace tilesmith
