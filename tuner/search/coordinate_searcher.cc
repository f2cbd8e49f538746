// Coordinate descent: all values of one knob at the best point, then the next knob, round and round. The
// point only moves when the other is faster beyond measuring noise. Where no knob helps any more, it starts
// again: from the best point with some knobs changed, or from a random one.
//
// Source: original; the test is a one-sided z-test of two means.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "tuner/search/config_sampling.h"
#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

constexpr double kZ = 1.64;                 // 5% of moves are for nothing
constexpr double kUnknownError = 0.005;     // relative, of a measurement that does not say
constexpr double kRoughError = 0.05;        // of an early-stopped one
constexpr double kRandomRestart = 0.4;      // else the best point, perturbed
constexpr int kPerturbations = 3;           // knobs
constexpr int kPerturbationAttempts = 100;  // until one is valid and new
constexpr size_t kStarts = 4;               // points to choose the first start from

class CoordinateSearcher : public Searcher {
 public:
  explicit CoordinateSearcher(const SearchProblem& problem)
      : space_(problem.space),
        sampler_(space_),
        random_(problem.seed),
        default_(DefaultIndex(problem)),
        order_(space_.knobs().size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
  }

  std::vector<Config> NextBatch(size_t n) override {
    std::vector<uint64_t> batch;
    if (!started_) {
      if (default_) Take(*default_, batch);
      while (batch.size() < std::min(n, kStarts)) {
        const std::optional<uint64_t> index = sampler_.Draw(taken_, random_);
        if (!index) break;
        Take(*index, batch);
      }
      started_ = true;
    }
    while (batch.empty()) {
      if (!centre_) centre_ = start_ && known_.contains(*start_) ? start_ : Best();
      if (!centre_) return Restarted(batch);
      Move();
      if (quiet_knobs_ >= order_.size()) return Restarted(batch);
      AddLine(n, batch);
    }
    return Configs(batch);
  }

  void Update(std::span<const TrialOutcome> outcomes) override {
    for (const TrialOutcome& outcome : outcomes) {
      const std::optional<uint64_t> index = space_.IndexOf(outcome.config);
      if (!index) continue;
      taken_.insert(*index);
      if (!outcome.seconds) continue;
      const double relative = outcome.early_stopped        ? kRoughError
                              : outcome.relative_error > 0 ? outcome.relative_error
                                                           : kUnknownError;
      known_[*index] = {*outcome.seconds, relative * *outcome.seconds};
    }
  }

 private:
  struct Timing {
    double seconds = 0, error = 0;
  };

  void Take(uint64_t index, std::vector<uint64_t>& batch) {
    if (taken_.insert(index).second) batch.push_back(index);
  }

  std::vector<Config> Configs(const std::vector<uint64_t>& indices) const {
    std::vector<Config> configs;
    configs.reserve(indices.size());
    for (uint64_t index : indices) configs.push_back(space_.At(index));
    return configs;
  }

  std::optional<uint64_t> Best() const {
    std::optional<uint64_t> best;
    for (const auto& [index, timing] : known_) {
      if (!best || std::pair(timing.seconds, index) < std::pair(known_.at(*best).seconds, *best))
        best = index;
    }
    return best;
  }

  // The points that differ from the centre in one knob, valid ones, nearest values first.
  std::vector<uint64_t> Line(size_t knob) const {
    uint64_t radix = 1;
    for (size_t k = 0; k < knob; ++k) radix *= space_.knobs()[k].values.size();
    const auto count = static_cast<int64_t>(space_.knobs()[knob].values.size());
    const auto at = static_cast<int64_t>(*centre_ / radix % static_cast<uint64_t>(count));
    std::vector<uint64_t> line;
    for (int64_t step = 1; step < count; ++step) {
      for (int64_t position : {at - step, at + step}) {
        if (position < 0 || position >= count) continue;
        const uint64_t index = *centre_ + static_cast<uint64_t>(position - at) * radix;
        if (space_.IsValid(index)) line.push_back(index);
      }
    }
    return line;
  }

  bool Faster(const Timing& a, const Timing& b) const {
    return b.seconds - a.seconds > kZ * std::hypot(a.error, b.error);
  }

  // To the fastest point measured on the current line, if it is significantly faster.
  void Move() {
    if (!line_) return;
    uint64_t best = *centre_;
    for (uint64_t index : Line(order_[*line_])) {
      const auto known = known_.find(index);
      if (known != known_.end() && known->second.seconds < known_.at(best).seconds) best = index;
    }
    if (best != *centre_ && Faster(known_.at(best), known_.at(*centre_))) {
      centre_ = best;
      quiet_knobs_ = 0;
    }
  }

  // Turns to the next knob that has anything to measure.
  void AddLine(size_t n, std::vector<uint64_t>& batch) {
    if (!line_ || !LineIsOpen()) {
      line_ = line_ ? (*line_ + 1) % order_.size() : 0;
      ++quiet_knobs_;
    }
    for (uint64_t index : Line(order_[*line_])) {
      if (batch.size() < n) Take(index, batch);
    }
  }

  bool LineIsOpen() const {
    const std::vector<uint64_t> line = Line(order_[*line_]);
    return std::any_of(line.begin(), line.end(), [this](uint64_t index) { return !taken_.contains(index); });
  }

  std::vector<Config> Restarted(std::vector<uint64_t>& batch) {
    centre_.reset();
    line_.reset();
    quiet_knobs_ = 0;
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.Below(i)]);
    const std::optional<uint64_t> start = NewStart();
    if (!start) return {};
    Take(*start, batch);
    start_ = start;
    return Configs(batch);
  }

  std::optional<uint64_t> NewStart() {
    const std::optional<uint64_t> best = Best();
    if (best && !random_.Chance(kRandomRestart)) {
      for (int attempt = 0; attempt < kPerturbationAttempts; ++attempt) {
        uint64_t index = *best;
        for (int i = 0; i < kPerturbations; ++i) index = MutateKnob(space_, index, random_);
        if (!taken_.contains(index) && space_.IsValid(index)) return index;
      }
    }
    return sampler_.Draw(taken_, random_);
  }

  const ConfigSpace space_;
  ValidSampler sampler_;
  RandomSource random_;
  std::optional<uint64_t> default_;
  std::vector<size_t> order_;  // of the knobs
  std::unordered_set<uint64_t> taken_;
  std::unordered_map<uint64_t, Timing> known_;
  bool started_ = false;
  std::optional<uint64_t> centre_;  // known, when set
  std::optional<uint64_t> start_;   // where the last restart went
  std::optional<size_t> line_;      // position in order_
  size_t quiet_knobs_ = 0;          // lines in a row that brought nothing
};

}  // namespace

std::unique_ptr<Searcher> MakeCoordinateSearcher(const SearchProblem& problem) {
  return std::make_unique<CoordinateSearcher>(problem);
}

}  // namespace tilesmith
