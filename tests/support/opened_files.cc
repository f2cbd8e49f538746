#include "tests/support/opened_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tilesmith {
namespace {

#if defined(__x86_64__)
std::string TextIn(pid_t child, unsigned long long address) {
  std::string text;
  for (char piece = 0;; text += piece) {
    iovec here{&piece, 1}, there{reinterpret_cast<void*>(address + text.size()), 1};
    if (process_vm_readv(child, &here, 1, &there, 1, 0) != 1 || piece == '\0') return text;
  }
}

// The path of a system call that opens something.
std::optional<std::string> OpenedBy(pid_t child, const user_regs_struct& registers) {
  switch (registers.orig_rax) {
    case SYS_open:
    case SYS_creat:
      return TextIn(child, registers.rdi);
    case SYS_openat:
    case SYS_openat2:
      return TextIn(child, registers.rsi);
    default:
      return std::nullopt;
  }
}
#endif

}  // namespace

std::optional<std::vector<std::string>> OpenedFiles(const std::function<void()>& action) {
#if defined(__x86_64__)
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    try {
      action();
    } catch (...) {
    }
    _exit(0);
  }
  std::vector<std::string> paths;
  bool traced = false, entering = true;
  for (int status = 0; waitpid(child, &status, 0) == child && !WIFEXITED(status) && !WIFSIGNALED(status);) {
    if (traced && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      user_regs_struct registers{};
      ptrace(PTRACE_GETREGS, child, nullptr, &registers);
      if (entering) {
        if (std::optional<std::string> path = OpenedBy(child, registers)) paths.push_back(*std::move(path));
      }
      entering = !entering;
    } else if (!traced) {
      traced = ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD) == 0;
    }
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  }
  if (traced) return paths;
#else
  static_cast<void>(action);
#endif
  return std::nullopt;
}

}  // namespace tilesmith
