// The pages, all .md files of the tree, say what is so: each line of their ```sh blocks that starts with
// tilesmith is run, in the order of the page, in a directory for the page; what they name in the tree is
// there, and their links lead somewhere. What makes commands slow is scaled down, nothing else is changed.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/support/temporary_files.h"
#include "tests/tools/cli.h"

namespace tilesmith {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TILESMITH_SOURCE_DIR;

// Other programs in the pages' blocks, which this test does not run: tools/check runs this very test,
// tools/quickstart is tools/install-deps, a build, and commands that the page also shows one by one,
// tools/bench-networks, -rivals, -accuracy, -float16, -starts, -plans and -torch, tools/soak,
// tools/results/pages and tools/gpu-check have tests of their own (scripts_test.cc, cuda_test.cc), and so
// have the fuzzer and what gcc makes of objects (object_test.cc). qemu-aarch64-static runs what another
// build made.
const std::vector<std::string> kNotRun{"git ",
                                       "cd ",
                                       "tools/quickstart",
                                       "tools/check",
                                       "tools/bench-networks",
                                       "tools/bench-rivals",
                                       "tools/bench-accuracy",
                                       "tools/bench-float16",
                                       "tools/bench-starts",
                                       "tools/bench-plans",
                                       "tools/bench-torch",
                                       "tools/soak",
                                       "tools/install-deps",
                                       "cmake",
                                       "gcc ",
                                       "ninja ",
                                       "qemu-aarch64-static ",
                                       "objdump ",
                                       "perf ",
                                       "tools/fetch-models",
                                       "tools/fetch-peers",
                                       "tools/fetch-report",
                                       "tools/report/pictures",
                                       "ctest",
                                       "export PATH",
                                       "tools/docs",
                                       "tools/json/check",
                                       "tools/package",
                                       "tools/gpu-check",
                                       "tools/ort/fetch",
                                       "tools/compare-nodes",
                                       "pip ",
                                       "docker ",
                                       "tools/results/pages",
                                       "tools/fuzz",
                                       "build-fuzz/",
                                       "ssh ",
                                       "TILESMITH_CHAOS_KILLS=",
                                       "TILESMITH_FARM_CSV=",
                                       "TILESMITH_PARTITION_SECONDS="};

// Top-level folders that are not of the tree: builds, and what scripts leave.
bool IsLeftBehind(const std::string& folder) {
  return folder.starts_with(".") || folder.starts_with("build") || folder == "models" || folder == "peers" ||
         folder == "third_party" || folder == "tilesmith-out" || folder == "gpu-check-out";
}

// Relative to the root, sorted.
std::vector<std::string> Pages() {
  std::vector<std::string> pages;
  for (fs::recursive_directory_iterator entry(kRoot), end; entry != end; ++entry) {
    const std::string path = fs::relative(entry->path(), kRoot).string(), name = entry->path().filename();
    if (entry.depth() == 0 && entry->is_directory() && IsLeftBehind(name)) entry.disable_recursion_pending();
    if (name.ends_with(".md")) pages.push_back(path);
  }
  std::ranges::sort(pages);
  return pages;
}

struct Line {
  int number = 0;
  std::string text;
  std::string block;  // "```sh" inside of such a block, "```" without language; "" outside of blocks
};

std::vector<Line> LinesOf(const std::string& page) {
  std::vector<Line> lines;
  std::istringstream text(ReadFile(kRoot / page));
  std::string block;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.starts_with("```")) {
      block = block.empty() ? line : "";
    } else {
      lines.push_back({number, line, block});
    }
  }
  return lines;
}

// What the ```sh blocks have the reader type.
std::vector<Line> CommandLines(const std::string& page) {
  std::vector<Line> commands;
  for (Line& line : LinesOf(page)) {
    if (line.block != "```sh" || line.text.empty() || line.text[0] == '#') continue;
    line.text = line.text.substr(0, line.text.find("  #"));
    commands.push_back(std::move(line));
  }
  return commands;
}

// What a farm's page has the reader start and leave running.
bool IsServer(const std::string& command) {
  return command.starts_with("redis-server ") ||
         (command.starts_with("tilesmith worker ") && command.find("--list") == std::string::npos);
}

bool IsOurs(const std::string& command) {
  return command.starts_with("tilesmith ") || command.starts_with("build/tilesmith ");
}

std::string ScaledDown(std::string text) {
  const bool sized = text.find("--input-shape ") != std::string::npos;
  const bool counted = text.find("--trials ") != std::string::npos;
  const std::pair<const char*, const char*> substitutions[] = {
      // A short budget could leave a task without a record.
      {"--time-budget [0-9a-z.]+", counted ? "" : "--trials 2"},
      {"--trials [0-9]+", "--trials 2"},
      {"--for [0-9a-z.]+", "--for 2s"},
      {"--time [0-9a-z.]+", "--time 1ms"},
      {"--runs [0-9]+", "--runs 2"},
      {"--seeds [0-9]+", "--seeds 1"},
      {"--suite [a-z0-9_]+", "--suite tools/suites/two.txt"},
      {"resnet(18|50) ", sized ? "squeezenet1_1 " : "squeezenet1_1 --input-shape input=1x3x64x64 "},
      {"layer1.0.conv2 ", "features.3.expand3x3 "},
      {"models/fr_expression", "models/fr_eye"},
  };
  for (const auto& [pattern, replacement] : substitutions) {
    text = std::regex_replace(text, std::regex(pattern), replacement);
  }
  const auto lacks = [&](const char* option) { return text.find(option) == std::string::npos; };
  if (!lacks("tilesmith tune") && lacks("--trials")) text += " --trials 2";
  if (!lacks("tilesmith simulate")) text += lacks("--seeds ") ? " --trials 10 --seeds 1" : " --trials 10";
  if (!lacks("tilesmith graph-tune")) text += " --time 1ms --rounds 1";
  if (!lacks("tilesmith bench") && lacks("--time ") && lacks("--transforms") && lacks("--sweep")) {
    const bool of_workloads = !lacks("--suite") || std::regex_search(text, std::regex("bench \\S*ic[0-9]"));
    text += of_workloads ? " --time 1ms" : " --time 1ms --network-time 10ms";
  }
  // Other tests run meanwhile, and threads that wait for each other are slow where they have no core each.
  if (std::regex_search(text, std::regex("tilesmith (tune|graph-tune|explain|bench|run) ")) &&
      !std::regex_search(text, std::regex("--(threads|cores|streams|sweep|help|farm|target) ?")))
    text += " --threads 1";
  return text;
}

// A directory as a reader of the page has it: the binary, the tree's files that commands read, and, for pages
// other than the first, what the walk of the first has left.
class PageTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fs::create_directories(here_ / "build");
    fs::create_directories(here_ / "tools/suites");
    fs::create_symlink(TILESMITH_BINARY, here_ / "build/tilesmith");
    fs::create_directory_symlink(kRoot / "tools/measured_spaces", here_ / "tools/measured_spaces");
    WriteFile(here_ / "tools/suites/two.txt",
              "ic16ih14oc16oh14kh3ph1+bias+relu\nn\"odd\"ic16ih7oc17kh3ph1\n");
    if (has_models_) fs::create_directory_symlink(kRoot / "models", here_ / "models");
    if (GetParam() != "README.md") LeaveWalk();
  }

  void LeaveWalk() {
    const std::vector<Line> commands = CommandLines(GetParam());
    for (const std::string file : {"resnet50.jsonl", "resnet50.plan.jsonl"}) {
      const auto mentions = [&](const Line& line) { return line.text.find(file) != std::string::npos; };
      const auto makes_it = [&](const Line& line) {
        return line.text.find("-o " + file) != std::string::npos;
      };
      if (std::ranges::none_of(commands, mentions) || std::ranges::any_of(commands, makes_it)) continue;
      const std::vector<Line> walk = CommandLines("README.md");
      const auto makes = std::ranges::find_if(walk, makes_it);
      ASSERT_NE(makes, walk.end()) << "README.md does not make " << file;
      Run(makes->text);
    }
  }

  void Run(const std::string& command) {
    const std::string text = OnThisFarm(ScaledDown(command));
    const ProgramResult result = RunProgram(Shell(text), Here());
    EXPECT_EQ(result.exit_code, 0) << text << "\n" << result.err;
  }

  static std::vector<std::string> Shell(const std::string& text) {
    return {"bash", "-c", "PATH=$PWD/build:$PATH; " + text};
  }
  ProgramOptions Here() const {
    return {here_.string(), {"XDG_DATA_HOME=" + here_.string(), "REDISCLI_AUTH=of-the-page"}};
  }

  // A farm on a socket in the page's directory, in the foreground.
  std::string OnThisFarm(std::string text) const {
    const std::string socket = (here_ / "farm.sock").string();
    text = std::regex_replace(text, std::regex("redis://queue:[0-9]+/0"), "unix://" + socket);
    if (!text.starts_with("redis-server ")) return text;
    text = std::regex_replace(text, std::regex("--port [0-9]+"), "--port 0 --unixsocket " + socket);
    return std::regex_replace(text, std::regex("--daemonize yes"), "--daemonize no");
  }

  // Until a worker is there to be asked, once the servers that it takes are started.
  void Serve(const std::string& command) {
    servers_.push_back(std::make_unique<BackgroundProgram>(Shell("exec " + OnThisFarm(command)), Here()));
    const std::string wanted = IsOurs(command) ? "\"alive\": 1" : "\"alive\": 0";
    const std::string list = OnThisFarm("tilesmith worker --farm redis://queue:6379/0 --list --json");
    std::string seen;
    for (int i = 0; i < 300 && seen.find(wanted) == std::string::npos; ++i) {
      if (i > 0) usleep(100000);
      seen = RunProgram(Shell(list), Here()).out;
    }
    EXPECT_THAT(seen, testing::HasSubstr(wanted)) << command;
  }

  const TemporaryDirectory directory_;
  const fs::path here_ = directory_.path();
  const bool has_models_ = fs::exists(kRoot / "models");
  const bool has_kernels_ = fs::exists(TILESMITH_BUILD_DIR "/tools/api/libtilesmith_kernels.a");
  const bool has_redis_ = RunProgram({"bash", "-c", "command -v redis-server"}).exit_code == 0;
  std::vector<std::unique_ptr<BackgroundProgram>> servers_;
};

TEST_P(PageTest, EveryCommandLineWorks) {
  for (const Line& command : CommandLines(GetParam())) {
    SCOPED_TRACE(GetParam() + ":" + std::to_string(command.number) + ": " + command.text);
    const bool of_farm = IsServer(command.text) || command.text.find("--farm ") != std::string::npos;
    if (of_farm && !has_redis_) {
      std::printf("skipped, redis-server is not installed: %s\n", command.text.c_str());
    } else if (IsServer(command.text)) {
      Serve(command.text);
    } else if (!IsOurs(command.text)) {
      const bool known = std::ranges::any_of(
          kNotRun, [&](const std::string& start) { return command.text.starts_with(start); });
      EXPECT_TRUE(known) << "neither tilesmith nor a documented exception";
    } else if (command.text.find("models/") != std::string::npos && !has_models_) {
      std::printf("skipped, tools/fetch-models has not run: %s\n", command.text.c_str());
    } else if (command.text.find("--object") != std::string::npos && !has_kernels_) {
      std::printf("skipped, built without libtilesmith_kernels: %s\n", command.text.c_str());
    } else {
      Run(command.text);
    }
  }
}

std::string PageName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pages, PageTest, testing::ValuesIn(Pages()), PageName);

TEST(PagesTest, AreAllThere) {
  const std::vector<std::string> pages = Pages();
  for (const char* folder : {"", "layouts/", "ops/", "templates/", "tuner/", "graph_tuner/", "tools/",
                             "tools/api/", "tools/report/", "tools/results/", "tests/fuzz/"})
    EXPECT_THAT(pages, testing::Contains(std::string(folder) + "README.md"));
  int ours = 0;
  for (const std::string& page : pages)
    ours += std::ranges::count_if(CommandLines(page), IsOurs, &Line::text);
  EXPECT_GT(ours, 40);
}

TEST(PagesTest, FirstPageIsShort) { EXPECT_LE(fs::file_size(kRoot / "README.md"), 10240U); }

// The lines of a page from a heading to the next one of its level or above.
std::vector<Line> Section(const std::string& page, const std::string& heading) {
  const size_t level = heading.find(' ');
  std::vector<Line> section;
  bool inside = false;
  for (const Line& line : LinesOf(page)) {
    const bool is_heading = line.block.empty() && line.text.starts_with("#");
    if (inside && is_heading && line.text.find(' ') <= level) break;
    if (line.text == heading) inside = true;
    if (inside) section.push_back(line);
  }
  return section;
}

std::string TextOf(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.text + "\n";
  return text;
}

// Each a page that its folder's links to, with a worked example among the tests: a template, a device, an op
// and a type that the program does not have.
TEST(PagesTest, HowToAddOneIsAPageWithAnExample) {
  const std::tuple<std::string, std::string, std::string> pages[] = {
      {"templates", "add_a_template.md", "tests/templates/example_template.cc"},
      {"templates", "add_a_device.md", "tests/graph_tuner/support/far_device.h"},
      {"ops", "add_an_op.md", "tests/graph_tuner/executor/executor_test.cc"},
      {"layouts", "add_a_type.md", "tests/layouts/example_type.cmake"}};
  for (const auto& [folder, name, example] : pages) {
    SCOPED_TRACE(name);
    const std::string text = ReadFile(kRoot / folder / name);
    EXPECT_LE(Lines(text), 60);
    EXPECT_THAT(text, testing::HasSubstr("`" + example + "`"));
    EXPECT_TRUE(fs::exists(kRoot / example));
    EXPECT_THAT(ReadFile(kRoot / folder / "README.md"), testing::HasSubstr("(" + name + ")"));
  }
}

// A heading's anchor, as GitHub makes it.
std::string Anchor(std::string_view heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find(' ') + 1)) {
    if (c == ' ') anchor += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return anchor;
}

bool HasAnchor(const std::string& page, const std::string& anchor) {
  return std::ranges::any_of(LinesOf(page), [&](const Line& line) {
    return line.block.empty() && line.text.starts_with("#") && Anchor(line.text) == anchor;
  });
}

// What is in parentheses behind [...] on lines outside of blocks, or between backquotes, by `pattern`.
std::vector<std::pair<Line, std::string>> Found(const std::string& page, const char* pattern) {
  const std::regex expression(pattern);
  std::vector<std::pair<Line, std::string>> found;
  for (const Line& line : LinesOf(page)) {
    if (!line.block.empty()) continue;
    for (std::sregex_iterator match(line.text.begin(), line.text.end(), expression), end; match != end;
         ++match)
      found.emplace_back(line, (*match)[1]);
  }
  return found;
}

TEST(PagesTest, LinksLeadSomewhere) {
  for (const std::string& page : Pages()) {
    for (const auto& [line, link] : Found(page, R"(\]\(([^)]+)\))")) {
      SCOPED_TRACE(page + ":" + std::to_string(line.number) + ": " + link);
      const size_t hash = std::min(link.find('#'), link.size());
      const fs::path target = fs::path(page).parent_path() / link.substr(0, hash);
      const std::string file = hash == 0 ? page : target.lexically_normal().string();
      ASSERT_TRUE(fs::exists(kRoot / file));
      if (hash < link.size()) {
        EXPECT_TRUE(HasAnchor(file, link.substr(hash + 1)));
      }
    }
  }
}

// Paths from the root, and names of files and folders beside the page.
TEST(PagesTest, WhatTheyNameIsThere) {
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (entry.is_directory() && !IsLeftBehind(entry.path().filename()))
      folders.insert(entry.path().filename());
  }
  for (const std::string& page : Pages()) {
    std::vector<std::pair<Line, std::string>> names = Found(page, "`([A-Za-z0-9_./-]+)[^`]*`");
    for (const Line& command : CommandLines(page))
      names.emplace_back(command, command.text.substr(0, command.text.find(' ')));
    for (const auto& [line, name] : names) {
      SCOPED_TRACE(page + ":" + std::to_string(line.number) + ": " + name);
      const size_t slash = name.find('/');
      const bool from_root = slash != std::string::npos && folders.contains(name.substr(0, slash));
      const bool is_source = name.ends_with(".cc") || name.ends_with(".h");
      const bool is_there =
          fs::exists(kRoot / name) || fs::exists(kRoot / fs::path(page).parent_path() / name);
      if (from_root || is_source) {
        EXPECT_TRUE(is_there);
      }
    }
  }
}

std::set<std::string> Options(const std::string& text, const char* pattern = "(--[a-z][a-z-]+)") {
  const std::regex expression(pattern);
  std::set<std::string> options;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    options.insert((*match)[1]);
  options.erase("--help");
  return options;
}

// The names that a menu of commands lists.
std::vector<std::string> CommandNames(const std::vector<std::string>& menu) {
  std::vector<std::string> names;
  std::istringstream text(Tilesmith(menu).out);
  for (std::string line; std::getline(text, line);)
    if (std::smatch match; std::regex_search(line, match, std::regex("^  ([a-z][a-z-]*) +[A-Z]")))
      names.push_back(match[1]);
  return names;
}

// The page says of each command what it takes, no more and no less.
void ExpectDocumented(const std::vector<std::string>& command, const std::string& documented) {
  std::vector<std::string> arguments = command;
  arguments.push_back("--help");
  const std::string help = Tilesmith(arguments).out;
  std::string shared = "--json";
  const std::string options = help.substr(0, help.find("\nExamples:"));
  EXPECT_THAT(Options(documented), testing::ContainerEq(Options(options, "\n *(?:-[a-z],)?(--[a-z][a-z-]+)")))
      << testing::PrintToString(command);
}

TEST(PagesTest, ToolsPageHasEveryCommandAndOption) {
  const std::string page = "tools/README.md";
  const std::vector<std::string> commands = CommandNames({"--help"});
  EXPECT_GT(commands.size(), 10U);
  for (const std::string& command : commands) {
    const std::vector<Line> section = Section(page, "### " + command);
    ASSERT_FALSE(section.empty()) << command;
    if (command != "log") ExpectDocumented({command}, TextOf(section));
  }
  const std::vector<Line> section = Section(page, "### log");
  for (const std::string& command : CommandNames({"log", "--help"})) {
    const auto row = std::ranges::find_if(
        section, [&](const Line& line) { return line.text.starts_with("| `log " + command + " "); });
    ASSERT_NE(row, section.end()) << command;
    ExpectDocumented({"log", command}, row->text + TextOf({section.end() - 2, section.end()}));
  }
}

}  // namespace
}  // namespace tilesmith
