// Which files a command may replace: a mistaken name never costs a file of another kind.
#include "tools/cli/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refusal.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

struct Contents {
  OutputFormat format;
  std::string text;
};
const Contents kContents[] = {
    {OutputFormat::kLog, "{\"config\":{},\"tilesmith\":3}\n"},
    {OutputFormat::kPlan, "{\"network\":\"a\",\"tilesmith_plan\":1}\n{\"node\":\"b\"}\n"},
    {OutputFormat::kCostModel, "{\"checksum\":\"0\",\"feature_version\":1}"},
    {OutputFormat::kMeasuredSpace, "{\"knobs\":[],\"tilesmith_space\":1}\n"},
    {OutputFormat::kAutoTvmLog, "{\"input\":[],\"config\":{},\"result\":[]}\n"},
    {OutputFormat::kJson, "{\n  \"network\": \"a\"\n}\n"},
    {OutputFormat::kCsv, "# title: a\n# machine: b\nname,seconds\nc,1\n"},
    {OutputFormat::kPage, "<!DOCTYPE html>\n<html></html>\n"},
    {OutputFormat::kNpz, std::string("PK\x03\x04", 4)},
    {OutputFormat::kOnnx, std::string("\x08\x07\x12\x00", 4)},
};

class OutputFileTest : public testing::Test {
 protected:
  std::string File(const std::string& text) {
    WriteFile(directory_.File("file"), text);
    return directory_.File("file");
  }
  TemporaryDirectory directory_;
};

TEST_F(OutputFileTest, OnlyTheSameFormatIsReplaced) {
  for (const Contents& old : kContents) {
    const std::string path = File(old.text);
    for (const Contents& wanted : kContents) {
      if (wanted.format == old.format) {
        RequireReplaceable(path, wanted.format);
        continue;
      }
      EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { RequireReplaceable(path, wanted.format); }),
                  testing::HasSubstr("file holds something else than"))
          << old.text << " as " << static_cast<int>(wanted.format);
    }
  }
}

TEST_F(OutputFileTest, TextIsNeverReplacedAndNothingAlways) {
  for (const Contents& wanted : kContents) {
    EXPECT_THAT(Refusal(ErrorCode::kUsage,
                        [&] { RequireReplaceable(File("# Notes\n\nNot to be lost.\n"), wanted.format); }),
                testing::HasSubstr("stays as it is"));
    RequireReplaceable(File(""), wanted.format);
    RequireReplaceable(directory_.File("missing"), wanted.format);
    RequireReplaceable("/dev/null", wanted.format);
    RequireFormat("", wanted.format);
  }
}

TEST_F(OutputFileTest, ADamagedLineMayHaveBeenOfAnyLines) {
  const std::string path = File("{\"config\":{\"block\"");
  RequireReplaceable(path, OutputFormat::kLog);
  RequireReplaceable(path, OutputFormat::kPlan);
  EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { RequireReplaceable(path, OutputFormat::kOnnx); }),
              testing::HasSubstr("an ONNX file"));
}

TEST_F(OutputFileTest, TablesWithoutAHeadAndBlankLinesBefore) {
  RequireReplaceable(File("step,seconds\n"), OutputFormat::kCsv);
  RequireReplaceable(File("\n\n[1,\n2]\n"), OutputFormat::kJson);
  EXPECT_THAT(
      Refusal(ErrorCode::kUsage, [&] { RequireReplaceable(File("# only, comments"), OutputFormat::kCsv); }),
      testing::HasSubstr("a table in CSV"));
}

}  // namespace
}  // namespace tilesmith
