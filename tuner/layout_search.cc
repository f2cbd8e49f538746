#include "tuner/layout_search.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace tilesmith {
namespace {

// The knob's values but `current`, nearest in the knob's order first.
std::vector<int64_t> OtherValues(const Knob& knob, int64_t current) {
  const auto at = std::find(knob.values.begin(), knob.values.end(), current) - knob.values.begin();
  std::vector<ptrdiff_t> order;
  for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(knob.values.size()); ++i) {
    if (i != at) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [at](ptrdiff_t a, ptrdiff_t b) { return std::abs(a - at) < std::abs(b - at); });
  std::vector<int64_t> values;
  values.reserve(order.size());
  for (ptrdiff_t i : order) values.push_back(knob.values[i]);
  return values;
}

// Changes up to `changes` of the knobs from `first` on.
std::optional<Config> Repair(const ConfigSpace& space, const std::vector<const Knob*>& knobs, size_t first,
                             const Config& config, int changes) {
  for (size_t k = first; k < knobs.size(); ++k) {
    Config changed = config;
    for (int64_t value : OtherValues(*knobs[k], config.Get(knobs[k]->name))) {
      changed.Set(knobs[k]->name, value);
      if (changes == 1) {
        if (space.WhyInvalid(changed).empty()) return changed;
      } else if (auto repaired = Repair(space, knobs, k + 1, changed, changes - 1)) {
        return repaired;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Config> Transplant(const ConvTemplate& conv_template, const ConvWorkload& workload,
                                 const ConfigSpace& space, const Config& config, const LayoutPair& pair) {
  if (!space.IndexOf(config)) return std::nullopt;
  std::optional<Config> moved = conv_template.WithLayouts(workload, space, config, pair);
  if (!moved || space.WhyInvalid(*moved).empty()) return moved;
  const std::vector<std::string_view> layout_knobs = conv_template.LayoutKnobs();
  std::vector<const Knob*> others;
  for (const Knob& knob : space.knobs()) {
    if (std::find(layout_knobs.begin(), layout_knobs.end(), knob.name) == layout_knobs.end())
      others.push_back(&knob);
  }
  for (int changes : {1, 2}) {
    if (auto repaired = Repair(space, others, 0, *moved, changes)) return repaired;
  }
  return std::nullopt;
}

namespace {

constexpr int kMovedConfigs = 3;      // best configs of the task that every pair is offered
constexpr int kRecordTrials = 4;      // that may fail or stop early before a pair is given up
constexpr int kMinTrials = 4;         // before a pair is judged
constexpr int kPatience = 6;          // barren trials in a row that end a pair's search
constexpr double kSearchGain = 1.25;  // a search in a pair seldom makes it faster than by this
constexpr double kStopEarlyFactor = 1.1;
constexpr double kGain = 0.995;  // less is noise

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool IsFull(const Record* record) { return record != nullptr && !record->early_stopped; }

}  // namespace

double WorthHavingSeconds(const ConvWorkload& workload, double best_seconds) {
  constexpr double kBytesPerSecond = 8e9;
  const int64_t floats = ElementCount(workload.input_shape()) + ElementCount(workload.output_shape());
  constexpr double kReadAndWritten = 2;
  return best_seconds + kReadAndWritten * static_cast<double>(floats * sizeof(float)) / kBytesPerSecond;
}

LayoutSearch::LayoutSearch(const ConvWorkload& workload, const Target& cpu, std::vector<Lane> lanes,
                           uint64_t seed)
    : workload_(workload), cpu_(cpu), lanes_(std::move(lanes)), random_(seed) {
  std::vector<LayoutPair> pairs;
  for (const Lane& lane : lanes_) {
    const std::vector<LayoutPair> of_lane = lane.conv_template->LayoutPairs(workload_, *lane.space);
    pairs.insert(pairs.end(), of_lane.begin(), of_lane.end());
  }
  // A chain of layers keeps its layout: what reads and writes the same one comes first.
  std::sort(pairs.begin(), pairs.end(), [](const LayoutPair& a, const LayoutPair& b) {
    return std::make_pair(a.in != a.out, a) < std::make_pair(b.in != b.out, b);
  });
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (const LayoutPair& pair : pairs) pairs_.push_back({.layouts = pair});
}

LayoutSearch::Need LayoutSearch::NeedOf(const Pair& pair, const Record* best, double worth_seconds) const {
  if (pair.exhausted || pair.awaited) return Need::kNothing;
  if (!IsFull(best)) return pair.trials < kRecordTrials ? Need::kRecord : Need::kNothing;
  // What was moved here first may have been no good anywhere.
  const bool promising = best->seconds <= kSearchGain * worth_seconds || pair.trials < kMinTrials;
  return promising && pair.barren < kPatience ? Need::kSearch : Need::kNothing;
}

const LayoutSearch::Lane* LayoutSearch::LaneOf(const std::string& template_name) const {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    return lane.conv_template->Name() == template_name;
  });
  return found == lanes_.end() ? nullptr : &*found;
}

std::optional<LayoutSearch::Candidate> LayoutSearch::MovedHere(const Pair& pair,
                                                               const TrialBook& book) const {
  const auto moved = [&](const Lane& lane, const Config& config) -> std::optional<Candidate> {
    const std::optional<Config> here =
        Transplant(*lane.conv_template, workload_, *lane.space, config, pair.layouts);
    if (!here || book.Knows(lane.conv_template->Name(), *here)) return std::nullopt;
    return Candidate{static_cast<size_t>(&lane - lanes_.data()), *here, pair.layouts, kInfinity};
  };
  for (const Record* record : book.Top(kMovedConfigs)) {
    const Lane* lane = LaneOf(record->template_name);
    if (lane == nullptr) continue;
    if (auto candidate = moved(*lane, record->config)) return candidate;
  }
  // Where the best template has no config for the pair, any may do.
  for (const Lane& lane : lanes_) {
    if (auto candidate = moved(lane, lane.conv_template->Default(workload_, cpu_))) return candidate;
  }
  return std::nullopt;
}

std::optional<LayoutSearch::Candidate> LayoutSearch::StepFrom(const Record& best, const TrialBook& book) {
  const Lane* lane = LaneOf(best.template_name);
  const std::optional<uint64_t> index = lane ? lane->space->IndexOf(best.config) : std::nullopt;
  if (!index) return std::nullopt;
  const LayoutPair layouts = lane->conv_template->Layouts(workload_, best.config);
  std::vector<Config> steps;
  for (uint64_t neighbour : lane->space->Neighbours(*index)) {
    Config config = lane->space->At(neighbour);
    if (lane->conv_template->Layouts(workload_, config) == layouts &&
        !book.Knows(best.template_name, config)) {
      steps.push_back(std::move(config));
    }
  }
  if (steps.empty()) return std::nullopt;
  Config& chosen = steps[random_.Below(steps.size())];
  return Candidate{static_cast<size_t>(lane - lanes_.data()), std::move(chosen), best.layouts, kInfinity};
}

std::optional<LayoutSearch::Candidate> LayoutSearch::CandidateFor(const Pair& pair, const TrialBook& book,
                                                                  const Record* best) {
  std::optional<Candidate> candidate = MovedHere(pair, book);
  if (!candidate && IsFull(best)) candidate = StepFrom(*best, book);
  if (candidate && IsFull(best)) candidate->stop_above_seconds = kStopEarlyFactor * best->seconds;
  return candidate;
}

// Whether the trial asked for made its pair faster.
void LayoutSearch::Judge(Pair& pair, const Record* best) {
  if (IsFull(best) && best->seconds < kGain * pair.best_seconds) {
    pair.barren = 0;
    pair.best_seconds = best->seconds;
  } else {
    ++pair.barren;
  }
}

std::optional<LayoutSearch::Candidate> LayoutSearch::Next(const TrialBook& book) {
  const Record* fastest = book.Best();
  const double worth = fastest ? WorthHavingSeconds(workload_, fastest->seconds) : kInfinity;
  const std::map<LayoutPair, const Record*> best_of = book.BestOfPairs();
  const auto best = [&](const Pair& pair) {
    const auto found = best_of.find(pair.layouts);
    return found == best_of.end() ? nullptr : found->second;
  };
  for (Pair& pair : pairs_) {
    if (!pair.awaited) continue;
    if (!book.Knows(lanes_[pair.awaited->lane].conv_template->Name(), pair.awaited->config)) continue;
    Judge(pair, best(pair));
    pair.awaited.reset();
  }
  for (;;) {
    Pair* chosen = nullptr;
    std::pair<Need, int> chosen_rank;
    for (Pair& pair : pairs_) {
      const std::pair<Need, int> rank = {NeedOf(pair, best(pair), worth), pair.trials};
      if (rank.first == Need::kNothing || (chosen != nullptr && rank >= chosen_rank)) continue;
      chosen = &pair;
      chosen_rank = rank;
    }
    if (chosen == nullptr) return std::nullopt;
    std::optional<Candidate> candidate = CandidateFor(*chosen, book, best(*chosen));
    if (!candidate) {
      chosen->exhausted = true;
      continue;
    }
    if (const Record* known = best(*chosen); IsFull(known)) chosen->best_seconds = known->seconds;
    ++chosen->trials;
    ++trials_[chosen->layouts];
    chosen->awaited = candidate;
    return candidate;
  }
}

}  // namespace tilesmith
