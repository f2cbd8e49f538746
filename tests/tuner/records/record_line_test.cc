#include "tuner/records/record_line.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tuner/support/random_records.h"

namespace tilesmith {
namespace {

std::string LineOf(const Record& record) {
  return RecordToJson(record).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The reader gives what the general parser gives, problem or record.
void ExpectSame(RecordLineReader& reader, const std::string& line) {
  Record expected, got;
  const std::string problem = ParseRecordLine(line, expected);
  ASSERT_EQ(reader.Read(line, got), problem) << line;
  if (problem.empty()) {
    ASSERT_EQ(LineOf(got), LineOf(expected)) << line;
    ASSERT_EQ(got.workload, expected.workload) << line;
    ASSERT_EQ(got.config, expected.config) << line;
  }
}

std::string Mangled(std::string line, TestRandom& random) {
  static const std::vector<std::string_view> kPieces = {
      "\"",    ",",          "{",    "}",    "[",    "]",   ":",
      " ",     "0",          "00",   "-",    ".",    "1e",  "e5",
      "\\",    "\\u0041",    "null", "true", "\x80", "1.5", "99999999999999999999",
      "1e999", "\"seed\":1,"};
  for (int64_t i = random.Integer(1, 2); i > 0 && !line.empty(); --i) {
    const auto at = static_cast<size_t>(random.Integer(0, static_cast<int64_t>(line.size()) - 1));
    const auto length = static_cast<size_t>(random.Integer(0, 4));
    switch (random.Integer(0, 4)) {
      case 0:
        line.erase(at, length);
        break;
      case 1:
        line.insert(at, random.Pick(kPieces));
        break;
      case 2:
        line[at] = static_cast<char>(random.Integer(0, 255));
        break;
      case 3:
        line.resize(at);  // torn
        break;
      default:  // a digit for a digit keeps most lines valid
        if (line[at] >= '0' && line[at] <= '9') line[at] = static_cast<char>('0' + random.Integer(0, 9));
    }
  }
  return line;
}

TEST(RecordLine, OfALogWriterIsReadTheFastWay) {
  TestRandom random(1);
  RecordLineReader reader;
  int fast = 0;
  for (int i = 0; i < 2000; ++i) {
    const Record record = RandomRecord(random);
    Record got;
    const std::string line = LineOf(record);
    if (!reader.ReadCanonical(line, got)) {
      EXPECT_NE(line.find('\\'), std::string::npos) << "no escapes, yet the slow way: " << line;
      continue;
    }
    ++fast;
    EXPECT_EQ(LineOf(got), line);
    EXPECT_EQ(got.sample_seconds, record.sample_seconds) << "bit by bit";
  }
  EXPECT_GT(fast, 1500);
}

TEST(RecordLine, IsReadTheSameWayWhateverItIs) {
  TestRandom random(2);
  RecordLineReader reader;
  for (int i = 0; i < 30000; ++i) {
    const std::string line = LineOf(RandomRecord(random));
    ExpectSame(reader, i % 10 == 0 ? line : Mangled(line, random));
    if (HasFatalFailure()) return;
  }
}

TEST(RecordLine, NestsOnlySoDeep) {
  Record record;
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string line;
    for (int i = 0; i < 300'000; ++i) line += open;
    EXPECT_NE(RecordLineReader().Read(line, record), "");
    EXPECT_NE(RecordLineReader().Read(R"({"tilesmith":1,"target":)" + line, record), "");
  }
  const std::string line = LineOf(SampleRecord());
  const std::string quoted = R"({"more":")" + std::string(1000, '[') + R"(\"[",)" + line.substr(1);
  EXPECT_EQ(RecordLineReader().Read(quoted, record), "") << "brackets in a text do not nest";
}

TEST(RecordLine, OfOtherOriginsIsReadTheGeneralWay) {
  RecordLineReader reader;
  const std::string line = LineOf(SampleRecord(0.5));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = line;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  const std::vector<std::string> lines = {line + "\r",
                                          line + " ",
                                          " " + line,
                                          line + "}",
                                          "{}",
                                          "",
                                          with("\"seconds\":0.5", "\"seconds\":5e-1"),
                                          with("\"seconds\":0.5", "\"seconds\":0"),
                                          with("\"seconds\":0.5", "\"seconds\":-0.5"),
                                          with("\"seconds\":0.5", "\"seconds\":1e-400"),
                                          with("\"seconds\":0.5", "\"seconds\":01.5"),
                                          with("\"seconds\":0.5", "\"seconds\":1."),
                                          with("\"threads\":2", "\"threads\":2.0"),
                                          with("\"threads\":2", "\"threads\":99999999999"),
                                          with("\"rows\":2", "\"rows\":-2"),
                                          with("\"rows\":2", "\"ic_block\":2"),
                                          with("\"seed\":7", "\"seed\":18446744073709551615"),
                                          with("\"seed\":7", "\"seed\":18446744073709551616"),
                                          with("\"tilesmith\":1", "\"tilesmith\":2"),
                                          with("NCHW16c", "CHWN"),
                                          with("avx512", "sse2"),
                                          with("\"status\":\"ok\"", "\"status\":\"fine\""),
                                          with("ic64ih56", "ic64ih"),
                                          with("\"workload\"", "\"new\":1,\"workload\""),
                                          with("[0.5,", "[null,"),
                                          with("[0.5,0.625,0.5]", "[]")};
  for (const std::string& one : lines) ExpectSame(reader, one);
}

}  // namespace
}  // namespace tilesmith
