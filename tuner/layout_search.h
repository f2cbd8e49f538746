// The part of tuning a task that is about other layouts than the fastest: a graph tuner can only choose pairs
// of layouts it has good records for, so trials are spent on the others on purpose.
//
// Which pairs are worth having follows from an exchange argument. In any plan, a conv that uses the pair p
// could use its fastest pair instead, with a transform on either side. So an optimal plan uses p only where
//
//     seconds(p) <= seconds(fastest) + transform of the input + transform of the output,
//
// and WorthHavingSeconds bounds the right-hand side. A pair beyond it needs no good record, only one that
// shows so. The others get a search of their own: the task's best configs moved there, then steps from the
// pair's best config, one knob at a time, until several in a row bring nothing.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "templates/base/conv_template.h"
#include "tuner/search/config_sampling.h"
#include "tuner/trial_book.h"

namespace tilesmith {

// A graph tuner can only choose layouts it has records for. After the search, good configs are therefore
// moved to every other pair of layouts and measured there too.
//
// `config` moved to the layouts of `pair`. Where that is invalid, the nearest valid config: as few other
// knobs changed as possible (at most two), by as few steps as possible. nullopt when there is none, or when
// `config` is not of the space.
std::optional<Config> Transplant(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                 const ConfigSpace& space, const Config& config, const LayoutPair& pair);

// The most a pair of layouts may take and still be of use, where the fastest takes best_seconds. A transform
// reads and writes its tensor once; it is taken to be slower than on any machine in use.
double WorthHavingSeconds(const ConvWorkload& workload, double best_seconds);

// Decides what to measure next; whoever measures enters the record in the book it asks with. Neither clock
// nor output; the choices follow from the seed and the records.
class LayoutSearch {
 public:
  struct Lane {  // one template that computes the workload
    const ConvTemplate* conv_template = nullptr;
    const ConfigSpace* space = nullptr;
  };
  // The lanes' spaces outlive it.
  LayoutSearch(const ConvWorkload& workload, const Target& cpu, std::vector<Lane> lanes, uint64_t seed);
  LayoutSearch(const LayoutSearch&) = delete;
  LayoutSearch& operator=(const LayoutSearch&) = delete;

  struct Candidate {
    size_t lane = 0;
    Config config;
    LayoutPair layouts;
    double stop_above_seconds = 0;  // compared with its own pair: see TrialRequest
  };
  // nullopt when every pair has what it needs, or waits for its trial: each call is taken for a trial of the
  // pair, which asks for no other one until the book has its record.
  std::optional<Candidate> Next(const TrialBook& book);

  // Every pair of layouts that some template's knobs allow.
  int pairs() const { return static_cast<int>(pairs_.size()); }
  // Trials that Next asked for.
  const std::map<LayoutPair, int>& trials() const { return trials_; }

 private:
  struct Pair {
    LayoutPair layouts;
    int trials = 0;
    int barren = 0;  // trials in a row that did not make it faster
    double best_seconds = std::numeric_limits<double>::infinity();  // before the trial last asked for
    bool exhausted = false;
    std::optional<Candidate> awaited = {};  // asked for and not known yet
  };
  enum class Need { kRecord, kSearch, kNothing };
  static void Judge(Pair& pair, const Record* best);
  Need NeedOf(const Pair& pair, const Record* best, double worth_seconds) const;
  std::optional<Candidate> CandidateFor(const Pair& pair, const TrialBook& book, const Record* best);
  std::optional<Candidate> MovedHere(const Pair& pair, const TrialBook& book) const;
  std::optional<Candidate> StepFrom(const Record& best, const TrialBook& book);
  const Lane* LaneOf(const std::string& template_name) const;

  ConvWorkload workload_;
  Target cpu_;
  std::vector<Lane> lanes_;
  std::vector<Pair> pairs_;
  std::map<LayoutPair, int> trials_;
  RandomSource random_;
};

}  // namespace tilesmith
