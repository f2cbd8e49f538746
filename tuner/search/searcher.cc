#include "tuner/search/searcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <unordered_set>

#include "layouts/base/error.h"
#include "tuner/cost_model/boosted_trees.h"
#include "tuner/search/config_sampling.h"

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

std::unique_ptr<Searcher> MakeRandomSearcher(const SearchProblem& problem) {
  return std::make_unique<RandomSearcher>(problem);
}

std::unique_ptr<Searcher> MakeGridSearcher(const SearchProblem& problem) {
  return std::make_unique<GridSearcher>(problem);
}

// The list of searchers. A new one is a line here.

std::optional<uint64_t> DefaultIndex(const SearchProblem& problem) {
  const Config preset = problem.conv_template->Default(problem.workload, problem.cpu);
  if (!problem.space.WhyInvalid(preset).empty()) return std::nullopt;
  return problem.space.IndexOf(preset);
}

std::span<const SearcherInfo> Searchers() {
  static constexpr std::array<SearcherInfo, 6> kSearchers = {
      {{"xgb", "boosted trees learn throughputs and propose", MakeModelSearcher, true},
       {"xgb-rank", "boosted trees learn which of two configs is faster", MakeRankModelSearcher, true},
       {"coordinate", "one knob after another, from several starts", MakeCoordinateSearcher},
       {"ga", "genetic: recombines and mutates the best configs so far", MakeGeneticSearcher},
       {"random", "valid configs uniformly, without replacement", MakeRandomSearcher},
       {"grid", "all valid configs in order", MakeGridSearcher}}};
  return kSearchers;
}

const SearcherInfo& FindSearcher(std::string_view name) {
  std::vector<std::string_view> known;
  for (const SearcherInfo& searcher : Searchers()) {
    if (searcher.name == name) return searcher;
    known.push_back(searcher.name);
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown tuner \"{}\" (known: {})", name, fmt::join(known, ", ")));
}

const SearcherInfo& RequireSearcher(std::string_view name) {
  const SearcherInfo& searcher = FindSearcher(name);
  if (searcher.learns) RequireXgboost();
  return searcher;
}

}  // namespace tilesmith
