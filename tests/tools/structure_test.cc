// The rules of the source tree, checked on the source itself: includes go one way, third-party code stays
// where it belongs, files stay small.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tilesmith {
namespace {

namespace fs = std::filesystem;

// Top to bottom: a folder includes itself and those above it. Tests may include all.
const std::vector<std::string> kFolders{"layouts",     "ops",   "templates", "tuner",
                                        "graph_tuner", "tools", "tests"};
constexpr int64_t kMaxLines = 1000;

// Third-party headers by how their path begins, and where they may be included: a folder, or the beginning of
// a file's path. Tests may include any.
const std::map<std::string, std::vector<std::string>> kConfined{
    {"xbyak", {"templates/", "layouts/"}},
    {"oneapi", {"tools/onednn/"}},
    {"dnnl", {"tools/onednn/"}},
    {"onnx/", {"ops/onnx", "ops/qdq"}},
    {"google/protobuf", {"ops/onnx"}},
    {"xgboost", {"tuner/"}},
    {"boost/", {"ops/graph/", "graph_tuner/", "ops/passes/"}},
    {"Eigen", {"ops/", "templates/winograd"}},
    {"nlohmann", {"tuner/", "graph_tuner/", "tools/"}},
    {"CLI/", {"tools/"}},
    {"zip.h", {"tools/cli/npz"}},
    {"hiredis", {"tuner/farm/redis"}},
    {"pybind11", {"tools/api/python/"}},
    {"onnxruntime", {"tools/ort/plugin/"}},
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
  return static_cast<size_t>(std::find(kFolders.begin(), kFolders.end(), folder) - kFolders.begin());
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

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Where what begins at `at` ends: one past the first `end` that no backslash stands before.
size_t PastUnescaped(const std::string& text, size_t at, char end) {
  while (at < text.size() && text[at] != end) at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

// C++ in words and punctuation, without comments, directives and literals.
std::vector<std::string> TokensOf(const SourceFile& file) {
  std::string text;
  for (const std::string& line : file.lines) text += line + "\n";
  std::vector<std::string> tokens;
  bool line_begins = true;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::string_view rest = std::string_view(text).substr(at);
    if (c == '\n' || c == ' ') {
      line_begins = line_begins || c == '\n';
      ++at;
      continue;
    }
    if (rest.starts_with("//") || (c == '#' && line_begins)) {
      at = PastUnescaped(text, at, '\n') - 1;
    } else if (rest.starts_with("/*")) {
      at = text.find("*/", at) + 2;
    } else if (rest.starts_with("R\"")) {
      const size_t open = text.find('(', at);
      const std::string close = ")" + text.substr(at + 2, open - at - 2) + "\"";
      at = text.find(close, open) + close.size();
    } else if (c == '"' || c == '\'') {
      at = PastUnescaped(text, at + 1, c);
    } else if (IsWord(c)) {
      const size_t begin = at;
      const bool is_number = std::isdigit(static_cast<unsigned char>(c)) != 0;
      while (at < text.size() && (IsWord(text[at]) || (is_number && text[at] == '\''))) ++at;
      tokens.push_back(text.substr(begin, at - begin));
    } else {
      tokens.emplace_back(rest.substr(0, rest.starts_with("::") ? 2 : 1));
      at += tokens.back().size();
    }
    line_begins = false;
  }
  return tokens;
}

// The qualified names of the types that a file defines, aliases included. Not of those that no other file can
// mean: what functions define, and anonymous namespaces of .cc files.
std::vector<std::string> TypesDefinedIn(const SourceFile& file) {
  using Tokens = std::vector<std::string>;
  std::vector<std::string> types;
  std::vector<std::optional<std::string>> scopes;  // "" where it adds no name, nullopt where names are local
  Tokens head;                                     // what a brace or a semicolon belongs to
  const auto is_local = [&] { return std::ranges::any_of(scopes, [](const auto& scope) { return !scope; }); };
  const auto add = [&](const std::string& name) {
    std::string qualified;
    for (const auto& scope : scopes) qualified += scope->empty() ? "" : *scope + "::";
    if (!name.empty()) types.push_back(qualified + name);
  };
  const auto joined = [&](size_t from) {
    std::string name;
    for (; from < head.size() && head[from] != ":" && head[from] != "final"; ++from) name += head[from];
    return name;
  };
  const auto scope_of_head = [&]() -> std::optional<std::string> {
    const std::string first = head.empty() ? "" : head[0];
    if (first == "extern") return "";
    if (first == "namespace" || (first == "inline" && head.size() > 1 && head[1] == "namespace")) {
      std::string name;
      for (size_t i = first == "inline" ? 2 : 1; i < head.size(); ++i) name += head[i];
      if (name.empty() && file.path.ends_with(".cc")) return std::nullopt;
      return name;
    }
    if (first != "struct" && first != "class" && first != "union" && first != "enum") return std::nullopt;
    size_t name = 1;
    if (name < head.size() && (head[name] == "class" || head[name] == "struct")) ++name;
    if (name < head.size() && head[name] == "alignas")
      name = static_cast<size_t>(std::ranges::find(head, ")") - head.begin()) + 1;
    const std::string text = joined(name);
    if (text.empty() || text.find('(') != std::string::npos) return std::nullopt;
    if (!is_local()) add(text);
    return text;
  };
  for (const std::string& token : TokensOf(file)) {
    if (token == "{") {
      scopes.push_back(scope_of_head());
      head.clear();
    } else if (token == "}") {
      if (!scopes.empty()) scopes.pop_back();
      head.clear();
    } else if (token == ";") {
      if (head.size() > 2 && head[0] == "using" && head[2] == "=" && !is_local()) add(head[1]);
      head.clear();
    } else if (token == ":" && head.size() == 1 && head[0].starts_with("p")) {
      head.clear();  // public, protected, private
    } else {
      head.push_back(token);
      if (head[0] != "template" || token != ">") continue;
      const auto opened = std::ranges::count(head, "<"), closed = std::ranges::count(head, ">");
      if (opened == closed) head.clear();  // what is a template is a type like others
    }
  }
  return types;
}

TEST(StructureTest, DefinitionsAreFound) {
  const SourceFile file{"a.h",
                        {"// struct No {};", "namespace a::b {", "enum class Kind : int { kOne, kTwo };",
                         "template <typename T, typename = std::vector<T>>", "struct Box final : Base<T> {",
                         "  class Inner { int n = 1'000; };", "  using Value = T;", " public:",
                         "  void Run() const { struct Local {}; }", "};", "namespace {", "struct Shared;",
                         "struct Hidden { const char* text = \"struct No {\"; };", "}", "}"}};
  std::vector<std::string> types{"a::b::Kind", "a::b::Box", "a::b::Box::Inner", "a::b::Box::Value",
                                 "a::b::Hidden"};
  EXPECT_EQ(TypesDefinedIn(file), types);
  types.pop_back();
  EXPECT_EQ(TypesDefinedIn({"a.cc", file.lines}), types);
}

// Two of them in one program would be undefined behaviour that no compiler notices.
TEST(StructureTest, NoTwoTypesHaveOneName) {
  std::map<std::string, std::string> defined_in;
  for (const SourceFile& file : Sources()) {
    for (const std::string& type : TypesDefinedIn(file)) {
      const auto [known, added] = defined_in.try_emplace(type, file.path);
      EXPECT_EQ(known->second, file.path) << "both define " << type;
    }
  }
  EXPECT_GT(defined_in.size(), 500u);
}

TEST(StructureTest, TheRulesCatchWhatTheyForbid) {
  EXPECT_NE(Violation("layouts/layout.h", "\"ops/base/op.h"), "");
  EXPECT_NE(Violation("tuner/tune.cc", "\"graph_tuner/plan/plan.h"), "");
  EXPECT_NE(Violation("tuner/tune.cc", "\"tune.h"), "");
  EXPECT_NE(Violation("tuner/tune.cc", "<oneapi/dnnl/dnnl.hpp"), "");
  EXPECT_NE(Violation("ops/graph/graph.cc", "<nlohmann/json.hpp"), "");
  EXPECT_EQ(Violation("graph_tuner/plan/plan.h", "\"tuner/records/record.h"), "");
  EXPECT_EQ(Violation("tools/onednn/onednn.cc", "<oneapi/dnnl/dnnl.hpp"), "");
  EXPECT_EQ(IncludeOf("#include <vector>"), "<vector");
  EXPECT_EQ(IncludeOf("#include \"ops/base/op.h\"  // why"), "\"ops/base/op.h");
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

// By the folder that includes, then by the folder whose header it includes: the includes, as "file:line:
// header". Folders are those that files lie in directly, distinct from the ones above and below.
using FolderIncludes = std::map<std::string, std::map<std::string, std::vector<std::string>>>;

std::string InnermostFolder(const std::string& path) { return path.substr(0, path.rfind('/')); }

FolderIncludes IncludesBetweenFolders(const std::vector<SourceFile>& sources) {
  FolderIncludes includes;
  for (const SourceFile& file : sources) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string include = IncludeOf(file.lines[i]);
      if (include.empty() || include[0] != '"') continue;
      const std::string from = InnermostFolder(file.path), to = InnermostFolder(include.substr(1));
      if (from == to) continue;
      includes[from][to].push_back(file.path + ":" + std::to_string(i + 1) + ": " + include.substr(1));
    }
  }
  return includes;
}

// Whether files of `from` include headers of `to`, or of folders that do, and so on.
bool Reaches(const FolderIncludes& includes, const std::string& from, const std::string& to) {
  std::set<std::string> seen;
  std::vector<std::string> open = {from};
  while (!open.empty()) {
    const std::string folder = open.back();
    open.pop_back();
    if (folder == to) return true;
    if (!seen.insert(folder).second || !includes.contains(folder)) continue;
    for (const auto& [next, lines] : includes.at(folder)) open.push_back(next);
  }
  return false;
}

// A paragraph for each pair of folders whose includes are part of a cycle, fewest includes first: mostly it
// is these that go the wrong way.
std::vector<std::string> Cycles(const FolderIncludes& includes) {
  std::vector<std::pair<size_t, std::string>> found;
  for (const auto& [from, targets] : includes) {
    for (const auto& [to, lines] : targets) {
      if (!Reaches(includes, to, from)) continue;
      std::string text = from + " includes " + to + ", which leads back to it:";
      for (const std::string& line : lines) text += "\n  " + line;
      found.emplace_back(lines.size(), std::move(text));
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> texts;
  for (auto& [count, text] : found) texts.push_back(std::move(text));
  return texts;
}

TEST(StructureTest, CyclesOfFoldersAreFound) {
  const auto cycles = [](const std::vector<SourceFile>& sources) {
    return Cycles(IncludesBetweenFolders(sources));
  };
  const SourceFile inside{"a/b/x.h", {"#include \"a/b/c/y.h\"", "#include \"a/b/z.h\"", "#include <a/q.h>"}};
  EXPECT_TRUE(cycles({inside, {"a/b/c/y.h", {"#include \"d/e.h\""}}}).empty());
  const std::vector<std::string> direct = cycles({inside, {"a/b/c/y.h", {"", "#include \"a/b/z.h\""}}});
  ASSERT_EQ(direct.size(), 2u);
  EXPECT_EQ(direct[0], "a/b includes a/b/c, which leads back to it:\n  a/b/x.h:1: a/b/c/y.h");
  EXPECT_EQ(direct[1], "a/b/c includes a/b, which leads back to it:\n  a/b/c/y.h:2: a/b/z.h");
  const SourceFile far{"d/e.h", {"#include \"a/b/z.h\""}};
  EXPECT_EQ(cycles({inside, {"a/b/c/y.h", {"#include \"d/e.h\""}}, far}).size(), 3u);
}

TEST(StructureTest, NoFoldersIncludeEachOther) {
  const FolderIncludes includes = IncludesBetweenFolders(Sources());
  for (const std::string& cycle : Cycles(includes)) ADD_FAILURE() << cycle;
}

// The files that include a header, but for the one that implements it, and tests only `with_tests`. By the
// header's path.
std::map<std::string, std::vector<std::string>> UsersOfHeaders(const std::vector<SourceFile>& sources,
                                                               bool with_tests = false) {
  std::map<std::string, std::vector<std::string>> users;
  for (const SourceFile& file : sources) {
    for (const std::string& line : file.lines) {
      const std::string include = IncludeOf(line);
      if (include.empty()) continue;
      const std::string header = include.substr(1), own = header.substr(0, header.size() - 1) + "cc";
      if (file.path != own && (with_tests || FolderOf(file.path) != "tests" || FolderOf(header) == "tests"))
        users[header].push_back(file.path);
    }
  }
  return users;
}

// By others than the file that implements it, and by more than tests. The public interface is for users, and
// importers make ops: tests alone name the classes of some.
TEST(StructureTest, EveryHeaderIsIncluded) {
  const std::vector<SourceFile> sources = Sources();
  const auto users = UsersOfHeaders(sources), seen = UsersOfHeaders(sources, true);
  for (const SourceFile& header : sources) {
    if (!header.path.ends_with(".h") || header.path.starts_with("tools/api/")) continue;
    const bool of_ops = FolderOf(header.path) == "ops";
    EXPECT_TRUE((of_ops ? seen : users).contains(header.path)) << header.path << " is included by nothing";
  }
}

// A concept is worth a header of its own where several files need it, or where there is much to say of it.
TEST(StructureTest, SmallHeadersHaveSeveralUsers) {
  constexpr size_t kSmall = 30;
  // Tests need the first one; the others go when their folders are worked on.
  const std::set<std::string> exempt = {"ops/graph/reference_run.h", "ops/movement/shape_arithmetic.h",
                                        "ops/onnx/onnx_export.h", "templates/cuda_device/op_programs.h",
                                        "tools/ort/regions.h"};
  const std::vector<SourceFile> sources = Sources();
  const auto users = UsersOfHeaders(sources);
  for (const SourceFile& header : sources) {
    if (!header.path.ends_with(".h") || header.lines.size() >= kSmall || !users.contains(header.path))
      continue;
    if (FolderOf(header.path) == "tests" || header.path.starts_with("tools/api/") ||
        exempt.contains(header.path))
      continue;
    EXPECT_GT(users.at(header.path).size(), 1u) << header.path << " belongs to " << users.at(header.path)[0];
  }
}

TEST(StructureTest, FilesStaySmall) {
  for (const SourceFile& file : Sources())
    EXPECT_LE(static_cast<int64_t>(file.lines.size()), kMaxLines) << file.path;
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
