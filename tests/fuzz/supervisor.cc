#include "tests/fuzz/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <system_error>

namespace tilesmith::fuzz {
namespace {

[[noreturn]] void Fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

struct Unmap {
  void operator()(SharedState* state) const { munmap(state, sizeof(SharedState)); }
};
using SharedStatePtr = std::unique_ptr<SharedState, Unmap>;

SharedStatePtr NewState() {
  void* const memory =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  return SharedStatePtr(new (memory) SharedState());
}

double CpuSeconds(pid_t process) {
  clockid_t clock{};
  timespec now{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int64_t ResidentMib(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

// What the running input takes too much of; "" for nothing.
std::string Excess(pid_t process, const SharedState& state, const Limits& limits) {
  const int64_t run = state.runs, began_clock = state.began_clock_ns;
  const double began_cpu = static_cast<double>(state.began_cpu_ns) * 1e-9;
  if (began_clock == 0) return "";
  const double cpu = CpuSeconds(process) - began_cpu;
  const double clock = static_cast<double>(SteadyNanoseconds() - began_clock) * 1e-9;
  const int64_t resident = ResidentMib(process);
  if (state.runs != run || state.began_clock_ns != began_clock) return "";  // another input by now
  if (cpu > limits.seconds) return fmt::format("takes over {} s", limits.seconds);
  // Who waits for the CPU of a busy machine gets some of it now and then.
  if (clock > 10 * limits.seconds && cpu < clock / 100)
    return fmt::format("waits for over {} s", 10 * limits.seconds);
  if (resident > limits.mib) return fmt::format("takes over {} MiB", limits.mib);
  return "";
}

// Waits for the worker's end; returns what it was killed for, or "".
std::string Watch(pid_t worker, const SharedState& state, const Limits& limits, int& status) {
  std::string excess;
  for (;;) {
    const pid_t ended = waitpid(worker, &status, WNOHANG);
    if (ended == worker) return excess;
    if (ended < 0 && errno != EINTR) Fail("waitpid");
    if (excess.empty()) {
      excess = Excess(worker, state, limits);
      if (!excess.empty()) kill(worker, SIGABRT);  // a sanitizer then tells where it was
    } else if (static_cast<double>(SteadyNanoseconds() - state.began_clock_ns) * 1e-9 > 60 * limits.seconds) {
      kill(worker, SIGKILL);
    }
    usleep(5000);
  }
}

std::string WhatHappened(int status, const SharedState& state, const std::string& excess) {
  if (!excess.empty()) return excess;
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == kExitFound) return state.problem;
  if (WEXITSTATUS(status) != 0) return fmt::format("exit code {}", WEXITSTATUS(status));
  return "";
}

std::string ReadFrom(std::FILE* file) {
  std::string text;
  char block[4096];
  rewind(file);
  while (const size_t count = fread(block, 1, sizeof(block), file)) text.append(block, count);
  return text;
}

}  // namespace

Outcome Supervise(const FuzzTarget& target, const WorkerOptions& options, const Limits& limits) {
  const SharedStatePtr state = NewState();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> messages(tmpfile(), fclose);
  if (!messages) Fail("tmpfile");
  fflush(nullptr);
  const pid_t worker = fork();
  if (worker < 0) Fail("fork");
  if (worker == 0) {
    dup2(fileno(messages.get()), STDERR_FILENO);
    _exit(RunWorker(target, options, *state));
  }
  int status = 0;
  const std::string excess = Watch(worker, *state, limits, status);
  Outcome outcome;
  outcome.finding = WhatHappened(status, *state, excess);
  outcome.runs = state->runs;
  outcome.features = state->features;
  outcome.corpus = state->corpus;
  if (outcome.finding.empty()) return outcome;
  outcome.input.assign(state->input, state->bytes);
  outcome.messages = ReadFrom(messages.get());
  return outcome;
}

std::string Minimized(const FuzzTarget& target, std::string input, const Limits& limits) {
  const auto is_finding = [&](const std::string& smaller) {
    return !Supervise(target, {.inputs = {smaller}}, limits).finding.empty();
  };
  for (size_t piece = (input.size() + 1) / 2; piece > 0; piece /= 2) {
    for (size_t at = 0; at < input.size();) {
      std::string smaller = input;
      smaller.erase(at, piece);
      if (is_finding(smaller)) {
        input = std::move(smaller);
      } else {
        at += piece;
      }
    }
  }
  return input;
}

}  // namespace tilesmith::fuzz
