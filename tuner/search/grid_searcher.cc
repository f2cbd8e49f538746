#include <unordered_set>

#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

// All valid configs in the order of their indices.
class GridSearcher : public Searcher {
 public:
  explicit GridSearcher(const SearchProblem& problem) : space_(problem.space) {}

  std::vector<Config> NextBatch(size_t n) override {
    std::vector<Config> batch;
    for (; batch.size() < n && next_ < space_.size(); ++next_) {
      if (known_.contains(next_)) continue;
      Config config = space_.At(next_);
      if (space_.WhyInvalid(config).empty()) batch.push_back(std::move(config));
    }
    return batch;
  }

  void Update(std::span<const TrialOutcome> outcomes) override {
    for (const TrialOutcome& outcome : outcomes) {
      const std::optional<uint64_t> index = space_.IndexOf(outcome.config);
      if (index && *index >= next_) known_.insert(*index);
    }
  }

 private:
  const ConfigSpace space_;
  uint64_t next_ = 0;
  std::unordered_set<uint64_t> known_;
};

}  // namespace

std::unique_ptr<Searcher> MakeGridSearcher(const SearchProblem& problem) {
  return std::make_unique<GridSearcher>(problem);
}

}  // namespace tilesmith
