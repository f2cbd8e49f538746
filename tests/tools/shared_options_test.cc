// Options that several commands share work on each of them. They are looked up where they are declared, so
// that a new one cannot be forgotten.
#include "tests/tools/shared_options.h"

#include <algorithm>
#include <map>
#include <regex>

#include "graph_tuner/planner/network_types.h"
#include "layouts/base/target.h"

namespace tilesmith {
namespace {

using Files = TinyNetworkFiles;

// A command with what it cannot do without, or would take long.
std::vector<std::string> Base(const std::string& command, const std::string& out, bool streams = false) {
  const Files& files = Files::Made();
  const std::map<std::string, std::vector<std::string>> more = {
      {"tune", {"-o", out, "--trials", "1", "--no-baseline"}},
      {"graph-tune", {"-o", out, "--rounds", "1", "--no-baselines"}},
      {"optimize", {"-o", out}},
      {"explain", {}},
      {"bench", {"--onnxruntime", "none"}},
      {"run", {}},
      {"quantize", {"-o", out}}};
  std::vector<std::string> arguments = {command, files.model, "-q"};
  arguments.insert(arguments.end(), more.at(command).begin(), more.at(command).end());
  if (command == "bench" && !streams) arguments.insert(arguments.end(), {"--network-time", "20ms"});
  return arguments;
}

struct Sample {
  std::string option, value = "";
  std::string precisions = "";                                 // that it is for; "": all
  bool apart = false;                                          // it excludes others of these
  std::vector<std::pair<std::string, std::string>> with = {};  // what it then needs
};

// One for each option that several commands have.
std::vector<Sample> Samples() {
  const Files& files = Files::Made();
  const TemporaryDirectory& directory = files.directory;
  return {{"--threads", "1"},
          {"--wait", "yield"},
          {"--max-isa", std::string(IsaName(DetectCpu().isa))},
          {"--target", "cpu"},
          {"--reproducible", "", "f32 int8"},
          {"--batch", "1"},
          {"--input-shape", Files::kShape},
          {"--max-elements", "1000000"},
          {"--max-memory", "4096"},
          {"--max-error", "1"},
          {"--forbid", "winograd"},
          {"--conditions", "warm"},
          {"--calibrate", files.samples, "int8 mixed"},
          {"--max-output-error", "0.5", "mixed"},
          {"--json"},
          {"--seed", "3"},
          {"--no-fusion"},
          {"--no-regions"},
          {"--input-layout", "NHWC"},
          {"--output-layout", "NHWC"},
          {"--solver", "auto"},
          {"--costs", directory.File("costs.jsonl")},
          {"--interpolate-costs"},
          {"--max-weights", "100"},
          {"--any-machine"},
          {"--default-schedules"},
          {"--log", files.log},
          {"--overwrite"},
          {"--save", directory.File("save.json")},
          {"--csv", directory.File("table.csv")},
          {"--time", "10ms"},
          {"--time-budget", "2s"},
          {"--dump-code", directory.File("code")},
          {"--check", "", "", true, {{"--onnxruntime", "none"}, {"--default-schedules", ""}}},
          {"--onnxruntime", "none", "", true, {{"--check", ""}, {"--default-schedules", ""}}},
          {"--resume", "", "", true},
          {"--db", directory.File("database.jsonl"), "", true, {{"--overwrite", ""}}},
          {"--no-db", "", "", true, {{"--overwrite", ""}}},
          {"--plan", files.plan, "", true, {{"--default-schedules", ""}}},
          {"--strict", "", "", true, {{"--plan", files.plan}}},
          {"--streams", "1", "", true, {{"--duration", "20ms"}}},
          {"--duration", "20ms", "", true, {{"--warmup", "1ms"}}},
          {"--warmup", "1ms", "", true, {{"--duration", "20ms"}}}};
}

TEST(SharedOptionsTest, EachOneIsTriedOnEveryCommandThatHasIt) {
  const Names elsewhere = {"--output",     "--for",  "--precision",  // given to every command below
                           "--suite",                                // instead of a network
                           "--percentile",                           // of two kinds
                           "--model",                                // of compiled networks: compile_test.cc
                           "--farm",       "--class"};               // farm_test.cc: a queue has to run
  Names sampled;
  for (const Sample& sample : Samples()) sampled.insert(sample.option);
  std::map<std::string, int> commands;
  for (const auto& [command, options] : DeclaredOptions())
    for (const auto& [option, argument] : options) ++commands[option];
  for (const auto& [option, count] : commands) {
    EXPECT_TRUE(count == 1 || elsewhere.contains(option) || sampled.contains(option))
        << option << " is of several commands: give it a sample";
  }
  for (const std::string& option : sampled)
    EXPECT_GT(commands[option], 1) << option << " is no longer shared";
}

// What tune, graph-tune and optimize have two of is of the third as well, but for what it does not do.
TEST(SharedOptionsTest, CommandsThatTuneHaveTheSameOnes) {
  const std::map<std::string, Names> exceptions = {
      // It chooses nothing: no layouts, no types, no plan; its log is what it writes.
      {"tune",
       {"--log", "--solver", "--costs", "--interpolate-costs", "--no-regions", "--input-layout",
        "--output-layout", "--max-weights", "--max-output-error", "--save"}},
      // It measures no configs.
      {"graph-tune", {"--conditions", "--seed", "--resume", "--overwrite", "--db", "--no-db"}},
      // It measures and runs by turns, which other machines cannot.
      {"optimize", {"--farm", "--class"}}};
  const auto declared = DeclaredOptions();
  for (const auto& [lacking, allowed] : exceptions) {
    Names lacks;
    for (const auto& [option, argument] : declared.at(lacking == "tune" ? "graph-tune" : "tune")) {
      const bool in_both = std::ranges::all_of(exceptions, [&](const auto& other) {
        return other.first == lacking || declared.at(other.first).contains(option);
      });
      if (in_both && !declared.at(lacking).contains(option)) lacks.insert(option);
    }
    EXPECT_EQ(lacks, allowed) << "which " << lacking << " does not have";
  }
}

class SharedOptionsOf : public testing::TestWithParam<std::string> {
 protected:
  void ExpectTaken(std::vector<std::string> arguments) const {
    const ProgramResult result = Tilesmith(arguments);
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
  }
  void Give(const std::string& option, const std::string& value, std::vector<std::string>& arguments) const {
    if (!options_.contains(option) || std::ranges::find(arguments, option) != arguments.end()) return;
    arguments.push_back(option);
    if (!value.empty()) arguments.push_back(value);
  }
  // "{f32,int8}" -> those that this machine has.
  Names Precisions() const {
    const auto option = options_.find("--precision");
    if (option == options_.end()) return {""};
    const std::regex name("\\w+");
    const std::string& text = option->second.value;
    Names names(std::sregex_token_iterator(text.begin(), text.end(), name), {});
    names.erase("tf32");                             // a GPU's
    if (GetParam() == "bench") names.erase("bf16");  // of workloads: a MODEL's comes with its plan
    if (!HasTemplates(DetectCpu(), DataType::kBf16)) names.erase("bf16");
    return names;
  }

  const std::map<std::string, ArgumentDescription> options_ = DeclaredOptions().at(GetParam());
  const TemporaryDirectory directory_;
  // optimize writes its log, the others read one.
  const std::string log_ = GetParam() == "optimize" ? directory_.File("its.jsonl") : Files::Made().log;
};

TEST_P(SharedOptionsOf, AreTakenInEveryPrecision) {
  for (const std::string& precision : Precisions()) {
    std::vector<std::string> arguments = Base(GetParam(), directory_.File("out"));
    if (!precision.empty()) Give("--precision", precision, arguments);
    for (const Sample& sample : Samples()) {
      const bool of_precision = sample.precisions.empty() || precision.empty() ||
                                sample.precisions.find(precision) != std::string::npos;
      if (sample.apart || !of_precision) continue;
      Give(sample.option, sample.option == "--log" ? log_ : sample.value, arguments);
    }
    ExpectTaken(arguments);
  }
}

TEST_P(SharedOptionsOf, AreTakenThatExcludeOthers) {
  for (const Sample& sample : Samples()) {
    if (!sample.apart || !options_.contains(sample.option)) continue;
    const bool streams =
        sample.option == "--streams" || sample.option == "--duration" || sample.option == "--warmup";
    std::vector<std::string> arguments = Base(GetParam(), directory_.File("out"), streams);
    Give(sample.option, sample.value, arguments);
    for (const auto& [option, value] : sample.with) Give(option, value, arguments);
    Give("--input-shape", Files::kShape, arguments);
    Give("--threads", "1", arguments);
    Give("--time-budget", "1s", arguments);
    ExpectTaken(arguments);
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, SharedOptionsOf,
                         testing::Values("tune", "graph-tune", "optimize", "explain", "bench", "run",
                                         "quantize"),
                         [](const auto& info) {
                           return std::regex_replace(info.param, std::regex("-"), "_");
                         });

}  // namespace
}  // namespace tilesmith
