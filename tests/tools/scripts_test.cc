// The scripts: they parse, explain themselves, and refuse what they do not know.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

std::string Script(const std::string& name) { return TILESMITH_SOURCE_DIR "/" + name; }

// The executable files of a folder of the sources and of those below it.
std::vector<std::string> ProgramsIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Script(folder))) {
    const bool runs = entry.is_regular_file() && access(entry.path().c_str(), X_OK) == 0;
    if (runs) names.push_back(std::filesystem::relative(entry.path(), TILESMITH_SOURCE_DIR).string());
  }
  return names;
}

TEST(ScriptsTest, AllParse) {
  for (const char* name :
       {"tools/install-deps", "tools/quickstart", "tools/check", "tools/fetch-models", "tools/fetch-peers",
        "tools/fetch-report", "tools/report/pictures", "tools/fuzz", "tools/lib.sh", "tools/package",
        "tools/arm/check", "tools/ort/fetch", "tests/tools/package_test", "tests/tools/ort/check",
        "tests/tools/ort/check-nodes", "tests/tuner/farm/partition", ".ci/run"}) {
    const ProgramResult result = RunProgram({"bash", "-n", Script(name)});
    EXPECT_EQ(result.exit_code, 0) << name << "\n" << result.err;
  }
}

TEST(ScriptsTest, HelpAndUnknownArguments) {
  const std::vector<std::string> names = ProgramsIn("tools");
  EXPECT_GE(names.size(), 20u);
  for (const std::string& name : names) {
    const ProgramResult help = RunProgram({Script(name), "--help"});
    EXPECT_EQ(help.exit_code, 0) << name;
    EXPECT_THAT(help.out, testing::StartsWith("usage: " + name));
    const ProgramResult refused = RunProgram({Script(name), "--frobnicate"});
    EXPECT_EQ(refused.exit_code, 2) << name;
    EXPECT_THAT(refused.err, testing::HasSubstr("unexpected argument --frobnicate"));
    const ProgramResult both = RunProgram({Script(name), "--frobnicate", "--help"});
    EXPECT_EQ(both.exit_code, 0) << name << "\n" << both.err;
    EXPECT_EQ(both.out, help.out);
  }
}

TEST(ScriptsTest, WrongValuesAreNamed) {
  EXPECT_THAT(RunProgram({Script("tools/check"), "--isa", "sse9"}).err, testing::HasSubstr("got sse9"));
  const ProgramResult result = RunProgram({Script("tools/quickstart"), "no/such/model.onnx"});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_THAT(result.err, testing::HasSubstr("cannot read no/such/model.onnx"));
  const std::pair<std::vector<std::string>, const char*> refusals[] = {
      {{"tools/quickstart", "resnet51"}, "resnet51 is neither an ONNX file"},
      {{"tools/quickstart", "resnet18", "5x"}, "TIME must be a duration such as 500ms, 90s"},
      {{"tools/quickstart", "resnet18", "5s", "more"}, "unexpected argument more"},
      {{"tools/bench-networks", "--time-budget", "5x"}, "--time-budget must be a duration"},
      {{"tools/docs", "one", "two"}, "unexpected argument two"},
  };
  for (const auto& [arguments, named] : refusals) {
    std::vector<std::string> command = arguments;
    command[0] = Script(command[0]);
    const ProgramResult refused = RunProgram(command);
    EXPECT_EQ(refused.exit_code, 2) << named;
    EXPECT_THAT(refused.err, testing::HasSubstr(named));
    EXPECT_EQ(Lines(refused.err), 1) << refused.err;
  }
  EXPECT_THAT(RunProgram({Script("tools/bench-networks"), "--threads", "two"}).err,
              testing::HasSubstr("--threads must be a number from 1 on, got two"));
  EXPECT_THAT(RunProgram({Script("tools/bench-networks"), "resnet51"}).err,
              testing::HasSubstr("resnet51 is neither an ONNX file nor a built-in network"));
  EXPECT_THAT(RunProgram({Script("tools/bench-rivals"), "--precision", "fp8"}).err,
              testing::HasSubstr("must be of f32, bf16, int8, got fp8"));
  EXPECT_THAT(RunProgram({Script("tools/bench-rivals"), "--turns", "0"}).err,
              testing::HasSubstr("--turns must be a number from 1 on, got 0"));
  EXPECT_THAT(RunProgram({Script("tools/bench-accuracy"), "--types", "fp8"}).err,
              testing::HasSubstr("must be of f32, bf16, int8, mixed, got fp8"));
  EXPECT_THAT(RunProgram({Script("tools/bench-accuracy"), "--inputs", "0"}).err,
              testing::HasSubstr("--inputs must be a number from 1 on, got 0"));
  EXPECT_THAT(RunProgram({Script("tools/bench-starts"), "--precision", "bf16"}).err,
              testing::HasSubstr("must be of f32, int8, got bf16"));
  EXPECT_THAT(RunProgram({Script("tools/bench-plans"), "--kinds", "fast"}).err,
              testing::HasSubstr("must be of reproducible, plain, layers, got fast"));
  EXPECT_THAT(RunProgram({Script("tools/bench-float16"), "--threads", "two"}).err,
              testing::HasSubstr("--threads must be a number from 1 on, got two"));
  EXPECT_THAT(RunProgram({Script("tools/bench-float16")}).err, testing::HasSubstr("give a MODEL.onnx"));
  EXPECT_THAT(RunProgram({Script("tools/bench-torch"), "--for", "soon"}).err,
              testing::HasSubstr("--for must be a duration such as 500ms, 90s"));
  EXPECT_THAT(RunProgram({Script("tools/soak"), "--for", "0s", "squeezenet1_1"}).err,
              testing::HasSubstr("--for must be a duration such as 500ms, 90s"));
}

// What TILESMITH_BINARY names is what runs, from any folder; one that is missing is the environment's fault.
TEST(ScriptsTest, AllUseOneProgram) {
  const TemporaryDirectory directory;
  const std::string model = directory.File("model.onnx"), missing = directory.File("none/tilesmith"),
                    told = directory.File("told");
  WriteFile(model, "");
  ProgramOptions options = {.environment = {"TILESMITH_BINARY=" + missing}};
  const std::vector<std::string> commands[] = {{"tools/ship-records"},
                                               {"tools/measured_spaces/measure", directory.path()},
                                               {"tools/json/check"},
                                               {"tools/compare-nodes", model},
                                               {"tools/ort/compare", model},
                                               {"tools/bench-networks", model},
                                               {"tools/bench-rivals"},
                                               {"tools/soak", model},
                                               {"tools/bench-accuracy"},
                                               {"tools/bench-float16", model},
                                               {"tools/bench-starts", model},
                                               {"tools/bench-plans", model},
                                               {"tools/bench-torch", "--python", model, "resnet18"},
                                               {"tools/gpu-check", "--out", directory.File("out")}};
  for (std::vector<std::string> command : commands) {
    command[0] = Script(command[0]);
    const ProgramResult result = RunProgram(command, options);
    EXPECT_EQ(result.exit_code, 7) << command[0];
    EXPECT_THAT(result.err, testing::HasSubstr(missing + " is missing"));
    EXPECT_EQ(Lines(result.err), 1) << result.err;
  }
  const std::string program = directory.File("tilesmith");
  WriteFile(program, "#!/bin/sh\necho \"$@\" >> '" + told + "'\nexit 3\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  options = {.directory = directory.path(), .environment = {"TILESMITH_BINARY=./tilesmith"}};
  EXPECT_EQ(RunProgram({Script("tools/ship-records"), "--for", "1s", "vgg16"}, options).exit_code, 3);
  EXPECT_EQ(RunProgram({Script("tools/measured_spaces/measure"), "."}, options).exit_code, 3);
  EXPECT_THAT(ReadFile(told),
              testing::ContainsRegex("^optimize vgg16 --for 1s [^\n]*\nmeasure-space ic64[^\n]*\n$"));
}

TEST(ScriptsTest, FilesThatCannotBeReadAreToldAlike) {
  const TemporaryDirectory directory;
  const std::string missing = directory.File("none.onnx"), folder = directory.path();
  for (const std::string name :
       {"tools/quickstart", "tools/ship-records", "tools/bench-networks", "tools/bench-rivals", "tools/soak",
        "tools/bench-float16", "tools/bench-starts", "tools/bench-plans", "tools/compare-nodes",
        "tools/ort/compare", "tools/report/pictures"}) {
    for (const auto& [path, why] :
         {std::pair(missing, "No such file or directory"), {folder, "Is a directory"}}) {
      const ProgramResult result = RunProgram({Script(name), path});
      EXPECT_EQ(result.exit_code, 7) << name;
      EXPECT_THAT(result.err, testing::EndsWith(": cannot read " + path + ": " + why + "\n"));
    }
  }
  EXPECT_EQ(RunProgram({Script("tools/report/pictures")}).exit_code, 2);
  const ProgramResult page = RunProgram({Script("tools/report/pictures"), Script("README.md")});
  EXPECT_EQ(page.exit_code, 2);
  EXPECT_THAT(page.err, testing::EndsWith("is no page of `tilesmith report`\n"));
}

// By an npm that fetches nothing.
TEST(ScriptsTest, ModelsAreFetchedByTheirNames) {
  const TemporaryDirectory directory;
  WriteFile(directory.File("npm"), "#!/bin/sh\nexit 1\n");
  std::filesystem::permissions(directory.File("npm"), std::filesystem::perms::owner_all);
  const ProgramOptions options = {.environment = {"PATH=" + directory.path() + ":" + std::getenv("PATH")}};
  for (const std::string name : {"fr_eye", "fr_eye.onnx"}) {
    const ProgramResult result = RunProgram({Script("tools/fetch-models"), name}, options);
    EXPECT_THAT(result.out + result.err,
                testing::AnyOf(testing::HasSubstr("fr_eye.onnx: already there"),
                               testing::HasSubstr("npm could not fetch faceplugin")));
  }
  const ProgramResult unknown = RunProgram({Script("tools/fetch-models"), "fr_ey"}, options);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, testing::HasSubstr("unknown model fr_ey (did you mean fr_eye.onnx?"));
}

TEST(ScriptsTest, SoakFindsOutputsAndMemoryAsTheyWere) {
  const std::string binary = TILESMITH_BINARY;
  const std::string package = std::filesystem::path(binary).parent_path() / "python" / "tilesmith";
  if (!std::filesystem::exists(package) ||
      RunProgram({"/usr/bin/python3", "-c", "import numpy"}).exit_code != 0)
    GTEST_SKIP() << "the Python package or numpy is missing";
  const TemporaryDirectory directory;
  const std::string model = directory.File("small.onnx"), out = directory.File("out");
  ASSERT_EQ(RunProgram({binary, "export", "squeezenet1_1", "--input-shape", "input=1x3x32x32", "-o", model})
                .exit_code,
            0);
  setenv("TILESMITH_BINARY", TILESMITH_BINARY, 1);
  const std::string text = directory.File("text.onnx");
  WriteFile(text, "# Notes\n");
  const ProgramResult refused = RunProgram({Script("tools/soak"), "--for", "2s", "--threads", "1", text});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.err, "soak: " + text + ": a text file, not an ONNX model\n");
  const ProgramResult result = RunProgram({Script("tools/soak"), "--for", "2s", "--workers", "2", "--threads",
                                           "1", "--busy", "1", "--seed", "7", "--csv", out, model});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out,
              testing::ContainsRegex("\n\\| small.onnx \\| 1 \\| [0-9]+ \\| [0-9]+ \\| [1-9][0-9]* \\| 0 "));
  EXPECT_THAT(result.out,
              testing::HasSubstr("2 workers beside 1 busy processes, 2 s, seed 7; resident memory "));
  EXPECT_THAT(ReadFile(out + "/soak.csv"), testing::HasSubstr("\nsmall.onnx,1,"));
  BackgroundProgram endless({Script("tools/soak"), "--for", "10m", "--workers", "1", "--busy", "0", model});
  sleep(4);
  endless.Signal(SIGINT);
  const ProgramResult interrupted = endless.Wait();
  EXPECT_EQ(interrupted.exit_code, 130) << interrupted.err;
  EXPECT_THAT(interrupted.err,
              testing::EndsWith("soak: interrupted; the table says what was done until then\n"));
  EXPECT_THAT(interrupted.out, testing::HasSubstr("\n| small.onnx | 1 | "));
}

// What it converts with comes from PyPI, which is not asked here.
TEST(ScriptsTest, BenchFloat16LeavesATable) {
  if (!std::filesystem::exists(Script("peers/float16/done")))
    GTEST_SKIP() << "tools/bench-float16 has not fetched what it converts with";
  const TemporaryDirectory directory;
  const std::string model = directory.File("small.onnx"), out = directory.File("out");
  ASSERT_EQ(RunProgram({TILESMITH_BINARY, "export", "squeezenet1_1", "--input-shape", "input=1x3x32x32", "-o",
                        model})
                .exit_code,
            0);
  setenv("TILESMITH_BINARY", TILESMITH_BINARY, 1);
  const ProgramResult result = RunProgram({Script("tools/bench-float16"), "--threads", "1", "--turns", "1",
                                           "--seconds", "0.05", "--out", out, "--csv", out, model});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("\n\\| small \\| all \\| [0-9.e-]+ \\| [0-9.e-]+ \\| "));
  EXPECT_THAT(ReadFile(out + "/float16.csv"), testing::HasSubstr("\nsmall,keep_io_types,1,1,"));
}

TEST(ScriptsTest, BenchPlansLeavesATable) {
  if (!std::filesystem::exists(Script("peers/plans/done")))
    GTEST_SKIP() << "tools/bench-plans has not fetched what it compares with";
  const TemporaryDirectory directory;
  const std::string out = directory.File("out");
  setenv("TILESMITH_BINARY", TILESMITH_BINARY, 1);
  const ProgramResult result = RunProgram({Script("tools/bench-plans"), "--threads", "1", "--turns", "1",
                                           "--seconds", "0.05", "--out", out, "--csv", out, "squeezenet1_1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("\n| squeezenet1_1 | f32 | "));
  EXPECT_THAT(ReadFile(out + "/kinds_of_plans.csv"), testing::HasSubstr("\nsqueezenet1_1,f32,1,0,1,"));
}

TEST(ScriptsTest, BenchStartsLeavesATable) {
  if (!std::filesystem::exists(Script("peers/starts/done")))
    GTEST_SKIP() << "tools/bench-starts has not fetched what it compares with";
  const TemporaryDirectory directory;
  const std::string out = directory.File("out");
  setenv("TILESMITH_BINARY", TILESMITH_BINARY, 1);
  const ProgramResult result =
      RunProgram({Script("tools/bench-starts"), "--threads", "1", "--starts", "1", "--precision", "f32",
                  "--out", out, "--csv", out, "squeezenet1_1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("\n| squeezenet1_1 | f32 | "));
  EXPECT_THAT(ReadFile(out + "/starts.csv"), testing::HasSubstr("\nsqueezenet1_1,f32,1,1,"));
}

TEST(ScriptsTest, AccuracyIsMeasuredRight) {
  if (RunProgram({"python3", "-c", "import numpy"}).exit_code != 0) GTEST_SKIP() << "numpy is missing";
  const ProgramResult result = RunProgram({"python3", Script("tests/tools/accuracy_test.py")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// No daemon is at hand to build it, but what it runs and copies can be looked at.
TEST(ScriptsTest, DockerfileRunsWhatIsThere) {
  std::istringstream file(ReadFile(Script("tools/Dockerfile")));
  int commands = 0;
  for (std::string line; std::getline(file, line);) {
    SCOPED_TRACE(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string word = line.substr(0, line.find(' ')),
                      rest = line.substr(std::min(line.size(), word.size() + 1));
    EXPECT_THAT(word, testing::AnyOf("FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT"));
    if (word == "FROM") {
      EXPECT_THAT(rest, testing::StartsWith("debian:12-slim"));
    }
    if (word != "RUN") continue;
    ++commands;
    EXPECT_EQ(RunProgram({"bash", "-n", "-c", rest}).exit_code, 0);
    const std::string program = rest.substr(0, rest.find(' '));
    if (program.starts_with("tools/")) {
      EXPECT_EQ(access(Script(program).c_str(), X_OK), 0);
      EXPECT_THAT(RunProgram({Script(program), "--help"}).out, testing::StartsWith("usage: " + program));
    }
  }
  EXPECT_GT(commands, 4);
}

// The lines of a file of results without those that begin with #.
std::vector<std::string> TableLines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream file(ReadFile(path));
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with("#")) lines.push_back(line);
  return lines;
}

// The same columns, as many values in each row, and a heading that says where they are from.
void ExpectResultsLike(const std::string& path, const std::string& example) {
  SCOPED_TRACE(path);
  for (const char* key : {"title", "machine", "date", "commit", "command"})
    EXPECT_THAT(ReadFile(path), testing::ContainsRegex(std::string("# ") + key + ": [^\n]"));
  const std::vector<std::string> table = TableLines(path);
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0], TableLines(example).at(0));
  EXPECT_EQ(std::ranges::count(table[1], ','), std::ranges::count(table[0], ','));
  EXPECT_TRUE(table[1].starts_with("small,1,,"));
}

TEST(ScriptsTest, PagesAreWhatTheResultsSay) {
  const ProgramResult result = RunProgram({Script("tools/results/pages"), "--check"});
  EXPECT_EQ(result.exit_code, 0) << "run tools/results/pages; it would change:\n" << result.out << result.err;
}

TEST(ScriptsTest, BenchNetworksLeavesTablesAndGoesOn) {
  const TemporaryDirectory directory;
  const std::string model = directory.File("small.onnx"), out = directory.File("out");
  ASSERT_EQ(RunProgram({TILESMITH_BINARY, "export", "squeezenet1_1", "--input-shape", "input=1x3x32x32", "-o",
                        model})
                .exit_code,
            0);
  setenv("TILESMITH_BINARY", TILESMITH_BINARY, 1);
  const std::vector<std::string> command{Script("tools/bench-networks"),
                                         "--quick",
                                         "--check",
                                         "--rounds",
                                         "1",
                                         "--time-budget",
                                         "1s",
                                         "--threads",
                                         "1",
                                         "--out",
                                         out,
                                         "--csv",
                                         out,
                                         model};
  const ProgramResult result = RunProgram(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("\n| small | "));
  EXPECT_THAT(result.out, testing::HasSubstr("Geometric means: "));
  EXPECT_THAT(result.out, testing::ContainsRegex("\\| small \\| [0-9.]+e-[0-9]+ of [3-7] plans \\| "));
  EXPECT_EQ(result.out, ReadFile(out + "/tables.t1.md"));
  for (const std::string name : {"plans.csv", "networks.csv", "outputs.csv"})
    ExpectResultsLike(out + "/" + name, TILESMITH_SOURCE_DIR "/tools/results/" + name);
  const ProgramResult again = RunProgram(command);
  EXPECT_EQ(again.out, result.out);
  EXPECT_THAT(again.err, testing::Not(testing::HasSubstr("tune ...")));
  const ProgramResult untuned = RunProgram({Script("tools/bench-networks"), "--quick", "--untuned",
                                            "--threads", "1", "--out", out, "--csv", out, model});
  ASSERT_EQ(untuned.exit_code, 0) << untuned.err;
  EXPECT_THAT(untuned.out, testing::HasSubstr("\n| small | "));
  ExpectResultsLike(out + "/untuned.csv", TILESMITH_SOURCE_DIR "/tools/results/networks.csv");
}

TEST(ScriptsTest, BenchNetworksSetsTypesSideBySideAndGoesOnBehindAFailure) {
  const TemporaryDirectory directory;
  const std::string model = directory.File("small.onnx"), out = directory.File("out");
  const std::string broken = directory.File("broken.onnx");
  WriteFile(broken, "no model");
  ASSERT_EQ(RunProgram({TILESMITH_BINARY, "export", "squeezenet1_1", "--input-shape", "input=1x3x32x32", "-o",
                        model})
                .exit_code,
            0);
  setenv("TILESMITH_BINARY", TILESMITH_BINARY, 1);
  const ProgramResult result =
      RunProgram({Script("tools/bench-networks"), "--types", "--quick", "--rounds", "0", "--time-budget",
                  "1s", "--threads", "1", "--out", out, "--csv", out, broken, model});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("failed: broken: tilesmith tune "));
  EXPECT_THAT(result.out, testing::ContainsRegex("\n\\| small \\| [0-9.]+ \\| "));
  EXPECT_THAT(ReadFile(out + "/types.csv"), testing::HasSubstr("\nsmall,1,,"));
  const ProgramResult bounds =
      RunProgram({Script("tools/bench-networks"), "--bounds", "--quick", "--rounds", "0", "--time-budget",
                  "1s", "--threads", "1", "--out", out, "--csv", out, model});
  EXPECT_EQ(bounds.exit_code, 0) << bounds.err;
  EXPECT_THAT(bounds.out, testing::ContainsRegex("\n\\| small \\| 0.5 int8: [0-9.e-]+ \\| "));
  EXPECT_THAT(ReadFile(out + "/mixtures.csv"), testing::HasSubstr("\nsmall,1,,0.25 int8,"));
  const ProgramResult two =
      RunProgram({Script("tools/bench-networks"), "--types", "--busy", "--out", out, model});
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_THAT(two.err, testing::HasSubstr("--types and --busy are two tables"));
}

// What it sets beside ours comes from PyPI, which is not asked here.
TEST(ScriptsTest, BenchRivalsLeavesATable) {
  if (!std::filesystem::exists(Script("peers/rivals/done")))
    GTEST_SKIP() << "tools/bench-rivals has not fetched what it compares with";
  const TemporaryDirectory directory;
  const std::string model = directory.File("small.onnx"), out = directory.File("out");
  ASSERT_EQ(RunProgram({TILESMITH_BINARY, "export", "squeezenet1_1", "--input-shape", "input=1x3x32x32", "-o",
                        model})
                .exit_code,
            0);
  setenv("TILESMITH_BINARY", TILESMITH_BINARY, 1);
  for (const std::string precision : {"f32", "int8"}) {
    const ProgramResult result =
        RunProgram({Script("tools/bench-rivals"), "--precision", precision, "--for", "1s", "--turns", "1",
                    "--seconds", "0.02", "--threads", "1", "--alone", "--out", out, "--csv", out, model});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, testing::ContainsRegex("\n\\| small.onnx \\| " + precision +
                                                   " \\| - \\| 1 \\| [0-9.]+ \\| "));
    EXPECT_THAT(ReadFile(out + "/rivals.csv"),
                testing::ContainsRegex("\nsmall.onnx," + precision + ",1,,0,1,[^,]*,[0-9.e-]+,[0-9.e-]+,"));
  }
}

}  // namespace
}  // namespace tilesmith
