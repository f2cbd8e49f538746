// Streams that are closed, full, or read by nobody: exit codes, and what is kept.
#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

constexpr int kUsage = 2, kEnvironment = 7, kClosed = -1;
const std::string kTinyConv = "mb1ic16ih8oc16oh8kh3ph1";

class StreamsTest : public testing::Test {
 protected:
  StreamsTest() : full_(open("/dev/full", O_WRONLY | O_CLOEXEC)) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    unread_ = ends[1];
  }
  ~StreamsTest() override {
    close(full_);
    close(unread_);
  }

  std::vector<int> Unwritable() const { return {kClosed, full_, unread_}; }

  // Every line of the log is a record, and there are some.
  static void ExpectOnlyRecords(const std::string& log) {
    std::istringstream lines(ReadFile(log));
    int records = 0;
    for (std::string line; std::getline(lines, line); ++records) {
      EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    }
    EXPECT_GE(records, 3);
  }

  int full_ = -1, unread_ = -1;
  TemporaryDirectory directory_;
};

TEST_F(StreamsTest, ResultsThatCannotBeWrittenAreAnError) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"tasks", "squeezenet1_1"},
                                                    {"tasks", "squeezenet1_1", "--json"},
                                                    {"--help"},
                                                    {"--version"},
                                                    {"tasks", "--help"}}) {
    SCOPED_TRACE(arguments[0]);
    const ProgramResult full = Tilesmith(arguments, {.descriptors = {{1, full_}}});
    EXPECT_EQ(full.exit_code, kEnvironment);
    EXPECT_EQ(full.err, "tilesmith: cannot write results to stdout: No space left on device\n");
    const ProgramResult closed = Tilesmith(arguments, {.descriptors = {{1, kClosed}}});
    EXPECT_EQ(closed.exit_code, kEnvironment);
    EXPECT_EQ(closed.err, "tilesmith: cannot write results to stdout: Bad file descriptor\n");
    // Who closed the pipe, such as head, has what it wanted.
    const ProgramResult unread = Tilesmith(arguments, {.descriptors = {{1, unread_}}});
    EXPECT_EQ(unread.exit_code, kEnvironment);
    EXPECT_EQ(unread.err, "");
  }
}

TEST_F(StreamsTest, WithoutStderrExitCodesAndResultsAreTheSame) {
  const std::string expected = Tilesmith({"tasks", "squeezenet1_1"}).out;
  for (const int err : Unwritable()) {
    const ProgramResult result = Tilesmith({"tasks", "squeezenet1_1"}, {.descriptors = {{2, err}}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, expected);
    EXPECT_EQ(Tilesmith({"tasks", "resnet5000"}, {.descriptors = {{2, err}}}).exit_code, kUsage);
    EXPECT_EQ(Tilesmith({}, {.descriptors = {{2, err}}}).exit_code, kUsage);
    EXPECT_EQ(Tilesmith({"frobnicate"}, {.descriptors = {{1, err}, {2, err}}}).exit_code, kUsage);
  }
}

TEST_F(StreamsTest, TuningKeepsItsRecordsAndNothingElseInTheLog) {
  const std::string log = directory_.File("log.jsonl");
  const auto tune = [&](const std::map<int, int>& descriptors) {
    const ProgramResult result = Tilesmith({"tune", kTinyConv, "-o", log, "--trials", "3", "--overwrite"},
                                           {.descriptors = descriptors});
    ExpectOnlyRecords(log);
    return result.exit_code;
  };
  EXPECT_EQ(tune({{0, kClosed}, {1, kClosed}, {2, kClosed}}), kEnvironment);
  EXPECT_EQ(tune({{1, kClosed}}), kEnvironment);
  EXPECT_EQ(tune({{1, full_}, {2, full_}}), kEnvironment);
  for (const int err : Unwritable()) EXPECT_EQ(tune({{2, err}}), 0);
}

TEST_F(StreamsTest, GraphTuningWritesItsPlan) {
  const auto tune = [&](const std::string& plan, const std::map<int, int>& descriptors) {
    return Tilesmith({"graph-tune", "squeezenet1_1", "--input-shape", "input=1x3x48x48",
                      "--default-schedules", "--rounds", "0", "--no-baselines", "--time", "1ms", "-o", plan},
                     {.descriptors = descriptors})
        .exit_code;
  };
  EXPECT_EQ(tune(directory_.File("full"), {{1, full_}, {2, full_}}), kEnvironment);
  EXPECT_EQ(tune(directory_.File("unread"), {{2, unread_}}), 0);
  for (const char* plan : {"full", "unread"}) EXPECT_GT(Lines(ReadFile(directory_.File(plan))), 10) << plan;
}

// The other argument that is wrong would be noticed first if the files were looked at when the work is done.
TEST_F(StreamsTest, FilesThatCannotBeWrittenAreNoticedBeforeTheWork) {
  const std::string nowhere = directory_.File("no/such/folder/file"), wrong = "resnet5000";
  const std::string existing = directory_.File("existing");
  WriteFile(existing, "contents");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"graph-tune", wrong, "--default-schedules", "-o"},
                                             {"run", wrong, "--csv"},
                                             {"run", wrong, "--trace"},
                                             {"bench", wrong, "--csv"},
                                             {"export", wrong, "-o"},
                                             {"measure-space", wrong, "-o"},
                                             {"simulate", wrong, "--csv"},
                                             {"simulate", wrong, "--summary"},
                                             {"cost-model", "--log", wrong, "-o"}}) {
    std::vector<std::string> with = arguments;
    with.push_back(nowhere);
    ExpectRefusal(with, kEnvironment, "cannot write " + nowhere);
    with.back() = existing;
    EXPECT_NE(Tilesmith(with).exit_code, 0);
    EXPECT_EQ(ReadFile(existing), "contents") << arguments[0];
  }
  ExpectRefusal({"run", wrong, "--output", nowhere + ".npz"}, kEnvironment, "cannot write " + nowhere);
  for (const char* option : {"--output", "--dump-code"})
    ExpectRefusal({"run", wrong, option, existing}, kEnvironment, existing);
}

TEST_F(StreamsTest, NothingOthersWroteReachesTheTerminal) {
  const std::string evil = "\033]0;owned\007";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"tasks", evil}, {evil}, {"log", evil}, {"space", evil}, {"tasks", "resnet18", evil}}) {
    const ProgramResult result = Tilesmith(arguments);
    EXPECT_EQ(result.exit_code, kUsage);
    EXPECT_THAT(result.err, testing::HasSubstr("\\u001b]0;owned\\u0007"));
    EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("\033")));
  }
}

TEST_F(StreamsTest, NamesInModelsAreShownAndStayWhatTheyAreInJson) {
  const std::string path = directory_.File("model.onnx"), size = "input=1x3x48x48";
  ASSERT_EQ(Tilesmith({"export", "squeezenet1_1", "--input-shape", size, "-o", path}).exit_code, 0);
  std::string model = ReadFile(path);
  const std::string name = "avgpool", evil = "\033[1mavg";
  ASSERT_NE(model.find(name), std::string::npos);
  for (size_t at = 0; (at = model.find(name, at)) != std::string::npos;) model.replace(at, name.size(), evil);
  WriteFile(path, model);
  const ProgramResult text = Tilesmith({"run", path, "--runs", "1", "--profile"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, testing::HasSubstr("\\u001b[1mavg"));
  EXPECT_THAT(text.out, testing::Not(testing::HasSubstr("\033")));
  const ProgramResult json = Tilesmith({"run", path, "--runs", "1", "--profile", "--json"});
  EXPECT_THAT(nlohmann::json::parse(json.out).dump(), testing::HasSubstr("\\u001b[1mavg"));
}

}  // namespace
}  // namespace tilesmith
