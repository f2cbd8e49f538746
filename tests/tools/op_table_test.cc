// The table of operators in ops/README.md: the importers that are registered, and what they take of ONNX's
// own cases.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/base/op_registry.h"
#include "tests/support/ops/conformance.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

constexpr const char* kPage = TILESMITH_SOURCE_DIR "/ops/README.md";
constexpr std::string_view kBegin =
                               "<!-- generated: tools_tests --gtest_filter=OpTableTest.* prints it -->\n",
                           kEnd = "<!-- end of what is generated -->\n";
// As many as libonnx-testdata 1.12 has, which the page is made from; other versions have other cases.
constexpr size_t kNodeCases = 932;

std::string ExpectedTable(const std::map<std::string, OperatorCoverage>& coverage) {
  std::string text =
      "| operator | of ONNX's own cases | what is refused in the others |\n| --- | ---: | --- |\n";
  for (const OpImporter& importer : OpImporters()) {
    const auto found = coverage.find(std::string(importer.op_type));
    const OperatorCoverage of = found == coverage.end() ? OperatorCoverage() : found->second;
    const std::string share = of.cases == 0 ? "-" : fmt::format("{} of {}", of.taken, of.cases);
    text += fmt::format("| {} | {} | {} |\n", importer.op_type, share, fmt::join(of.refusals, "; "));
  }
  return text;
}

TEST(OpTableTest, PageHasIt) {
  if (!HaveConformanceData())
    GTEST_SKIP() << "install the package libonnx-testdata to check the page's table";
  if (const size_t cases = CountNodeCases(); cases != kNodeCases)
    GTEST_SKIP() << cases << " cases; the page is of a version with " << kNodeCases;
  const std::string page = ReadFile(kPage);
  const size_t begin = page.find(kBegin) + kBegin.size(), end = page.find(kEnd);
  ASSERT_LE(begin, end) << kPage;
  const std::string expected = ExpectedTable(CoverOperators());
  EXPECT_TRUE(page.substr(begin, end - begin) == expected) << "ops/README.md should have this table:\n"
                                                           << expected;
}

}  // namespace
}  // namespace tilesmith
