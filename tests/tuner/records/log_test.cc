#include "tuner/records/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "layouts/base/error.h"
#include "tests/support/temporary_files.h"
#include "tests/tuner/support/sample_records.h"
#include "tuner/records/log_scan.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

class LogTest : public ::testing::Test {
 protected:
  void Remove() { std::filesystem::remove(path_); }
  void Write(const std::string& text) { std::ofstream(path_, std::ios::app | std::ios::binary) << text; }
  std::string Text() {
    std::stringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.File("log.jsonl");
};

TEST_F(LogTest, AppendsOneLineARecord) {
  LogWriter(path_).Append(SampleRecord(0.5));
  const std::string first = Text();
  EXPECT_EQ(first.back(), '\n');
  LogWriter writer(path_);
  writer.Append(SampleRecord(0.25));
  EXPECT_EQ(Text().substr(0, first.size()), first) << "append-only";
  const LogContents contents = ReadLog(path_);
  EXPECT_TRUE(contents.problems.empty());
  ASSERT_EQ(contents.records.size(), 2u);
  EXPECT_EQ(contents.records[0].seconds, 0.5);
  EXPECT_EQ(contents.records[1].seconds, 0.25);
}

TEST_F(LogTest, ATornLineCostsThatLine) {
  LogWriter(path_).Append(SampleRecord(0.5));
  const std::string line = Text();
  Write(line.substr(0, line.size() / 2));  // as after kill -9 in the middle of a write
  LogWriter(path_).Append(SampleRecord(0.25));
  Write("\n\r\n");
  const LogContents contents = ReadLog(path_);
  ASSERT_EQ(contents.records.size(), 2u);
  EXPECT_EQ(contents.records[1].seconds, 0.25);
  ASSERT_EQ(contents.problems.size(), 1u);
  EXPECT_EQ(contents.problems[0].line, 2);
  EXPECT_THAT(contents.problems[0].message, HasSubstr("torn"));
}

TEST_F(LogTest, ForeignLinesAreReportedByNumber) {
  Write("{\"tilesmith\":99}\n{\"i\":[\"llvm\",1]}\n");
  LogWriter(path_).Append(SampleRecord());
  Write(std::string("\0\xff\xfe garbage", 11) + "\n[1,2]\n\"text\"\n");
  const LogContents contents = ReadLog(path_);
  EXPECT_EQ(contents.records.size(), 1u);
  ASSERT_EQ(contents.problems.size(), 5u);
  EXPECT_EQ(contents.problems[0].line, 1);
  EXPECT_THAT(contents.problems[0].message, HasSubstr("record format 99"));
  EXPECT_THAT(contents.problems[1].message, HasSubstr("\"tilesmith\" is missing"));
  EXPECT_EQ(contents.problems[2].line, 4);
  EXPECT_THAT(contents.problems[2].message, HasSubstr("not JSON"));
  EXPECT_EQ(contents.problems[4].line, 6);
}

TEST_F(LogTest, AGarbageFileHasNoRecordsOnlyProblems) {
  for (int i = 0; i < 100; ++i)
    Write(
        "\x7f"
        "ELF\x02 binary\n");
  const LogContents contents = ReadLog(path_);
  EXPECT_TRUE(contents.records.empty());
  EXPECT_EQ(contents.problems.size(), 100u);
  std::string many;
  for (int i = 0; i < 40000; ++i) many += "x\n";
  Write(many);
  int64_t lines = 0;
  ScanLog(path_, [&](const LogLine& line) { EXPECT_EQ(line.number, ++lines); });
  EXPECT_EQ(lines, 40100);
  try {
    ReadLog(path_);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), testing::HasSubstr("not a tuning log: 1000 lines and no record"));
  }
  Remove();
  Write("");
  EXPECT_TRUE(ReadLog(path_).problems.empty());
}

TEST_F(LogTest, ALineLongerThanAnyRecordCostsThatLine) {
  constexpr size_t kTooLong = size_t{40} << 20;
  LogWriter(path_).Append(SampleRecord(0.5));
  const std::string record = Text();
  Write("{\"a\": \"" + std::string(kTooLong, 'x') + "\"}\n" + record + record);
  Write(std::string(kTooLong, '[') + "\n" + record + std::string(kTooLong, 'y'));
  const LogContents contents = ReadLog(path_);
  EXPECT_EQ(contents.records.size(), 4u);
  ASSERT_EQ(contents.problems.size(), 3u);
  EXPECT_EQ(contents.problems[0].line, 2);
  EXPECT_EQ(contents.problems[1].line, 5);
  EXPECT_EQ(contents.problems[2].line, 7);
  for (const LogProblem& problem : contents.problems) EXPECT_LT(problem.message.size(), 1000u);
}

TEST_F(LogTest, ALineThatNeverEndsIsRefused) {
  if (!std::filesystem::exists("/dev/zero")) GTEST_SKIP() << "no /dev/zero to stand for an endless line";
  try {
    ReadLog("/dev/zero");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("/dev/zero: not a tuning log"));
  }
}

TEST_F(LogTest, ReasonsAreShortWhateverTheyQuote) {
  Write(R"({"tilesmith":1,"target":{"cpu":"c","isa":")" + std::string(100'000, 'x') + "\"}}\n");
  const LogContents contents = ReadLog(path_);
  ASSERT_EQ(contents.problems.size(), 1u);
  EXPECT_LT(contents.problems[0].message.size(), 1000u);
}

TEST_F(LogTest, ConcurrentWritersDoNotInterleave) {
  constexpr int kWriters = 4;
  constexpr int kRecords = 100;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([this, w] {
      LogWriter writer(path_);
      Record record = SampleRecord();
      record.seed = w;
      record.detail = std::string(5000 * (w + 1), 'x');  // beyond what a pipe or a page writes at once
      for (int i = 0; i < kRecords; ++i) writer.Append(record);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const LogContents contents = ReadLog(path_);
  EXPECT_TRUE(contents.problems.empty());
  std::map<uint64_t, int> by_writer;
  for (const Record& record : contents.records) ++by_writer[record.seed];
  EXPECT_EQ(by_writer.size(), static_cast<size_t>(kWriters));
  for (const auto& [writer, count] : by_writer) EXPECT_EQ(count, kRecords) << writer;
}

TEST_F(LogTest, ConcurrentProcessesDoNotInterleave) {
  constexpr int kProcesses = 4;
  constexpr int kRecords = 100;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Record record = SampleRecord();
      record.seed = p;
      record.detail = std::string(3000 * (p + 1), 'x');
      try {
        LogWriter writer(path_);
        for (int i = 0; i < kRecords; ++i) writer.Append(record);
      } catch (const std::exception&) {
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const LogContents contents = ReadLog(path_);
  EXPECT_TRUE(contents.problems.empty());
  std::map<uint64_t, int> by_process;
  for (const Record& record : contents.records) ++by_process[record.seed];
  EXPECT_EQ(by_process.size(), static_cast<size_t>(kProcesses));
  for (const auto& [process, count] : by_process) EXPECT_EQ(count, kRecords) << process;
}

// Several blocks, and lines longer than one.
TEST_F(LogTest, LinesKeepTheirOrderAndNumbersInLongLogs) {
  Record record = SampleRecord();
  record.detail = std::string(6 << 20, 'x');
  LogWriter(path_).Append(record);
  const std::string long_line = Text();
  Record small = SampleRecord();
  small.detail = std::string(2000, 'x');
  std::string text;
  constexpr int kRecords = 6000;
  for (int i = 1; i <= kRecords; ++i) {
    small.seed = i;
    if (i % 1000 == 0) text += "\ngarbage\n" + (i == 3000 ? long_line : "");
    text += RecordToJson(small).dump() + "\n";
  }
  Write(text);
  std::vector<int64_t> problems;
  uint64_t seen = 0;
  int64_t records = 0;
  ScanLog(path_, [&](LogLine& line) {
    if (!line.problem.empty()) return problems.push_back(line.number);
    ++records;
    if (line.record.detail.size() > 2000) return;
    EXPECT_EQ(line.record.seed, ++seen);
    EXPECT_TRUE(line.text.starts_with("{") && line.text.ends_with("}"));
  });
  EXPECT_EQ(records, kRecords + 2);
  // One line at the front; before record 1000 k an empty line and the garbage, before 3000 a long one too.
  EXPECT_EQ(problems, (std::vector<int64_t>{1002, 2004, 3006, 4009, 5011, 6013}));
}

TEST_F(LogTest, ARemovedFileIsCreatedAgain) {
  LogWriter writer(path_);
  writer.Append(SampleRecord(0.5));
  Remove();
  writer.Append(SampleRecord(0.25));
  writer.Append(SampleRecord(0.125));
  EXPECT_EQ(writer.times_lost(), 1);
  const LogContents contents = ReadLog(path_);
  ASSERT_EQ(contents.records.size(), 2u) << "nothing is lost from then on";
  EXPECT_EQ(contents.records[0].seconds, 0.25);
}

TEST_F(LogTest, AReplacedFileIsFollowed) {
  LogWriter writer(path_);
  writer.Append(SampleRecord(0.5));
  const std::string other = path_ + ".other";
  std::ofstream(other) << "";
  std::filesystem::rename(other, path_);
  writer.Append(SampleRecord(0.25));
  EXPECT_EQ(writer.times_lost(), 1);
  EXPECT_EQ(ReadLog(path_).records.size(), 1u);
}

TEST_F(LogTest, ALogIsBegunAfreshByItsFirstRecord) {
  LogWriter(path_).Append(SampleRecord(0.5));
  const std::string before = Text();
  { const LogWriter refused(path_, true); }
  EXPECT_EQ(Text(), before);
  LogWriter writer(path_, true);
  writer.Append(SampleRecord(0.25));
  writer.Append(SampleRecord(0.125));
  const LogContents contents = ReadLog(path_);
  ASSERT_EQ(contents.records.size(), 2u);
  EXPECT_EQ(contents.records[0].seconds, 0.25);
  LogWriter("/dev/null", true).Append(SampleRecord());
}

TEST_F(LogTest, WhenItCannotBeCreatedAgainTheErrorSaysSoAndItIsTriedAgain) {
  const std::string folder = path_ + ".folder";
  std::filesystem::create_directory(folder);
  LogWriter writer(folder + "/log.jsonl");
  std::filesystem::remove_all(folder);
  EXPECT_THROW(writer.Append(SampleRecord()), Error);
  std::filesystem::create_directory(folder);
  writer.Append(SampleRecord());
  EXPECT_EQ(ReadLog(writer.path()).records.size(), 1u);
  std::filesystem::remove_all(folder);
}

// A limit on the size of files stands for a full disk.
TEST_F(LogTest, AFullDiskTearsNothing) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  LogWriter writer(path_);
  writer.Append(SampleRecord(0.5));
  const std::string text = Text();
  rlimit limit = before;
  limit.rlim_cur = text.size() + 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(writer.Append(SampleRecord(0.25)), Error);
  EXPECT_EQ(Text(), text);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  writer.Append(SampleRecord(0.125));
  EXPECT_TRUE(Text().starts_with(text));
  EXPECT_EQ(ReadLog(path_).records.size(), 2u);
}

TEST_F(LogTest, EnvironmentErrorsNameThePath) {
  const auto why = [](auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(why([] { ReadLog("/nonexistent/a.jsonl"); }), HasSubstr("/nonexistent/a.jsonl"));
  EXPECT_THAT(why([] { LogWriter("/nonexistent/a.jsonl"); }), HasSubstr("/nonexistent/a.jsonl"));
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full to stand for a full disk";
  EXPECT_THAT(why([] { LogWriter("/dev/full").Append(SampleRecord()); }), HasSubstr("No space left"));
}

}  // namespace
}  // namespace tilesmith
