// The program of all fuzz targets; tools/fuzz builds and starts it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "layouts/base/error.h"
#include "tests/fuzz/supervisor.h"

#ifdef __SANITIZE_ADDRESS__
// A stack for what the supervisor ends, and little memory kept back, which counts.
extern "C" const char* __asan_default_options() {
  return "handle_abort=1:quarantine_size_mb=16:detect_leaks=0";
}
#endif

namespace tilesmith::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    "usage: tilesmith_fuzz TARGET [--runs N|--short] [--seconds S] [--seed N] [--limit-seconds S]\n"
    "                      [--limit-mib M] [--findings DIR] [--new DIR] [--most N] [--say] [--minimize] "
    "[FILE|DIR ...]\n"
    "       tilesmith_fuzz --list\n"
    "Runs each FILE and all files of each DIR, then N mutations of them, or as many as fit into S seconds; "
    "--short is\n"
    "the target's own number, for a few seconds.\n"
    "Findings go to the folder of --findings, inputs that reach new code to that of --new. Goes on after a\n"
    "finding until there are --most different ones. --say tells whether an input was accepted, or why not.\n"
    "--minimize shrinks the one FILE instead, and prints it.\n"
    "Exit code 1 when there was a finding.\n";

struct Arguments {
  std::string target;
  WorkerOptions worker;
  Limits limits;
  fs::path findings;
  std::vector<fs::path> inputs;
  int64_t most = 1;
  bool minimize = false, list = false, help = false, brief = false;
};

template <typename Number>
Number NumberOf(const std::string& option, const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw Error(ErrorCode::kUsage, fmt::format("{} needs a number, got {}", option, text));
  return number;
}

Arguments Parse(const std::vector<std::string>& words) {
  Arguments parsed;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw Error(ErrorCode::kUsage, word + " needs a value");
      return words[++i];
    };
    if (word == "--list") {
      parsed.list = true;
    } else if (word == "--help") {
      parsed.help = true;
    } else if (word == "--say") {
      parsed.worker.say = true;
    } else if (word == "--short") {
      parsed.brief = true;
    } else if (word == "--minimize") {
      parsed.minimize = true;
    } else if (word == "--runs") {
      parsed.worker.runs = NumberOf<int64_t>(word, value());
    } else if (word == "--seconds") {
      parsed.worker.seconds = NumberOf<double>(word, value());
      if (parsed.worker.runs == 0) parsed.worker.runs = INT64_MAX;
    } else if (word == "--seed") {
      parsed.worker.seed = NumberOf<uint64_t>(word, value());
    } else if (word == "--limit-seconds") {
      parsed.limits.seconds = NumberOf<double>(word, value());
    } else if (word == "--limit-mib") {
      parsed.limits.mib = NumberOf<int64_t>(word, value());
    } else if (word == "--most") {
      parsed.most = NumberOf<int64_t>(word, value());
    } else if (word == "--findings") {
      parsed.findings = value();
    } else if (word == "--new") {
      parsed.worker.new_inputs = value();
    } else if (word.starts_with("--")) {
      throw Error(ErrorCode::kUsage, fmt::format("unexpected argument {} (see --help)", word));
    } else if (parsed.target.empty()) {
      parsed.target = word;
    } else {
      parsed.inputs.emplace_back(word);
    }
  }
  return parsed;
}

std::string ReadInput(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(ErrorCode::kEnvironment, fmt::format("cannot read {}", path.string()));
  return text.str();
}

// Sorted, so that runs with the same seed are alike.
std::vector<std::string> ReadInputs(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const fs::path& file : files) {
    inputs.push_back(ReadInput(file));
    if (inputs.back().empty() && !fs::is_empty(file))
      throw Error(ErrorCode::kEnvironment, fmt::format("cannot read {}", file.string()));
  }
  return inputs;
}

// Findings with the same text are one: the report's summary if there is one, else what happened; no digits,
// which differ from input to input.
std::string KindOf(const Outcome& outcome) {
  std::string kind = outcome.finding;
  for (const char* mark : {"runtime error: ", "SUMMARY: "}) {
    const size_t at = outcome.messages.find(mark);
    if (at != std::string::npos) kind = outcome.messages.substr(at, outcome.messages.find('\n', at) - at);
  }
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  constexpr size_t kTelling = 100;  // what follows are the values
  kind.resize(std::min(kind.size(), kTelling));
  return kind;
}

void Report(const FuzzTarget& target, const Arguments& arguments, const Outcome& outcome) {
  std::cout << fmt::format("{}: FOUND after {} runs: {}\n", target.name, outcome.runs, outcome.finding);
  if (outcome.runs > 1 && Supervise(target, {.inputs = {outcome.input}}, arguments.limits).finding.empty())
    std::cout << "  not by this input alone: those before it left damage\n";
  if (arguments.findings.empty()) {
    std::cout << outcome.messages;
    return;
  }
  fs::create_directories(arguments.findings);
  const fs::path path = arguments.findings / fmt::format("{}-{}", target.name, HashText(outcome.input));
  std::ofstream(path, std::ios::binary) << outcome.input;
  std::ofstream(path.string() + ".txt") << outcome.finding << "\n" << outcome.messages;
  std::cout << fmt::format("  input {0}, report {0}.txt\n", path.string());
}

int Fuzz(const FuzzTarget& target, const Arguments& arguments) {
  const int64_t begin = SteadyNanoseconds();
  const auto elapsed = [&] { return static_cast<double>(SteadyNanoseconds() - begin) * 1e-9; };
  WorkerOptions options = arguments.worker;
  options.inputs = ReadInputs(arguments.inputs);
  if (arguments.brief) options.runs = target.short_runs;
  if (!options.new_inputs.empty()) fs::create_directories(options.new_inputs);
  const int64_t seeds = static_cast<int64_t>(options.inputs.size());
  std::set<std::string> kinds;
  int64_t runs = 0, again = 0;
  Outcome outcome;
  for (;;) {
    outcome = Supervise(target, options, arguments.limits);
    runs += outcome.runs;
    if (outcome.finding.empty()) break;
    if (kinds.insert(KindOf(outcome)).second) {
      Report(target, arguments, outcome);
    } else {
      ++again;
    }
    if (static_cast<int64_t>(kinds.size()) >= arguments.most || outcome.runs <= seeds) break;
    options.runs -= std::min(options.runs, outcome.runs - seeds);
    if (options.seconds > 0) options.seconds = std::max(1e-3, arguments.worker.seconds - elapsed());
    ++options.seed;
  }
  std::cout << fmt::format(
      "{}: {} runs in {:.1f} s ({:.0f}/s), {} findings ({} times again), {} features, {} inputs\n",
      target.name, runs, elapsed(), static_cast<double>(runs) / elapsed(), kinds.size(), again,
      outcome.features, outcome.corpus);
  return kinds.empty() ? 0 : 1;
}

int Main(const std::vector<std::string>& words) {
  const Arguments arguments = Parse(words);
  if (arguments.help || (arguments.target.empty() && !arguments.list)) {
    std::cout << kUsage;
    return arguments.help ? 0 : 2;
  }
  for (const FuzzTarget& target : Targets()) {
    if (arguments.list) std::cout << fmt::format("{:<16} {}\n", target.name, target.reads);
    if (arguments.list || target.name != arguments.target) continue;
    if (!arguments.minimize) return Fuzz(target, arguments);
    std::cout << Minimized(target, ReadInput(arguments.inputs.at(0)), arguments.limits);
    return 0;
  }
  if (arguments.list) return 0;
  throw Error(ErrorCode::kUsage, fmt::format("no target {} (--list lists them)", arguments.target));
}

}  // namespace
}  // namespace tilesmith::fuzz

int main(int argc, char** argv) {
  try {
    return tilesmith::fuzz::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "tilesmith_fuzz: " << error.what() << "\n";
    return 2;
  }
}
