// Progress on stderr: one line that is rewritten on a terminal, a line every few seconds elsewhere.
#pragma once

#include <functional>
#include <string>

#include "layouts/base/stop_flag.h"
#include "tools/cli/work_limit.h"

namespace tilesmith {

// How long work talks to its caller: between measurements, on the calling thread. What is empty is not
// called.
struct WorkSinks {
  std::function<void(const std::string&)> on_stage = {};  // what it does now: "oneDNN 3/20"
  std::function<void(const std::string&)> on_warning = {};
  const StopFlag* stop = nullptr;

  void Stage(const std::string& text) const {
    if (on_stage) on_stage(text);
  }
  void Warn(const std::string& text) const {
    if (on_warning) on_warning(text);
  }
};

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

// Stages of about the same length, each announced when it begins, with an estimate of the time left: what the
// stages so far took on average, times those to come, at most what the limit leaves.
class StageProgress {
 public:
  // How long a stage of length 1 may take is a guess, until the first one is over; 0: nothing is said of the
  // time until then.
  StageProgress(const WorkSinks& sinks, double guessed_seconds, const WorkLimit& limit = {})
      : sinks_(sinks), guessed_seconds_(guessed_seconds), limit_(limit) {}
  // From now on stages of this length together are to come.
  void Expect(int length) { to_come_ = length; }
  // How long a stage of length 1 should measure for all of them to fit: at most the guess.
  double SecondsEach() const;
  // The next stage begins, and the one before, if any, is over.
  void Begin(const std::string& what, int length = 1);
  // For between two measurements of a stage: announces it again, with less time left.
  void Tick() const;

 private:
  const WorkSinks& sinks_;
  const double guessed_seconds_;
  const WorkLimit limit_;
  int begun_ = 0, to_come_ = 0;
  double first_began_ = 0, estimated_end_ = 0;
  std::string stage_;
};

// "3m07s", "12.3s".
std::string DurationText(double seconds);

}  // namespace tilesmith
