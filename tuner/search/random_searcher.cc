#include "tuner/search/searcher.h"
#include "tuner/search/valid_sampler.h"

namespace tilesmith {
namespace {

// The template's default first, then valid configs uniformly, without replacement.
class RandomSearcher : public Searcher {
 public:
  explicit RandomSearcher(const SearchProblem& problem)
      : space_(problem.space), sampler_(space_), random_(problem.seed), first_(DefaultIndex(problem)) {}

  std::vector<Config> NextBatch(size_t n) override {
    std::vector<Config> batch;
    while (batch.size() < n) {
      std::optional<uint64_t> index = std::exchange(first_, std::nullopt);
      if (!index || taken_.contains(*index)) index = sampler_.Draw(taken_, random_);
      if (!index) break;
      taken_.insert(*index);
      batch.push_back(space_.At(*index));
    }
    return batch;
  }

  void Update(std::span<const TrialOutcome> outcomes) override {
    for (const TrialOutcome& outcome : outcomes) {
      if (const std::optional<uint64_t> index = space_.IndexOf(outcome.config)) taken_.insert(*index);
    }
  }

 private:
  const ConfigSpace space_;
  ValidSampler sampler_;
  RandomSource random_;
  std::optional<uint64_t> first_;
  std::unordered_set<uint64_t> taken_;
};

}  // namespace

std::unique_ptr<Searcher> MakeRandomSearcher(const SearchProblem& problem) {
  return std::make_unique<RandomSearcher>(problem);
}

}  // namespace tilesmith
