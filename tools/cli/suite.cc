#include "tools/cli/suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/base/visible.h"
#include "templates/base/conv_template.h"

namespace tilesmith {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// It may quote a line of any length.
std::string CutMessage(std::string_view message) {
  constexpr size_t kLongest = 300;
  return message.size() <= kLongest ? std::string(message)
                                    : fmt::format("{}...", Shortened(message, kLongest));
}

// The text between the quotes of n"...", or "".
std::string NameIn(std::string_view text) {
  const size_t begin = text.find("n\"");
  if (begin == std::string_view::npos) return "";
  const size_t end = text.find('"', begin + 2);
  return end == std::string_view::npos ? "" : std::string(text.substr(begin + 2, end - begin - 2));
}

bool OneOf(std::string_view value, std::string_view no, std::string_view yes) {
  if (value != no && value != yes)
    throw Error(ErrorCode::kUsage, fmt::format("\"{}\" (allowed: {}, {})", value, no, yes));
  return value == yes;
}

double Goal(std::string_view value) {
  constexpr double kMaxGoal = 1e6;
  const std::string text(value);
  char* end = nullptr;
  const double goal = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(goal >= 0 && goal <= kMaxGoal))
    throw Error(ErrorCode::kUsage, fmt::format("\"{}\" is not a goal such as 1.05", text));
  return goal;
}

class SuiteReader {
 public:
  explicit SuiteReader(std::string name) { suite_.name = suite_.title = std::move(name); }

  void Read(std::string_view line) {
    const std::string_view text = Trimmed(line.substr(0, line.find('#')));
    if (text.empty()) return;
    if (text.front() == '@') return ReadDirective(text.substr(1));
    suite_.rows.push_back({{NameIn(text), ParseWorkload(text), 1}, ratio_goal_, peak_goal_});
  }
  Suite Finish() {
    for (SuiteRow& row : suite_.rows) {
      row.task.cold_weights = suite_.cold_weights;
      row.task.forbidden_templates = suite_.forbidden_templates;
    }
    return std::move(suite_);
  }

 private:
  void ReadDirective(std::string_view text) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view key = text.substr(0, space), value = Trimmed(text.substr(space));
    if (key == "title") {
      suite_.title = std::string(value);
    } else if (key == "against") {
      suite_.against_direct = OneOf(value, "best", "direct");
    } else if (key == "weights") {
      suite_.cold_weights = OneOf(value, "warm", "cold");
    } else if (key == "forbid") {
      suite_.forbidden_templates.emplace_back(FindConvTemplate(value).Name());
    } else if (key == "geomean") {
      suite_.geomean_goal = Goal(value);
    } else if (key == "each") {
      ratio_goal_ = Goal(value);
    } else if (key == "peak") {
      peak_goal_ = Goal(value);
    } else {
      throw Error(
          ErrorCode::kUsage,
          fmt::format("unknown @{} (allowed: @title, @against, @weights, @forbid, @geomean, @each, @peak)",
                      key));
    }
  }

  Suite suite_;
  double ratio_goal_ = 0, peak_goal_ = 0;
};

}  // namespace

Suite ParseSuite(std::string_view text, const std::string& source) {
  if (Trimmed(text).starts_with('{'))
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: JSON, as of a tuning log or a plan, not a suite", source));
  SuiteReader reader(std::filesystem::path(source).stem().string());
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    try {
      reader.Read(line);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}:{}: {}", source, number, CutMessage(error.what())));
    }
  }
  Suite suite = reader.Finish();
  if (suite.rows.empty()) throw Error(ErrorCode::kUsage, fmt::format("{}: no workloads", source));
  return suite;
}

std::vector<Suite> LoadSuites(const std::string& name_or_file) {
  std::vector<Suite> suites;
  std::vector<std::string> names;
  for (const BuiltInSuite& built_in : BuiltInSuites()) {
    names.emplace_back(built_in.name);
    if (name_or_file == "all" || name_or_file == built_in.name) {
      suites.push_back(ParseSuite(built_in.text, std::string(built_in.name)));
    }
  }
  if (!suites.empty()) return suites;
  std::error_code unknown;
  const bool is_name = name_or_file.find_first_of("/.") == std::string::npos;
  if (is_name && !std::filesystem::exists(name_or_file, unknown)) {
    names.emplace_back("all");
    const std::string meant = MeantText(name_or_file, names);
    throw Error(ErrorCode::kUsage,
                fmt::format("--suite {} is neither a file nor a built-in suite ({}known: {})", name_or_file,
                            meant.empty() ? "" : meant + " ", fmt::join(names, ", ")));
  }
  return {ParseSuite(ReadTextFile(name_or_file), name_or_file)};
}

}  // namespace tilesmith
