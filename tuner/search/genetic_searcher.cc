#include <algorithm>
#include <map>

#include "tuner/search/config_sampling.h"
#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

constexpr size_t kPopulation = 32;       // the best configs seen, who breed
constexpr size_t kFirstGeneration = 24;  // configs drawn at random before breeding starts
constexpr size_t kTournament = 3;
constexpr double kCrossover = 0.5;   // else the child is a copy of one parent, mutated
constexpr double kFreshBlood = 0.1;  // share of random configs, against premature convergence
constexpr int kBreedAttempts = 64;   // until a child is valid and new; then a random config instead

// Works on positions of knob values rather than on configs: cheap to recombine.
class GeneticSearcher : public Searcher {
 public:
  explicit GeneticSearcher(const SearchProblem& problem)
      : space_(problem.space), sampler_(space_), random_(problem.seed), first_(DefaultIndex(problem)) {}

  std::vector<Config> NextBatch(size_t n) override {
    std::vector<Config> batch;
    while (batch.size() < n) {
      const std::optional<uint64_t> index = Choose();
      if (!index) break;
      taken_.insert(*index);
      batch.push_back(space_.At(*index));
    }
    return batch;
  }

  void Update(std::span<const TrialOutcome> outcomes) override {
    for (const TrialOutcome& outcome : outcomes) {
      const std::optional<uint64_t> index = space_.IndexOf(outcome.config);
      if (!index) continue;
      taken_.insert(*index);
      if (outcome.seconds) population_.emplace(*outcome.seconds, *index);
    }
    while (population_.size() > kPopulation) population_.erase(std::prev(population_.end()));
  }

 private:
  std::optional<uint64_t> Choose() {
    const std::optional<uint64_t> first = std::exchange(first_, std::nullopt);
    if (first && !taken_.contains(*first)) return first;
    if (taken_.size() >= kFirstGeneration && population_.size() >= 2 && !random_.Chance(kFreshBlood)) {
      for (int attempt = 0; attempt < kBreedAttempts; ++attempt) {
        const uint64_t child = Breed();
        if (!taken_.contains(child) && space_.IsValid(child)) return child;
      }
    }
    return sampler_.Draw(taken_, random_);
  }

  // The best of a few members; the population is sorted by time.
  uint64_t Parent() {
    size_t best = population_.size() - 1;
    for (size_t i = 0; i < kTournament; ++i) best = std::min<size_t>(best, random_.Below(population_.size()));
    return std::next(population_.begin(), static_cast<ptrdiff_t>(best))->second;
  }

  uint64_t Breed() {
    uint64_t child = Parent();
    if (random_.Chance(kCrossover)) {
      child = CrossKnobs(space_, child, Parent(), random_);
      if (random_.Chance(0.5)) return child;
    }
    do {
      child = MutateKnob(space_, child, random_);
    } while (random_.Chance(0.3));
    return child;
  }

  const ConfigSpace space_;
  ValidSampler sampler_;
  RandomSource random_;
  std::optional<uint64_t> first_;
  std::unordered_set<uint64_t> taken_;
  std::multimap<double, uint64_t> population_;  // seconds to index, the best kPopulation
};

}  // namespace

std::unique_ptr<Searcher> MakeGeneticSearcher(const SearchProblem& problem) {
  return std::make_unique<GeneticSearcher>(problem);
}

}  // namespace tilesmith
