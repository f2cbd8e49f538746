#include "tests/fuzz/worker.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "layouts/base/error.h"
#include "tests/fuzz/coverage.h"

namespace tilesmith::fuzz {
namespace {

int64_t CpuNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// "" when the input is accepted or refused as it should be, or what is wrong.
std::string Run(const FuzzTarget& target, const std::string& input, bool say) {
  try {
    target.run(input);
    if (say) fmt::print("accepted\n");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) return fmt::format("internal error: {}", error.what());
    if (say) fmt::print("refused: {}\n", error.what());
  } catch (const std::exception& error) {
    return fmt::format("an exception that is no Error: {}", error.what());
  } catch (...) {
    return "an exception that is no std::exception";
  }
  return "";
}

class Worker {
 public:
  Worker(const FuzzTarget& target, const WorkerOptions& options, SharedState& state)
      : target_(target), options_(options), state_(state), random_(options.seed), corpus_(options.inputs) {}

  int Run() {
    const int64_t begin = SteadyNanoseconds();
    for (const std::string& input : options_.inputs) {
      if (!Execute(input.substr(0, kMaxInputBytes))) return kExitFound;
    }
    if (corpus_.empty()) corpus_.emplace_back();
    state_.corpus = static_cast<int64_t>(corpus_.size());
    for (int64_t run = 0; run < options_.runs; ++run) {
      if (options_.seconds > 0 && SteadyNanoseconds() - begin > options_.seconds * 1e9) break;
      if (!Execute(NextInput())) return kExitFound;
      if (new_features_ > 0) Keep(std::string(state_.input, state_.bytes));
    }
    return 0;
  }

 private:
  // The shorter of two: inputs grow as they are mutated, and the short ones run many times in the time of a
  // long one.
  const std::string& Pick() {
    const std::string& one = PickAny();
    const std::string& other = PickAny();
    return one.size() <= other.size() ? one : other;
  }

  // Half of the time one of the latest: they lead to what is new.
  const std::string& PickAny() {
    const auto size = static_cast<int64_t>(corpus_.size());
    const bool late = random_.Integer(0, 1) == 1;
    return corpus_[static_cast<size_t>(random_.Integer(late ? size - 1 - size / 8 : 0, size - 1))];
  }

  std::string NextInput() {
    std::string input = Pick();
    const std::string other = Pick();
    Mutation mutation{random_, other, target_.words};
    do {
      input = target_.mutate(std::move(input), mutation);
      input.resize(std::min(input.size(), kMaxInputBytes));
    } while (!mutation.OneIn(3));
    return input;
  }

  bool Execute(const std::string& input) {
    state_.bytes = input.size();
    std::memcpy(state_.input, input.data(), input.size());
    state_.began_cpu_ns = CpuNanoseconds();
    state_.began_clock_ns = SteadyNanoseconds();
    ++state_.runs;
    BeginCoverage();
    const std::string problem = fuzz::Run(target_, input, options_.say);
    new_features_ = NewFeatures();
    state_.began_clock_ns = 0;
    state_.features += static_cast<int64_t>(new_features_);
    if (problem.empty()) return true;
    problem.copy(state_.problem, sizeof(state_.problem) - 1);
    return false;
  }

  void Keep(std::string input) {
    if (!options_.new_inputs.empty()) {
      std::ofstream file(options_.new_inputs / HashText(input), std::ios::binary);
      file.write(input.data(), static_cast<std::streamsize>(input.size()));
    }
    corpus_.push_back(std::move(input));
    state_.corpus = static_cast<int64_t>(corpus_.size());
  }

  const FuzzTarget& target_;
  const WorkerOptions& options_;
  SharedState& state_;
  TestRandom random_;
  std::vector<std::string> corpus_;
  size_t new_features_ = 0;
};

}  // namespace

int RunWorker(const FuzzTarget& target, const WorkerOptions& options, SharedState& state) {
  const int code = Worker(target, options, state).Run();
  std::fflush(stdout);
  return code;
}

std::string HashText(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

int64_t SteadyNanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace tilesmith::fuzz
