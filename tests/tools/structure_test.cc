// The rules of the source tree, checked on the source itself: includes go one way, third-party code stays
// where it belongs, files stay small.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilesmith {
namespace {

namespace fs = std::filesystem;

// Top to bottom: a folder includes itself and those above it. Tests may include all.
const std::vector<std::string> kFolders{"layouts",     "ops",   "templates", "tuner",
                                        "graph_tuner", "tools", "tests"};
constexpr int64_t kMostLines = 450;

// Third-party headers by how their path begins, and where they may be included: a folder, or the beginning of
// a file's path. Tests may include any.
const std::map<std::string, std::vector<std::string>> kConfined{
    {"xbyak", {"templates/", "layouts/"}},
    {"oneapi", {"ops/onednn"}},
    {"dnnl", {"ops/onednn"}},
    {"onnx/", {"ops/onnx"}},
    {"google/protobuf", {"ops/onnx"}},
    {"xgboost", {"tuner/"}},
    {"boost/", {"ops/graph.", "graph_tuner/", "ops/passes/"}},
    {"Eigen", {"ops/", "templates/winograd"}},
    {"nlohmann", {"tuner/", "graph_tuner/", "tools/"}},
    {"CLI/", {"tools/"}},
    {"zip.h", {"tools/cli/npz"}},
    {"pybind11", {"tools/api/python/"}},
};

struct SourceFile {
  std::string path;  // relative to the root
  std::vector<std::string> lines;
};

std::vector<SourceFile> Sources() {
  const fs::path root = TILESMITH_SOURCE_DIR;
  std::vector<SourceFile> sources;
  for (const std::string& folder : kFolders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      SourceFile file{fs::relative(entry.path(), root).string(), {}};
      std::ifstream stream(entry.path());
      for (std::string line; std::getline(stream, line);) file.lines.push_back(line);
      sources.push_back(std::move(file));
    }
  }
  return sources;
}

// What stands between the quotes or brackets of an #include, with its opening character; "" for other lines.
std::string IncludeOf(std::string_view line) {
  if (!line.starts_with("#include ")) return "";
  const size_t begin = line.find_first_of("\"<");
  const size_t end = line.find_first_of("\">", begin + 1);
  return begin == std::string_view::npos ? "" : std::string(line.substr(begin, end - begin));
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.find('/')); }

size_t Level(const std::string& folder) {
  return size_t(std::find(kFolders.begin(), kFolders.end(), folder) - kFolders.begin());
}

// Why `path` may not include `include`, or "".
std::string Violation(const std::string& path, const std::string& include) {
  const std::string folder = FolderOf(path);
  const std::string target = include.substr(1);
  if (include[0] == '"') {
    if (Level(FolderOf(target)) == kFolders.size()) return "is not written as \"folder/file.h\"";
    return Level(FolderOf(target)) > Level(folder) ? "lies below " + folder : "";
  }
  for (const auto& [prefix, places] : kConfined) {
    if (!target.starts_with(prefix) || folder == "tests") continue;
    const bool allowed = std::any_of(places.begin(), places.end(),
                                     [&](const std::string& place) { return path.starts_with(place); });
    if (!allowed) return prefix + " is confined to other files";
  }
  return "";
}

TEST(StructureTest, TheRulesCatchWhatTheyForbid) {
  EXPECT_NE(Violation("layouts/layout.h", "\"ops/op.h"), "");
  EXPECT_NE(Violation("tuner/tune.cc", "\"graph_tuner/plan/plan.h"), "");
  EXPECT_NE(Violation("tuner/tune.cc", "\"tune.h"), "");
  EXPECT_NE(Violation("tuner/tune.cc", "<oneapi/dnnl/dnnl.hpp"), "");
  EXPECT_NE(Violation("ops/graph.cc", "<nlohmann/json.hpp"), "");
  EXPECT_EQ(Violation("graph_tuner/plan/plan.h", "\"tuner/record.h"), "");
  EXPECT_EQ(Violation("ops/onednn.cc", "<oneapi/dnnl/dnnl.hpp"), "");
  EXPECT_EQ(IncludeOf("#include <vector>"), "<vector");
  EXPECT_EQ(IncludeOf("#include \"ops/op.h\"  // why"), "\"ops/op.h");
}

TEST(StructureTest, IncludesFollowTheFolders) {
  const std::vector<SourceFile> sources = Sources();
  ASSERT_GT(sources.size(), 100u);
  for (const SourceFile& file : sources) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string include = IncludeOf(file.lines[i]);
      if (include.empty()) continue;
      EXPECT_EQ(Violation(file.path, include), "") << file.path << ":" << i + 1 << ": " << include.substr(1);
    }
  }
}

TEST(StructureTest, FilesStaySmall) {
  for (const SourceFile& file : Sources()) EXPECT_LE(int64_t(file.lines.size()), kMostLines) << file.path;
}

TEST(StructureTest, HeadersAreGuardedAndLibrariesDoNotPrint) {
  for (const SourceFile& file : Sources()) {
    const std::string folder = FolderOf(file.path);
    if (file.path.ends_with(".h")) {
      EXPECT_TRUE(std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end())
          << file.path;
    }
    if (folder == "tools" || folder == "tests") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const char* forbidden : {"std::cout", "std::cerr", "printf(", "getenv(", "fmt::print("}) {
        if (file.lines[i].find(forbidden) == std::string::npos) continue;
        if (file.lines[i].find("snprintf(") != std::string::npos) continue;
        ADD_FAILURE() << file.path << ":" << i + 1 << ": libraries do not use " << forbidden;
      }
    }
  }
}

// One place that never throws, escapes what terminals act on, and knows when stdout takes no more.
TEST(StructureTest, TheToolsPrintInOnePlace) {
  for (const SourceFile& file : Sources()) {
    if (FolderOf(file.path) != "tools" || file.path.starts_with("tools/api/example/")) continue;
    if (file.path == "tools/cli/streams.cc") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const char* forbidden : {"std::cout", "std::cerr", "fmt::print(", "std::printf(", "std::puts(",
                                    "(stdout", "(stderr", ", stdout)", ", stderr)"}) {
        EXPECT_EQ(file.lines[i].find(forbidden), std::string::npos)
            << file.path << ":" << i + 1 << ": " << forbidden << " outside tools/cli/streams.cc";
      }
    }
  }
}

}  // namespace
}  // namespace tilesmith
