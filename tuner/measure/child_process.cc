#include "tuner/measure/child_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "layouts/base/error.h"

extern char** environ;

namespace tilesmith {
namespace {

int Spawn(const std::vector<std::string>& argv, int fd, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  arguments.reserve(argv.size());
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

std::string ProcessEnd::ToString() const {
  if (!signaled) return fmt::format("exited with code {}", value);
  const char* name = sigabbrev_np(value);
  return name ? fmt::format("killed by SIG{}", name) : fmt::format("killed by signal {}", value);
}

bool ProcessEnd::FromOutside() const {
  return signaled && (value == SIGKILL || value == SIGTERM || value == SIGINT || value == SIGHUP ||
                      value == SIGQUIT || value == SIGALRM);
}

ChildProcess::ChildProcess(const std::vector<std::string>& argv) {
  int ends[2];
  if (argv.empty()) throw Error(ErrorCode::kEnvironment, "no program to start");
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot open a socket: {}", std::strerror(errno)));
  }
  const int error = Spawn(argv, ends[1], pid_);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw Error(ErrorCode::kEnvironment, fmt::format("cannot start {}: {}", argv[0], std::strerror(error)));
  }
  fd_ = ends[0];
  channel_ = LineTransport(fd_, fd_);
}

ChildProcess::~ChildProcess() {
  Kill();
  close(fd_);
}

ProcessEnd ChildProcess::Reap() {
  int status = 0;
  pid_t got;
  do {
    got = waitpid(pid_, &status, 0);
  } while (got < 0 && errno == EINTR);
  reaped_ = true;
  if (got == pid_) end_ = {WIFSIGNALED(status), WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
  return end_;
}

ProcessEnd ChildProcess::Kill() {
  if (reaped_) return end_;
  kill(pid_, SIGKILL);
  return Reap();
}

ProcessEnd ChildProcess::WaitForEnd() {
  constexpr int kPatienceMs = 2000;  // a core dump takes a while
  for (int waited_ms = 0; !reaped_ && waited_ms < kPatienceMs; ++waited_ms) {
    siginfo_t info = {};
    if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_) return Reap();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Kill();
}

}  // namespace tilesmith
