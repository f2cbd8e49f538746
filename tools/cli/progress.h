// Progress on stderr: one line that is rewritten on a terminal, a line every few seconds elsewhere.
#pragma once

#include <string>

#include "graph_tuner/planner/work.h"

namespace tilesmith {

// What stderr is.
struct Terminal {
  bool present = false;  // a terminal that understands cursor movements
  bool dim = false;      // and may be written to in a fainter colour
  size_t columns = 80, rows = 24;
};
Terminal DetectTerminal();

// Call only between measurements: drawing takes time. One at a time per process.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows `text`; cheap when called more often than people can read. With --verbose every new text is a line.
  void Show(const std::string& text);
  // A line that stays.
  void Say(const std::string& text);
  // Takes the rewritten line away.
  void Clear();

 private:
  void SayIfNew(const std::string& text);

  const Terminal terminal_ = DetectTerminal();
  bool drawn_ = false;
  double next_seconds_ = 0;
  std::string said_;  // last, when every step is a line
};

// What it shows and says, and the user's interrupts. `line` must outlive the result.
WorkSinks SinksOf(ProgressLine& line);

}  // namespace tilesmith
