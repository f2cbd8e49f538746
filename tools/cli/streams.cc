#include "tools/cli/streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "layouts/base/error.h"
#include "layouts/base/visible.h"

namespace tilesmith {
namespace {

int print_error = 0;  // errno of the first write to stdout that failed
Verbosity verbosity = Verbosity::kNormal;

}  // namespace

void PrepareStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one. Not to be written to: who closed stdout gets no results from it.
    const int mode = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (open("/dev/null", mode) != fd) std::_Exit(static_cast<int>(ErrorCode::kEnvironment));
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void PrintOut(std::string_view text) {
  if (print_error != 0) return;
  const std::string shown = Visible(text);
  errno = 0;
  const bool written = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size();
  if (!written || std::fflush(stdout) != 0) print_error = errno != 0 ? errno : EIO;
}

void PrintErr(std::string_view text) noexcept {
  try {
    DrawErr(Visible(text));
  } catch (const std::bad_alloc&) {
    DrawErr("out of memory\n");
  }
}

void PrintNote(std::string_view text) noexcept {
  if (verbosity != Verbosity::kQuiet) PrintErr(text);
}

Verbosity ProgramVerbosity() { return verbosity; }

void SetVerbosity(std::vector<std::string>& arguments) {
  std::erase_if(arguments, [](const std::string& argument) {
    const bool quiet = argument == "-q" || argument == "--quiet";
    const bool verbose = argument == "-v" || argument == "--verbose";
    if (quiet) verbosity = Verbosity::kQuiet;
    if (verbose) verbosity = Verbosity::kVerbose;
    return quiet || verbose;
  });
}

size_t OutputColumns() {
  constexpr int kMinColumns = 20;
  const char* const variable = std::getenv("COLUMNS");
  if (const int columns = variable != nullptr ? std::atoi(variable) : 0; columns >= kMinColumns)
    return static_cast<size_t>(columns);
  winsize size{};
  const bool known = isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col >= kMinColumns ? size.ws_col : 0;
}

void DrawErr(std::string_view text) noexcept {
  // Nobody is left to be told when this fails.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

int ExitCodeAfterPrinting(int code) {
  if (print_error == 0) return code;
  if (print_error != EPIPE)
    PrintErr(fmt::format("tilesmith: cannot write results to stdout: {}\n", std::strerror(print_error)));
  return code == 0 ? static_cast<int>(ErrorCode::kEnvironment) : code;
}

}  // namespace tilesmith
