// One task being tuned, a turn at a time, so that turns of several tasks can alternate.
//
// A task's life: Search as often as wanted, CoverLayouts once or more, Retime at the end. The loop over that
// is TuneNetwork (network_tuner.h), which decides about trials and time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/layout_search.h"
#include "tuner/measure/measurer.h"
#include "tuner/search/searcher.h"
#include "tuner/trial_book.h"
#include "tuner/tune.h"

namespace tilesmith {

// The end of tuning a task: what looks best is measured again, side by side.
//
// The fastest of hundreds of noisy timings is fast partly by luck, and a machine drifts in the minutes a
// search takes. So the contenders are timed again round robin, which lets a drift hit all alike. When a
// config that was not among them then looks best (because the rest turned out slower than they seemed), it is
// timed again in turn, until the best is one that was.
struct Retimed {
  Record record;  // as it was known
  TrialResult result;
};

// The configs to time again: those of `book` that are best over all and best of each pair, without those that
// already were by this run (`done`, by ScheduleText).
std::vector<Record> Contenders(const ConvWorkload& workload, const TrialBook& book, int top,
                               const std::set<std::string>& done);

// Times them round robin. `stopped` (not empty) is asked before every trial; the rounds completed until then
// count. A result without samples was never measured.
std::vector<Retimed> TimeAgain(const std::vector<Record>& contenders, int rounds, Measurer& measurer,
                               const std::function<bool()>& stopped);

// Several templates can compute one workload: who gets the next batch of trials.
//
// Every template starts with one trial and, the fastest first, goes on with one batch: a task whose time ends
// early has at least looked at all of them. From then on two batches of three go to the leader, the third to
// the least tried of those close behind it. Who is far behind drops out unless nobody else has configs left.
class TemplateRace {
 public:
  explicit TemplateRace(size_t templates) : runners_(templates) {}

  // nullopt when all are exhausted.
  std::optional<size_t> Next();
  // Whose first turn, a single trial, is to come.
  std::optional<size_t> NextUntried() const;
  // A turn, which may still go on; its best time is infinity while nothing has worked.
  void Tried(size_t runner, double best_seconds);
  // What became of it.
  void Improved(size_t runner, double best_seconds);
  void Exhausted(size_t runner) { runners_[runner].exhausted = true; }

 private:
  struct Runner {
    int turns = 0;
    double best_seconds = std::numeric_limits<double>::infinity();
    bool exhausted = false;
  };
  std::vector<Runner> runners_;
  int turn_ = 0;
};

// One call may do so much.
struct Turn {
  int trials = 16;                     // at most
  std::function<bool()> stopped = {};  // asked before every trial; empty: never
};

class TaskTuner {
 public:
  // Takes in what `request.resume` knows. `on_record`, which may be empty, is given each new record at once.
  // `measurer` outlives it. Throws Error(kUsage) for senseless options and unknown searchers,
  // Error(kNoCandidate) when no template is given. The turns throw what the measurer throws.
  TaskTuner(TuneRequest request, Measurer& measurer, std::function<void(const Record&)> on_record);
  ~TaskTuner();
  TaskTuner(const TaskTuner&) = delete;
  TaskTuner& operator=(const TaskTuner&) = delete;

  // The measurer's trials are this task's from now on. Precondition of the turns below: called since another
  // task's was.
  void Begin();

  // One batch for the template whose turn it is, after what is suggested and one trial of every template that
  // has had none. Returns how many trials were made: 0 when stopped or exhausted.
  int Search(const Turn& turn);
  // Trials in other pairs of layouts (layout_search.h), until every one that is worth it has a good record.
  int CoverLayouts(const Turn& turn);
  // The best again, side by side. False when `stopped` said so before the first round was over.
  bool Retime(const std::function<bool()>& stopped);

  const TuneRequest& request() const { return request_; }
  const TrialBook& book() const { return book_; }
  int trials() const { return book_.size(); }  // distinct configs, resumed ones included
  // Falls with every improvement; the last point is where the task stands.
  const std::vector<CurvePoint>& curve() const { return curve_; }
  bool exhausted() const { return exhausted_; }  // the searchers have no more configs
  const std::map<TrialStatus, int>& failures() const { return failures_; }
  int trials_measured() const { return trials_measured_; }  // by this object, re-timing not counted
  size_t templates() const { return lanes_.size(); }
  size_t templates_tried() const;  // of which the book has a trial
  // So many should be tried whatever the trials or the time: the likeliest and the most general.
  size_t LeastTemplates() const { return std::min<size_t>(lanes_.size(), 2); }
  int layout_pairs() const { return layouts_->pairs(); }
  // How many of `trials` for the whole task belong to CoverLayouts.
  int LayoutShare(int trials) const;
  // What Retime is going to take, in trials: about.
  int RetimingTrials() const;
  TuneResult Result() const;

 private:
  struct Lane {  // one template
    const ConvTemplate* conv_template = nullptr;
    ConfigSpace space;
    std::unique_ptr<Searcher> searcher;  // from the first Search on
  };
  void MakeLanes();
  void MakeSearchers();
  std::vector<TrialOutcome> OutcomesOf(const Lane& lane) const;
  void Resume();
  bool IsOf(const Lane& lane, const Record& record) const;
  void Teach();
  MeasureSession Session() const;
  bool Stopped(const Turn& turn) const { return turn.stopped && turn.stopped(); }
  int SuggestedTrials(int trials, const Turn& turn);
  int FirstTrials(int trials, const Turn& turn);
  void PrepareDefaults(int trials);
  size_t PrepareFrom(size_t first, const Lane& lane, std::span<const Config> configs);
  int SearchIn(size_t runner, int trials, const Turn& turn);
  TrialRequest ToSearch(const Lane& lane, const Config& config) const;
  TrialOutcome Finish(const Lane& lane, const Config& config, const TrialResult& trial, const char* purpose);
  Record ToRecord(const ConvTemplate& conv_template, const Config& config, const TrialResult& trial) const;
  TrialOutcome OutcomeOf(const Record& record) const;
  void Enter(const Record& record);
  void Log(const Record& record);
  void LogRetimed(const Record& known, const TrialResult& trial);

  TuneRequest request_;
  Measurer& measurer_;
  std::function<void(const Record&)> on_record_;
  std::vector<Lane> lanes_;
  TemplateRace race_;
  TrialBook book_;
  std::unique_ptr<LayoutSearch> layouts_;
  std::vector<CurvePoint> curve_;
  std::vector<Record> untaught_;  // not in the history yet
  bool exhausted_ = false;
  std::map<TrialStatus, int> failures_;
  int trials_measured_ = 0;
};

}  // namespace tilesmith
