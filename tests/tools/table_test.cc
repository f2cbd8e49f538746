// Tables as text of a width.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tools/cli/report.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using testing::Not;

// Bytes of UTF-8 that go on with a character do not count.
size_t Characters(const std::string& line) {
  return static_cast<size_t>(
      std::ranges::count_if(line, [](unsigned char byte) { return (byte & 0xc0) != 0x80; }));
}

void ExpectFits(const std::string& text, size_t width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(Characters(line), width) << text;
}

TEST(TableTest, FitsTheWidthByRank) {
  Table table("rows", "",
              {{"workload", "workload"},
               {"shape", "shape", 5},
               {"empty", "empty"},
               {"p10", "p10", 3},
               {"ratio", "ratio", 0},
               {"ms", "ms"},
               {"last", "last"}});
  table.AddRow({TextCell("a long name of a row"), TextCell("64x56x56"), TextCell(""), RatioCell(1.1),
                RatioCell(1.25), MillisecondsCell(0.001), CountCell(7)});
  const auto header = [&](size_t width) {
    const std::string text = table.ToText(width);
    if (width > 0) ExpectFits(text, width);
    std::string squeezed;
    for (char c : text.substr(0, text.find('\n')))
      if (c != ' ' || !squeezed.ends_with(' ')) squeezed += c;
    return squeezed;
  };
  EXPECT_EQ(header(0), "workload shape p10 ratio ms last");
  EXPECT_EQ(header(80), "workload shape p10 ratio ms last");
  EXPECT_EQ(header(50), "workload p10 ratio ms last");
  EXPECT_EQ(header(40), "workload ratio ms last");
  EXPECT_EQ(header(35), "workload ratio ms");
  EXPECT_EQ(header(30), "workload ratio");
  EXPECT_EQ(header(22), "workload ratio") << "the name is cut";
}

TEST(TableTest, WordsOfRankZeroAreWrapped) {
  Table table("knobs", "", {{"knob", "knob"}, {"default", "default"}, {"help", "what it is", 0}});
  table.AddRow({TextCell("oc_block"), CountCell(16), TextCell("x of the output layout; 0 is NHWC")});
  table.AddRow({TextCell("rows"), CountCell(7), TextCell("output rows per task")});
  EXPECT_EQ(table.ToText(46),
            "knob      default  what it is\n"
            "oc_block       16  x of the output layout; 0\n"
            "                   is NHWC\n"
            "rows            7  output rows per task\n");
  EXPECT_EQ(table.ToText(80),
            "knob      default  what it is\n"
            "oc_block       16  x of the output layout; 0 is NHWC\n"
            "rows            7  output rows per task\n");
}

TEST(TableTest, AnOverlongNameIsCutBeforeTimesAreLeftOut) {
  Table table("rows", "", {{"workload", "workload"}, {"seconds", "ms"}, {"config", "config", 4}});
  const std::string name = "g672mb1ic672ih14oc672oh14kh5ph2+bias>mb1ic672ih14oc160oh14kh1+bias+sum";
  table.AddRow({TextCell(name), MillisecondsCell(0.001), TextCell("ic_block=16 oc_block=16 rows=7")});
  const std::string text = table.ToText(60);
  ExpectFits(text, 60);
  EXPECT_THAT(text, HasSubstr("1.000"));
  EXPECT_THAT(text, Not(HasSubstr("ic_block")));
}

TEST(TableTest, WhatNobodyKnowsIsAlignedAsTheNumberItWouldBe) {
  Table table("rows", "", {{"name", "name"}, {"seconds", "measured ms"}, {"ok", "ok"}});
  table.AddRow({TextCell("a"), NoCell(), TextCell("yes")});
  EXPECT_EQ(table.ToText(),
            "name  measured ms  ok\n"
            "a               -  yes\n");
}

TEST(TableTest, ColumnsThatWrapGiveWayOnceMoreWhereNothingElseCan) {
  Table table("checks", "", {{"check", "check"}, {"value", "value", 0}, {"advice", "advice", 0}});
  table.AddRow({TextCell("placement"), TextCell("a value of several words that is wrapped as well"),
                TextCell("advice that is longer than a line of the table is wide")});
  ExpectFits(table.ToText(60), 60);
  ExpectFits(table.ToText(44), 44);
}

TEST(TableTest, NothingHasNoMinus) {
  EXPECT_EQ(MillisecondsCell(-1e-9).text, "0.0000");
  EXPECT_EQ(MillisecondsCell(-0.0125).text, "-12.50");
  EXPECT_EQ(ChangeCell(-0.0001).text, "0.0%");
  EXPECT_EQ(ChangeCell(-0.0126).text, "-1.3%");
  EXPECT_EQ(ChangeCell(0.5).text, "+50.0%");
}

TEST(TableTest, SmallConvolutionsHaveGflop) {
  const std::pair<double, const char*> sizes[] = {
      {0, "0.000"}, {2.5e4, "0.0000250"}, {4.61e5, "0.000461"}, {2e8, "0.200"}, {3.45678e9, "3.457"}};
  for (const auto& [flops, text] : sizes) EXPECT_EQ(GflopCell(flops).text, text);
}

TEST(TableTest, SmallSizesAreNotZero) {
  const std::pair<int64_t, const char*> sizes[] = {
      {0, "0.0"}, {100, "0.0001"}, {12 << 10, "0.012"}, {512 << 10, "0.50"}, {5 << 20, "5.0"}};
  for (const auto& [bytes, text] : sizes) EXPECT_EQ(MebibytesCell(bytes).text, text);
}

TEST(ReportTest, TablesWithoutRowsAreForProgramsOnly) {
  Report report;
  report.Fact("records", "records", CountCell(0));
  report.AddTable({"rows", "Each row:", {{"name", "name"}}});
  EXPECT_EQ(report.ToText(), "records  0\n");
  EXPECT_EQ(report.ToJson(), "{\n  \"records\": 0,\n  \"rows\": []\n}\n");
}

TEST(ReportTest, NotesAreWrapped) {
  Report report;
  report.Note("Their times are another machine's: log verify --retarget measures them on this one.");
  report.Note("\nfor (row = 0; row < 8; ++row)  # laid out by itself, as loops are, and left so\n  Conv();");
  EXPECT_EQ(report.ToText(40),
            "Their times are another machine's: log\n"
            "verify --retarget measures them on this\n"
            "one.\n"
            "\nfor (row = 0; row < 8; ++row)  # laid out by itself, as loops are, and left so\n  Conv();\n");
}

TEST(ReportTest, TablesAreOneLineApart) {
  Report report;
  for (const char* key : {"first", "second"}) {
    Table& table = report.AddTable({key, "", {{"name", "name"}, {"count", "count"}}});
    table.AddRow({TextCell(key), CountCell(1)});
  }
  report.Fact("failures", "failures", CountsCell({}));
  EXPECT_EQ(report.ToText(),
            "name   count\n"
            "first      1\n"
            "\n"
            "name    count\n"
            "second      1\n"
            "\n"
            "failures  -\n");
}

}  // namespace
}  // namespace tilesmith
