// Whether a stream's runs are faster by all of its threads or by one alone.
//
// Threads that share each step wait for each other at its end. Where other programs want the cores, too, the
// system takes one away for milliseconds, and all wait for it, step after step: with two compilers beside it
// a network may take ten times as long by two threads as by one, which no one waits for. So a team that
// waited for much of some runs lets one thread try alone, and whoever was faster goes on; while one is alone,
// the team is tried again now and then. On a quiet machine nobody is late and nothing is tried.
#pragma once

namespace tilesmith {

class TeamPace {
 public:
  // Whether one thread shall do the next run.
  bool alone() const { return mode_ == Mode::kAlone; }
  // What the run that was just done took, and how much of that its first thread waited for others that
  // were late.
  void Took(double seconds, double late_seconds);

 private:
  enum class Mode { kTeam, kAlone, kTeamAgain };
  // Some recent runs of one kind.
  class Mean {
   public:
    void Add(double seconds);
    double seconds() const { return seconds_; }
    void Clear() { *this = {}; }

   private:
    double seconds_ = 0;
    int count_ = 0;
  };
  void Try(Mode mode, int runs);

  Mode mode_ = Mode::kTeam;
  int runs_left_ = 0;        // in this mode; of kTeam: before anyone may try alone
  int late_runs_ = 0;        // of the team, one behind the other
  int stay_ = 0, rest_ = 0;  // runs alone, and of the team, before the other is tried again
  Mean team_, alone_;
};

}  // namespace tilesmith
