#include "tests/support/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string_view>

extern char** environ;

namespace tilesmith {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Files rather than pipes, so that nothing blocks and nobody has to read along.
int UnlinkedFile() {
  char path[] = "/tmp/tilesmith-output-XXXXXX";
  const int fd = mkostemp(path, O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot create a temporary file");
  unlink(path);
  return fd;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& argv, const ProgramOptions& options)
    : out_fd_(UnlinkedFile()), err_fd_(UnlinkedFile()), deadline_(Now() + options.seconds) {
  std::vector<std::string> arguments = argv;
  std::vector<std::string> environment = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {  // of two of a name, programs take either
    const std::string_view text = *entry, name = text.substr(0, text.find('=') + 1);
    const auto is_of_name = [&](const std::string& given) { return given.starts_with(name); };
    if (std::ranges::none_of(options.environment, is_of_name)) environment.emplace_back(text);
  }

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out_fd_, 1);
  posix_spawn_file_actions_adddup2(&files, err_fd_, 2);
  for (const auto& [fd, source] : options.descriptors) {
    source < 0 ? posix_spawn_file_actions_addclose(&files, fd)
               : posix_spawn_file_actions_adddup2(&files, source, fd);
  }
  if (!options.directory.empty()) posix_spawn_file_actions_addchdir_np(&files, options.directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = posix_spawnp(&pid_, argv[0].c_str(), &files, &attributes, Pointers(arguments).data(),
                                 Pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error("cannot start " + argv[0]);
}

BackgroundProgram::~BackgroundProgram() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_fd_ >= 0) close(out_fd_);
  if (err_fd_ >= 0) close(err_fd_);
}

void BackgroundProgram::Signal(int signal) { kill(pid_, signal); }

ProgramResult BackgroundProgram::Wait() {
  int status = 0;
  rusage used{};
  while (wait4(pid_, &status, WNOHANG, &used) == 0) {
    if (Now() > deadline_) kill(-pid_, SIGKILL);
    usleep(2000);
  }
  kill(-pid_, SIGKILL);  // whatever it left behind
  pid_ = -1;
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (const timeval& time : {used.ru_utime, used.ru_stime})
    result.cpu_seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  result.out = Take(&out_fd_);
  result.err = Take(&err_fd_);
  return result;
}

std::string BackgroundProgram::Take(int* fd) {
  std::string contents;
  lseek(*fd, 0, SEEK_SET);
  char buffer[4096];
  for (ssize_t bytes; (bytes = read(*fd, buffer, sizeof(buffer))) > 0;)
    contents.append(buffer, static_cast<size_t>(bytes));
  close(*fd);
  *fd = -1;
  return contents;
}

ProgramResult RunProgram(const std::vector<std::string>& argv, const ProgramOptions& options) {
  return BackgroundProgram(argv, options).Wait();
}

}  // namespace tilesmith
