// What a user gets wrong: one clear line on stderr, and the right exit code.
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

constexpr int kUsage = 2, kBadModel = 3, kNoCandidate = 4, kEnvironment = 7;

class ErrorsTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& contents) {
    WriteFile(directory_.File(name), contents);
    return directory_.File(name);
  }
  std::string Missing(const std::string& name) const { return directory_.File(name); }

 private:
  TemporaryDirectory directory_;
};

TEST_F(ErrorsTest, NoCommandShowsTheOverviewAndFails) {
  const ProgramResult result = Tilesmith({});
  EXPECT_EQ(result.exit_code, kUsage);
  EXPECT_THAT(result.err, testing::HasSubstr("graph-tune"));
}

TEST_F(ErrorsTest, UnknownCommand) {
  const ProgramResult result = Tilesmith({"frobnicate"});
  EXPECT_EQ(result.exit_code, kUsage);
  EXPECT_EQ(Lines(result.err), 1);
  EXPECT_THAT(result.err, testing::HasSubstr("unknown command frobnicate (known: tasks, "));
}

TEST_F(ErrorsTest, SimilarNamesAreOffered) {
  EXPECT_THAT(Tilesmith({"grph-tune"}).err, testing::HasSubstr("did you mean graph-tune?"));
  EXPECT_THAT(Tilesmith({"log", "bset"}).err, testing::HasSubstr("did you mean best?"));
  ExpectRefusal({"run", "resnet51"}, kUsage, "did you mean resnet50?");
  ExpectRefusal({"run", "resnet50", "--profil"}, kUsage,
                "unexpected argument --profil (did you mean --profile?)");
}

TEST_F(ErrorsTest, HelpOfACommandEitherWayAndWithinTheWidth) {
  const ProgramOptions narrow = {.environment = {"COLUMNS=60"}};
  const ProgramResult help = Tilesmith({"help", "bench"}, narrow);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out, Tilesmith({"bench", "--help"}, narrow).out);
  EXPECT_EQ(Tilesmith({"help", "log", "best"}).out, Tilesmith({"log", "best", "--help"}).out);
  std::istringstream lines(help.out.substr(0, help.out.find("\nExamples:")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60u) << line;
  for (const char* heading : {"\nOptions:\n", "\nOutput:\n", "\nModel:\n", "\nMachine:\n"})
    EXPECT_THAT(help.out, testing::HasSubstr(heading));
  EXPECT_THAT(Tilesmith({"--version"}).out, testing::StartsWith("tilesmith "));
  EXPECT_THAT(Tilesmith({"--version"}, {.environment = {"TILESMITH_MAX_ISA=portable"}}).out,
              testing::HasSubstr("instructions: portable, "));
  EXPECT_EQ(Tilesmith({"--version"}, {.environment = {"TILESMITH_MAX_ISA=sse9"}}).exit_code, kUsage);
}

// A wide terminal breaks none of these lines.
TEST_F(ErrorsTest, HelpSaysWhatThePageSays) {
  const ProgramOptions wide = {.environment = {"COLUMNS=110"}};
  const std::string page = ReadFile(TILESMITH_SOURCE_DIR "/tools/README.md");
  const std::string strict = "or, with log verify --strict, than recorded";
  EXPECT_THAT(Tilesmith({"--help"}, wide).out, testing::HasSubstr(strict));
  EXPECT_THAT(page, testing::HasSubstr("or, with `log verify --strict`, than recorded"));
  EXPECT_THAT(Tilesmith({"report", "--help"}, wide).out,
              testing::HasSubstr("graph-tune, optimize, run or a sweep of bench printed with --json"));
  EXPECT_THAT(page, testing::HasSubstr(
                        "`graph-tune`, `optimize`, `run` or a sweep of `bench` printed with `--json`"));
}

TEST_F(ErrorsTest, QuietMeansErrorsOnly) {
  const ProgramResult result =
      Tilesmith({"run", "squeezenet1_1", "--input-shape", "input=1x3x64x64", "--runs", "2", "-q"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const ProgramResult verbose =
      Tilesmith({"-v", "run", "squeezenet1_1", "--input-shape", "input=1x3x64x64", "--runs", "2"});
  EXPECT_THAT(verbose.err, testing::HasSubstr("run 1 of 2\nrun 2 of 2\n"));
  EXPECT_NE(Tilesmith({"run", "resnet51", "-q"}).err, "");
}

TEST_F(ErrorsTest, FilesAreNotReplacedOrMadeSilently) {
  const std::string path = Missing("net.onnx");
  EXPECT_EQ(Tilesmith({"export", "squeezenet1_1", "-o", path}).err, "");
  EXPECT_THAT(Tilesmith({"export", "squeezenet1_1", "-o", path}).err,
              testing::HasSubstr("net.onnx existed and was replaced"));
  ExpectRefusal({"run", "squeezenet1_1", "--output", Missing("out.txt")}, kUsage, "FILE.npz or a directory");
  const char* const both = "is both an input and the output";
  const std::string log = File("log.jsonl", "");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "--log", log, "-o", log}, kUsage, both);
  ExpectRefusal({"optimize", path, "-o", path}, kUsage, both);
  ExpectRefusal({"quantize", path, "-o", path}, kUsage, both);
  ExpectRefusal({"tune", path, "-o", path, "--overwrite"}, kUsage, both);
  ExpectRefusal({"report", log, path, "-o", log}, kUsage, both);
  const char* const two = "is named for two outputs";
  const std::string out = Missing("p");
  ExpectRefusal({"optimize", "squeezenet1_1", "--log", log, "-o", log}, kUsage, two);
  ExpectRefusal({"optimize", path, "-o", out, "--save", out}, kUsage, two);
  ExpectRefusal({"optimize", path, "-o", out, "--log", out, "--save", Missing("s")}, kUsage, two);
  ExpectRefusal({"optimize", path, "-o", out, "--log", log, "--save", log}, kUsage, two);
  ExpectRefusal({"graph-tune", path, "-o", out, "--save", out}, kUsage, two);
  ExpectRefusal({"quantize", path, "-o", out, "--save", out}, kUsage, two);
}

TEST_F(ErrorsTest, FilesOfOtherKindsStay) {
  const std::string notes = File("notes.md", "# Notes\n");
  const std::string stays = "notes.md holds something else than";
  ExpectRefusal({"export", "squeezenet1_1", "-o", notes}, kUsage, stays);
  ExpectRefusal({"optimize", "squeezenet1_1", "-o", notes}, kUsage, stays);
  ExpectRefusal({"optimize", "squeezenet1_1", "-o", Missing("p"), "--log", notes}, kUsage, stays);
  ExpectRefusal({"tune", "squeezenet1_1", "-o", notes, "--overwrite"}, kUsage, stays);
  ExpectRefusal({"run", "squeezenet1_1", "--csv", notes}, kUsage, stays);
  ExpectRefusal({"log", "merge", File("log.jsonl", ""), "-o", notes}, kUsage, stays);
  ExpectRefusal({"quantize", "squeezenet1_1", "-o", notes}, kUsage, stays);
}

TEST_F(ErrorsTest, ALogIsEmptiedWhenNothingElseIsWrong) {
  const std::string text = "{\"config\":{},\"tilesmith\":3}\n", log = File("kept.jsonl", text);
  ExpectRefusal({"tune", "ic8ih8oc8kh1", "-o", log, "--overwrite", "--history", Missing("none")},
                kEnvironment, "cannot read");
  ExpectRefusal({"tune", "ic8ih8oc8kh1", "-o", log, "--overwrite", "--history", log}, kUsage,
                "is both an input and the output");
  EXPECT_EQ(ReadFile(log), text);
}

TEST_F(ErrorsTest, WhatIsMissingIsToldAlike) {
  const std::string missing = "cannot read " + Missing("none");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", Missing("none.onnx")},
        {"run", "squeezenet1_1", "--plan", Missing("none")},
        {"bench", "squeezenet1_1", "--log", Missing("none")},
        {"log", "best", Missing("none")},
        {"quantize", "squeezenet1_1", "-o", Missing("q.onnx"), "--calibrate", Missing("none")}}) {
    ExpectRefusal(arguments, kEnvironment, missing);
  }
  for (const std::string path : {"v2.jsonl", "v2/log"}) {  // they begin as workloads do
    ExpectRefusal({"log", "show", path}, kEnvironment, "cannot read " + path);
    ExpectRefusal({"bench", path}, kUsage, path + " is neither an ONNX file nor a built-in network");
  }
  ExpectRefusal({"run", "--profil"}, kUsage, "unexpected argument --profil (did you mean --profile?)");
  ExpectRefusal({"bench", "--suite", "dens"}, kUsage, "did you mean dense?");
  ExpectRefusal({"tune", "ic8ih8oc8kh1", "-o", Missing("l"), "--forbid", "winogrd"}, kUsage,
                "did you mean winograd?");
  EXPECT_THAT(Tilesmith({"--versio"}).err, testing::HasSubstr("did you mean --version?"));
  EXPECT_THAT(Tilesmith({"foo"}).err, testing::Not(testing::HasSubstr("did you mean")));
}

TEST_F(ErrorsTest, OptionsThatWouldBeIgnored) {
  ExpectRefusal({"bench", "--transforms", "--fail-below", "9"}, kUsage,
                "--fail-below is not for --transforms");
  ExpectRefusal({"bench", "ic8ih8oc8kh1", "--batch", "8"}, kUsage,
                "--batch and --input-shape are for a MODEL");
  ExpectRefusal({"bench", "squeezenet1_1", "--sweep", "threads", "--forbid", "winograd"}, kUsage,
                "--forbid is not for --sweep");
  ExpectRefusal({"bench", "squeezenet1_1", "--csv", Missing("t"), "--save", Missing("t")}, kUsage,
                "t is named for two outputs");
  ExpectRefusal({"optimize", "squeezenet1_1", "-o", Missing("p"), "--time-budget", "x"}, kUsage,
                "--for or --time-budget must be a duration");
  ExpectRefusal({"bench", "squeezenet1_1", "--fail-below", "0"}, kUsage,
                "--fail-below must be above 0, got 0");
  ExpectRefusal({"log", "show", File("any.jsonl", ""), "--line", "1", "--workload", "ic8ih8oc8kh1"}, kUsage,
                "--line says which record");
  ExpectRefusal({"bench", "squeezenet1_1", "--sweep", "threads", "--log", Missing("l")}, kUsage,
                "--log is not for --sweep");
  ExpectRefusal({"bench", "squeezenet1_1", "--duration", "1s", "--fail-below", "2"}, kUsage,
                "--fail-below is not for --sweep");
  ExpectRefusal({"run", "squeezenet1_1", "--warmup", "1s", "--check"}, kUsage, "are about times of streams");
  ExpectRefusal({"cost-model", "--model", Missing("m"), "--objective", "regression"}, kUsage,
                "--objective is for training");
  ExpectRefusal({"quantize", "squeezenet1_1", "-o", Missing("q.onnx"), "--percentile", "99.9"}, kUsage,
                "--percentile is for --method percentile, not minmax");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "--default-schedules", "-o", Missing("p"), "--precision",
                 "int8", "--max-output-error", "0.1"},
                kUsage, "--max-output-error is for --precision bf16 and mixed, not int8");
  const std::string library = File("libonnxruntime.so", "");
  const std::vector<std::string> bench = {"bench", "squeezenet1_1", "--input-shape", "input=1x3x32x32"};
  std::vector<std::string> beside = bench;
  beside.insert(beside.end(), {"--onnxruntime", library});
  const char* const unusable = "libonnxruntime.so cannot be used as ONNX Runtime";
  ExpectRefusal(beside, kEnvironment, unusable);
  ExpectRefusal(bench, kEnvironment, unusable, {.environment = {"TILESMITH_ONNXRUNTIME=" + library}});
}

TEST_F(ErrorsTest, OptionsOfWhatIsNotDone) {
  ExpectRefusal({"bench", "ic64ih14oc64oh14kh3ph1", "--forbid", "direct"}, kUsage, "--forbid is for --log");
  ExpectRefusal({"bench", "squeezenet1_1", "--max-error", "1e-6"}, kUsage, "--max-error is for --log");
  ExpectRefusal({"log", "verify", "l.jsonl", "--threads", "1"}, kUsage, "--threads is for --retarget");
  const std::string net = "squeezenet1_1", conv = "ic8ih8oc8kh1", out = Missing("out");
  ExpectRefusal({"run", net, "--streams", "1", "--runs", "5"}, kUsage, "--runs is not for --streams");
  ExpectRefusal({"run", net, "--percentile", "50", "--runs", "1"}, kUsage, "--runs is not for --percentile");
  ExpectRefusal({"run", net, "--latency-csv", out, "--runs", "2"}, kUsage, "--runs is not for --latency-csv");
  ExpectRefusal({"bench", net, "--sweep", "batch", "--batch", "3"}, kUsage,
                "--batch is not for --sweep batch");
  ExpectRefusal({"bench", net, "--sweep", "streams", "--streams", "2"}, kUsage,
                "--streams is not for --sweep streams");
  ExpectRefusal({"bench", net, "--sweep", "threads", "--time", "5ms"}, kUsage, "--time is not for --sweep");
  ExpectRefusal({"bench", "--transforms", "--time", "5ms"}, kUsage, "--time is not for --transforms");
  ExpectRefusal({"bench", conv, "--network-time", "1s"}, kUsage, "--network-time is for a MODEL");
  ExpectRefusal({"bench", conv, "--onnxruntime", "x.so"}, kUsage, "--onnxruntime is for a MODEL");
  ExpectRefusal({"tune", conv, "-o", out, "--no-fusion"}, kUsage, "--no-fusion is for a MODEL");
  ExpectRefusal({"graph-tune", net, "--default-schedules", "-o", out, "--onnxruntime", "x.so"}, kUsage,
                "--onnxruntime is for --check");
  ExpectRefusal({"explain", net, "conv1", "--default-schedules", "--plans", "5"}, kUsage,
                "--plans is for a summary of all nodes");
  ExpectRefusal({"report", out, out, "-o", out, "--no-explain", "--explain-time", "3s"}, kUsage,
                "--explain-time and --no-explain exclude each other");
}

TEST_F(ErrorsTest, Numbers) {
  const std::string log = Missing("log.jsonl");
  ExpectRefusal({"tune", "resnet18", "-o", log, "--trials", "-3"}, kUsage,
                "--trials must be a whole number from 1 on, got -3");
  ExpectRefusal({"tune", "resnet18", "-o", log, "--trials=-3"}, kUsage,
                "--trials must be a whole number from 1 on, got -3");
  ExpectRefusal({"tune", "resnet18", "-o", log, "--trials", "0"}, kUsage, "got 0");
  ExpectRefusal({"tune", "resnet18", "-o", log, "--trials", "12x"}, kUsage, "got 12x");
  ExpectRefusal({"tune", "resnet18", "-o", log, "--trials", "99999999999999999999"}, kUsage, "--trials");
  ExpectRefusal({"tune", "resnet18", "-o", log, "--trials"}, kUsage, "--trials needs a value");
  ExpectRefusal({"tune", "resnet18", "-o", log, "--time-budget", "8 minutes"}, kUsage,
                "--time-budget or --for must be a duration");
  ExpectRefusal({"tasks", "resnet18", "--batch", "-1"}, kUsage,
                "--batch must be a whole number from 1 on, got -1");
  ExpectRefusal({"bench", "resnet18", "--fail-below", "fast"}, kUsage,
                "--fail-below must be a number, got fast");
  ExpectRefusal({"run", "resnet18", "--threads", "4096"}, kUsage, "--threads must be at most");
  ExpectRefusal({"bench", "squeezenet1_1", "--max-error", "0"}, kUsage, "--max-error must be above 0, got 0");
  ExpectRefusal({"graph-tune", "resnet18", "-o", log, "--rounds", "2147483647"}, kUsage,
                "--rounds must be a whole number from 0 to 1000, got 2147483647");
}

TEST_F(ErrorsTest, NetworksLargerThanTheLimitsAreRefusedAlike) {
  const char* const elements = "has more than 100 elements, the limit set for one (--max-elements)";
  const char* const memory = "the limit for a network is 1 (--max-memory)";
  const std::string model = Missing("squeezenet.onnx");
  ASSERT_EQ(Tilesmith({"export", "squeezenet1_1", "-o", model}).exit_code, 0);
  ExpectRefusal({"tasks", "vgg16", "--max-elements", "100"}, kBadModel, elements);
  ExpectRefusal({"tasks", model, "--max-elements", "100"}, kBadModel, elements);
  ExpectRefusal({"tasks", "vgg16", "--max-memory", "1"}, kBadModel, memory);
  ExpectRefusal({"tasks", model, "--max-memory", "1"}, kBadModel, memory);
  ExpectRefusal({"run", "squeezenet1_1", "--max-memory", "7"}, kBadModel, "the limit is 7 (--max-memory)");
}

TEST_F(ErrorsTest, Options) {
  ExpectRefusal({"tasks"}, kUsage, "MODEL is required");
  ExpectRefusal({"tasks", "resnet18", "--frobnicate"}, kUsage, "unexpected argument --frobnicate");
  ExpectRefusal({"tasks", "resnet18", "resnet34"}, kUsage, "unexpected argument resnet34");
  ExpectRefusal({"tune", "resnet18"}, kUsage, "-o LOG is required");
  ExpectRefusal({"tune", "resnet18", "-o", Missing("l"), "--tuner", "magic"}, kUsage,
                "--tuner must be one of");
  ExpectRefusal({"tune", "resnet18", "-o", Missing("l"), "--resume", "--overwrite"}, kUsage,
                "exclude each other");
  ExpectRefusal({"tasks", "resnet18", "--max-isa", "sse9"}, kUsage, "--max-isa must be one of");
  ExpectRefusal({"tasks", "resnet18"}, kUsage, "sse9", {.environment = {"TILESMITH_MAX_ISA=sse9"}});
  ExpectRefusal({"tasks", "resnet18", "--input-shape", "input=3x"}, kUsage, "--input-shape must be");
  ExpectRefusal({"tasks", "resnet18", "--input-shape", "picture=1x3x64x64"}, kUsage, "input=Nx3xHxW");
  ExpectRefusal({"bench"}, kUsage, "MODEL, a WORKLOAD, or --suite");
}

TEST_F(ErrorsTest, ModelsThatAreNone) {
  ExpectRefusal({"tasks", "resnet5000"}, kUsage, "resnet5000 is neither an ONNX file nor a built-in network");
  ExpectRefusal({"tasks", Missing("missing.onnx")}, kEnvironment, "missing.onnx");
  ExpectRefusal({"tasks", File("empty.onnx", "")}, kBadModel, "empty.onnx");
  ExpectRefusal({"tasks", File("text.onnx", "This is no model.\nIt is a text.\n")}, kBadModel, "text.onnx");
  ExpectRefusal({"run", File("notes.txt", "This is no model either.\n")}, kBadModel, "notes.txt");
  // An IR version and a graph whose length promises 4 KiB that are not there.
  ExpectRefusal({"tasks", File("cut.onnx", std::string("\x08\x08\x3a\x80\x20\x0a\x10garbage", 14))},
                kBadModel, "cut.onnx");
}

TEST_F(ErrorsTest, Workloads) {
  ExpectRefusal({"space", "ic64ih56oc64kh3px1"}, kUsage, "unknown field \"px\"");
  ExpectRefusal({"space", std::string(300, 'a')}, kUsage, "aaa");
  ExpectRefusal({"bench", "ic64ih56oc64kh3ph1+relux"}, kUsage, "relux");
  ExpectRefusal({"tune", "ic64ih56oc64kh99", "-o", Missing("l")}, kUsage, "the kernel does not fit");
  ExpectRefusal({"bench", "--suite", File("suite.txt", "# two\nic8ih8oc8kh1\nic8ih8oc8kz1\n")}, kUsage,
                "suite.txt:3: ");
  ExpectRefusal({"bench", "--suite", File("none.txt", "# none\n")}, kUsage, "none.txt: no workloads");
  ExpectRefusal({"bench", "--suite", Missing("suite")}, kEnvironment, "cannot read");
  const std::string log = File("log.jsonl", R"({"conditions":{}})");
  ExpectRefusal({"bench", "--suite", log}, kUsage, "JSON, as of a tuning log or a plan, not a suite");
  const std::string wide = File("wide.txt", "ic" + std::string(900, 'x') + "\n");
  EXPECT_LT(Tilesmith({"bench", "--suite", wide}).err.size(), 500u);
}

TEST_F(ErrorsTest, Logs) {
  const std::string garbage = File("garbage.jsonl", "garbage\nmore garbage\n");
  const std::string plan = Missing("plan.jsonl");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "--log", garbage, "-o", plan}, kUsage, "garbage.jsonl:1: ");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "--log", Missing("missing.jsonl"), "-o", plan}, kEnvironment,
                "missing.jsonl");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "-o", plan}, kUsage, "--log LOG is required");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "--input-shape", "input=1x3x48x48", "--default-schedules",
                 "--max-weights", "1", "-o", plan, "-q"},
                kNoCandidate, "allowed are 1.0 (--max-weights)");
  ExpectRefusal({"graph-tune", "squeezenet1_1", "--log", File("empty.jsonl", ""), "-o", plan}, kNoCandidate,
                "tilesmith tune squeezenet1_1");
  ExpectRefusal({"tune", "ic8ih8oc8kh1", "-o", garbage, "--resume"}, kUsage,
                "garbage.jsonl holds something else than a tuning log");
  ExpectRefusal({"tune", "ic8ih8oc8kh1", "-o", garbage}, kUsage,
                "give --resume to go on with it, or --overwrite");
  ExpectRefusal({"tune", "ic8ih8oc8kh1", "-o", Missing("no/such/folder/log")}, kEnvironment, "cannot write");
}

TEST_F(ErrorsTest, Plans) {
  const std::vector<std::string> small{"--input-shape", "input=1x3x64x64"};
  const auto with_small = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), small.begin(), small.end());
    return arguments;
  };
  ExpectRefusal(with_small({"run", "squeezenet1_1", "--plan", Missing("p")}), kEnvironment, "cannot read");
  ExpectRefusal(with_small({"run", "squeezenet1_1", "--plan", File("garbage", "garbage\n")}), kUsage,
                "garbage:1: ");
  const std::string plan = Missing("plan.jsonl");
  ASSERT_EQ(Tilesmith(with_small({"graph-tune", "squeezenet1_1", "--default-schedules", "--rounds", "0",
                                  "--no-baselines", "--time", "1ms", "-o", plan}))
                .exit_code,
            0);
  ExpectRefusal({"run", "squeezenet1_1", "--input-shape", "input=1x3x96x96", "--plan", plan}, kUsage,
                "plan.jsonl: ");
  ExpectRefusal({"bench", "resnet18", "--plan", plan}, kUsage, "plan.jsonl: ");
  ExpectRefusal({"bench", "ic8ih8oc8kh1", "--plan", plan}, kUsage, "--plan needs a MODEL");
}

TEST_F(ErrorsTest, InputFiles) {
  const std::vector<std::string> run{"run", "squeezenet1_1", "--input-shape", "input=1x3x64x64", "--input"};
  const auto with = [&](const std::string& input) {
    std::vector<std::string> arguments = run;
    arguments.push_back(input);
    return arguments;
  };
  ExpectRefusal(with("input=picture.png"), kUsage, "--input must be");
  ExpectRefusal(with("input=" + Missing("a.npy")), kEnvironment, "cannot read");
  ExpectRefusal(with("input=" + File("text.npy", "no array")), kUsage, "not a .npy array");
  ExpectRefusal(with(File("text.npz", "no archive")), kUsage, "not a .npz archive");
}

}  // namespace
}  // namespace tilesmith
