// What is seen of a tuning while it runs: on a terminal a table that is redrawn in place, elsewhere a line
// every few seconds. On stderr.
#pragma once

#include <span>
#include <string>

#include "graph_tuner/planner/tuning_tasks.h"
#include "tools/cli/progress.h"
#include "tools/cli/streams.h"

namespace tilesmith {

// A block of lines that replaces itself. One at a time per process.
class LiveText {
 public:
  LiveText() = default;
  ~LiveText() { Clear(); }
  LiveText(const LiveText&) = delete;
  LiveText& operator=(const LiveText&) = delete;
  // Lines are cut at the width of the terminal. Precondition: stderr is one.
  void Draw(const std::string& text);
  void Clear();

 private:
  size_t lines_ = 0;  // drawn
};

// The table: a row per task in their order, and where they do not all fit in `lines` those that take most of
// the network's time; then the totals. At most `columns` wide (Table::ToText).
std::string TuningTable(std::span<const TuneRow> rows, const NetworkProgress& at, size_t lines,
                        size_t columns = 0);
// The same in one line.
std::string TuningLine(std::span<const TuneRow> rows, const NetworkProgress& at);

class TuneView {
 public:
  // Cheap when called more often than people can read. Not while a sample is taken. `note` is one more line
  // of the table, or goes in front of the one line.
  void Show(std::span<const TuneRow> rows, const NetworkProgress& at, const std::string& note = {});
  // A line that stays, "oneDNN 3/20", and so on.
  void ShowLine(const std::string& text) { line_.Show(text); }
  void Say(const std::string& text);
  void Clear();

 private:
  const bool live_ = DetectTerminal().present && ProgramVerbosity() == Verbosity::kNormal;
  ProgressLine line_;
  LiveText table_;
  double next_seconds_ = 0;
};

// What it shows and says, and the user's interrupts. `view` outlives the result.
WorkSinks SinksOf(TuneView& view);

}  // namespace tilesmith
