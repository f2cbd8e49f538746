#include "layouts/base/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "layouts/base/error.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

std::string Refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    return error.what();
  }
  return "";
}

TEST(RequireWritable, ChangesNothing) {
  const TemporaryDirectory directory;
  const std::string old = directory.File("old");
  WriteFile(old, "contents");
  RequireWritable(old);
  RequireWritable(directory.File("new"));
  RequireWritable("");
  RequireWritable("/dev/null");
  EXPECT_EQ(ReadFile(old), "contents");
  const std::filesystem::directory_iterator entries(directory.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "something was left behind";
}

TEST(RequireWritable, KeepsWhatIsReadFromBeingReplaced) {
  const TemporaryDirectory directory;
  const std::string file = directory.File("file"), other = directory.File("other");
  WriteFile(file, "contents");
  WriteFile(other, "others");
  RequireWritable(file, {"", other, directory.File("missing")});
  RequireWritable("/dev/null", {"/dev/null"});
  std::filesystem::create_hard_link(file, directory.File("same"));
  const auto replace = [&] { RequireWritable(file, {other, directory.File("same")}); };
  EXPECT_THAT(replace,
              testing::ThrowsMessage<Error>(testing::HasSubstr("file is both an input and the output")));
}

TEST(RequireWritable, NamesWhatCannotBeWritten) {
  const TemporaryDirectory directory;
  const std::string nowhere = directory.File("no/such/folder/file");
  EXPECT_THAT(Refusal([&] { RequireWritable(nowhere); }),
              testing::StartsWith("cannot write " + nowhere + ": "));
  EXPECT_THAT(Refusal([&] { RequireWritable(directory.path()); }), testing::HasSubstr("Is a directory"));
}

// To open one for writing would wait for its reader, and to close it would be the end of it for that reader.
TEST(RequireWritable, LeavesPipesAlone) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  RequireWritable(pipe);
}

TEST(RequireWritableDirectory, MakesItOrSaysWhyNot) {
  const TemporaryDirectory directory;
  const std::string inner = directory.File("a/b");
  RequireWritableDirectory(inner);
  EXPECT_TRUE(std::filesystem::is_directory(inner));
  EXPECT_TRUE(std::filesystem::is_empty(inner));
  WriteFile(directory.File("file"), "");
  EXPECT_THAT(Refusal([&] { RequireWritableDirectory(directory.File("file")); }),
              testing::HasSubstr("/file"));
  EXPECT_THAT(Refusal([&] { RequireWritableDirectory(directory.File("file/b")); }),
              testing::HasSubstr("/file"));
}

}  // namespace
}  // namespace tilesmith
