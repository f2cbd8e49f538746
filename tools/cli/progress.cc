#include "tools/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "layouts/base/visible.h"
#include "layouts/measure/clock.h"
#include "tools/cli/args.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/streams.h"

namespace tilesmith {
namespace {

constexpr double kTerminalPeriod = 0.1;
constexpr double kFilePeriod = 5;

}  // namespace

Terminal DetectTerminal() {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  Terminal terminal;
  terminal.present = isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
  terminal.dim = terminal.present && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (terminal.present && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col > 20) terminal.columns = size.ws_col;
    if (size.ws_row > 4) terminal.rows = size.ws_row;
  }
  return terminal;
}

void ProgressLine::Show(const std::string& text) {
  if (ProgramVerbosity() == Verbosity::kVerbose) return SayIfNew(text);
  const double now = NowSeconds();
  if (now < next_seconds_) return;
  next_seconds_ = now + (terminal_.present ? kTerminalPeriod : kFilePeriod);
  if (!terminal_.present || ProgramVerbosity() == Verbosity::kQuiet) {
    PrintNote(VisibleLine(text) + "\n");
    return;
  }
  const std::string line = VisibleLine(text);
  DrawErr(fmt::format("\r{}{}{}\033[K", terminal_.dim ? "\033[2m" : "",
                      Shortened(line, terminal_.columns - 1), terminal_.dim ? "\033[0m" : ""));
  drawn_ = true;
}

WorkSinks SinksOf(ProgressLine& line) {
  return {.on_stage = [&line](const std::string& text) { line.Show(text); },
          .on_warning = [&line](const std::string& text) { line.Say("warning: " + WithOptionNames(text)); },
          .stop = &InterruptFlag()};
}

void ProgressLine::Say(const std::string& text) {
  Clear();
  PrintNote((terminal_.present ? Wrapped(text, terminal_.columns, 2) : text) + "\n");
}

void ProgressLine::SayIfNew(const std::string& text) {
  if (text == said_) return;
  said_ = text;
  Say(text);
}

void ProgressLine::Clear() {
  if (drawn_) DrawErr("\r\033[K");
  drawn_ = false;
}

}  // namespace tilesmith
