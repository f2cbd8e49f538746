#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "layouts/base/error.h"
#include "tests/support/temporary_files.h"
#include "tests/tuner/support/sample_records.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

namespace fs = std::filesystem;

TEST(ReplaceLog, ReplacesTheWholeFileOrNothing) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("log.jsonl");
  const std::vector<std::string_view> lines = {"one", "two"};
  ReplaceLog(path, lines);
  EXPECT_EQ(ReadFile(path), "one\ntwo\n");
  const Record record = SampleRecord(0.5);
  ReplaceLog(path, std::vector<const Record*>{&record});
  ASSERT_EQ(ReadLog(path).records.size(), 1u);
  EXPECT_EQ(ReadLog(path).records[0].seconds, 0.5);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), {}), 1) << "nothing is left beside it";
}

TEST(ReplaceLog, KeepsLinksAndPermissions) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("log.jsonl"), link = directory.File("link.jsonl");
  WriteFile(path, "old\n");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path, link);
  ReplaceLog(link, std::vector<std::string_view>{"new"});
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(ReadFile(path), "new\n");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(ReplaceLog, ErrorsNameThePath) {
  const auto why = [](const std::string& path) {
    try {
      ReplaceLog(path, std::vector<std::string_view>{"one"});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(why("/nonexistent/a.jsonl"), testing::HasSubstr("cannot write /nonexistent/a.jsonl: No such"));
  if (fs::exists("/dev/full")) {
    EXPECT_THAT(why("/dev/full"), testing::HasSubstr("No space left"));
  }
}

}  // namespace
}  // namespace tilesmith
