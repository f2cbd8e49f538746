#include "tools/cli/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>

#include "layouts/base/close_names.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/base/visible.h"
#include "ops/networks/networks.h"
#include "templates/base/conv_template.h"

namespace tilesmith {

void DeclareTargets(Args& args, TargetOptions* options) {
  args.OptionalPositional("MODEL|WORKLOAD", &options->model.model,
                          "A built-in network, an ONNX file, or a convolution such as ic64ih56oc64kh3ph1");
  args.Text("--suite", &options->suite,
            "Instead: a built-in suite, \"all\", or a file of workloads, one a line", "NAME|FILE");
  DeclareInputOptions(args, &options->model);
}

namespace {

std::vector<ConvTask> TasksOf(const std::vector<Suite>& suites) {
  std::vector<ConvTask> tasks;
  std::set<std::tuple<std::string, bool, std::vector<std::string>>> seen;
  for (const Suite& suite : suites) {
    for (const SuiteRow& row : suite.rows) {
      const ConvTask& task = row.task;
      if (seen.emplace(WorkloadToString(task.workload), task.cold_weights, task.forbidden_templates).second) {
        tasks.push_back(task);
      }
    }
  }
  return tasks;
}

// The workload of bytes in the place of one of floats; none for ops fused in front and other activations.
std::optional<ConvWorkload> InBytes(ConvWorkload w) {
  if (w.bytes) return w;
  const ActivationKind kind = w.post.activation.kind;
  const bool clamps =
      kind == ActivationKind::kNone || kind == ActivationKind::kRelu || kind == ActivationKind::kClip;
  if (!clamps || w.fused() || w.product) return std::nullopt;
  w.post.activation = {};
  w.bytes = ByteTypes{};
  return w;
}

std::string NoBytes(const std::string& source) {
  return fmt::format(
      "{} in int8: convolutions of bytes have nothing fused in front of them, and no activation "
      "but relu and clip; products of two inputs are of floats",
      source);
}

Suite InBytes(const Suite& given) {
  Suite suite = given;
  suite.geomean_goal = 0;
  suite.rows.clear();
  std::set<std::string> seen;
  for (const SuiteRow& row : given.rows) {
    const std::optional<ConvWorkload> workload = InBytes(row.task.workload);
    if (!workload || !seen.insert(WorkloadToString(*workload)).second) continue;
    suite.rows.push_back({.task = row.task});
    suite.rows.back().task.workload = *workload;
  }
  return suite;
}

}  // namespace

bool TargetOptions::of_workloads() const {
  return !suite.empty() || (!LooksLikeModel(model.model) && LooksLikeWorkload(model.model));
}

Targets LoadTargets(const TargetOptions& options) {
  const std::string& text = options.model.model;
  if (text.empty() == options.suite.empty()) {
    throw Error(ErrorCode::kUsage, "needs a MODEL, a WORKLOAD, or --suite NAME, and only one of them");
  }
  const bool has_sizes = options.model.batch > 0 || !options.model.input_shapes.empty();
  if (has_sizes && options.of_workloads())
    throw Error(ErrorCode::kUsage,
                "--batch and --input-shape are for a MODEL: workloads say their own sizes");
  Targets targets;
  if (!options.suite.empty()) {
    targets.suites = LoadSuites(options.suite);
    if (options.in_bytes) {
      for (Suite& suite : targets.suites) suite = InBytes(suite);
      std::erase_if(targets.suites, [](const Suite& suite) { return suite.rows.empty(); });
    }
    targets.tasks = TasksOf(targets.suites);
    if (targets.tasks.empty()) throw Error(ErrorCode::kUsage, NoBytes(options.suite));
  } else if (options.of_workloads()) {
    const ConvWorkload given = ParseWorkload(text);
    const std::optional<ConvWorkload> workload = options.in_bytes ? InBytes(given) : given;
    if (!workload) throw Error(ErrorCode::kUsage, NoBytes(text));
    targets.tasks = {{"", *workload, 1}};
  } else {
    for (const ModelOptions& size : SizesToTune(options.model)) targets.graphs.push_back(LoadModel(size));
    targets.tasks = TasksOf(targets.graphs);
  }
  return targets;
}

Targets LoadTargetsToTune(const TargetOptions& options) {
  Targets targets = LoadTargets(options);
  if (targets.tasks.empty()) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{} has no convolutions to tune", targets.graphs.front().name()));
  }
  return targets;
}

std::string LayoutsText(const LayoutPair& layouts) {
  return fmt::format("{} -> {}", layouts.in.ToString(), layouts.out.ToString());
}

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
