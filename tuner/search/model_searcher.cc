// Model-guided search. A cost model is trained on what was measured, on top of one that knows other tasks and
// earlier logs; it ranks candidates, and the best are measured. In a space small enough to list, the
// candidates are all of it; in a larger one they are bred from the best known with the model as fitness.
//
// A share of every batch is not the model's choice: what was fastest in similar tasks, random configs,
// against what the model cannot know it does not know, and neighbours of the best. Of configs that the model
// cannot tell apart only a few are taken.
//
// Sources: T. Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018 (model, epsilon-greedy,
// diversity); L. Zheng et al., "Ansor", OSDI 2020, section 5 (evolution with the model as fitness).
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tuner/cost_model/training_history.h"
#include "tuner/search/config_sampling.h"
#include "tuner/search/searcher.h"

namespace tilesmith {
namespace {

constexpr size_t kFirstRandom = 8;       // configs before there is a model, without a history
constexpr size_t kMinBatch = 4;          // while little is known, batches are small: the model learns fast
constexpr size_t kBatchShare = 3;        // and then up to a third of what is known
constexpr uint64_t kListed = 1 << 16;    // combinations of a space that is listed
constexpr double kRandomShare = 0.08;    // of a batch
constexpr double kNeighbourShare = 0.2;  // of a batch
constexpr size_t kTransfers = 3;         // similar tasks that are asked for their fastest config
constexpr size_t kAlike = 2;             // configs of one predicted score in a batch
constexpr int kRankRounds = 60;          // pairs teach less a round than values
constexpr size_t kParents = 32;
constexpr size_t kChildren = 384;
constexpr int kGenerations = 3;

class ModelSearcher : public Searcher {
 public:
  ModelSearcher(const SearchProblem& problem, Objective objective)
      : problem_(problem),
        space_(problem_.space),
        schema_(KnobNames(space_)),
        objective_(objective),
        sampler_(space_),
        random_(problem.seed),
        first_(DefaultIndex(problem)) {}

  std::vector<Config> NextBatch(size_t n) override {
    std::vector<uint64_t> batch;
    Take(std::exchange(first_, std::nullopt), n, batch);
    TakeTransfers(n, batch);
    base_ = problem_.history ? problem_.history->Model(objective_) : nullptr;
    if (known_.size() < kFirstRandom && !base_) {
      n = std::min(n, kFirstRandom);
    } else if (batch.size() < n) {
      n = std::min(n, std::max(kMinBatch, known_.size() / kBatchShare));
      Train();
      Choose(n, batch);
    }
    FillRandomly(n, batch);
    std::vector<Config> configs;
    configs.reserve(batch.size());
    for (uint64_t index : batch) configs.push_back(space_.At(index));
    return configs;
  }

  void Update(std::span<const TrialOutcome> outcomes) override {
    for (const TrialOutcome& outcome : outcomes) {
      const std::optional<uint64_t> index = space_.IndexOf(outcome.config);
      if (!index) continue;
      taken_.insert(*index);
      known_[*index] = outcome.seconds.value_or(0);
    }
  }

 private:
  struct Candidate {
    uint64_t index = 0;
    float score = 0;
  };

  static std::vector<std::string> KnobNames(const ConfigSpace& space) {
    std::vector<std::string> names;
    for (const Knob& knob : space.knobs()) {
      if (knob.values.size() > 1) names.push_back(knob.name);
    }
    return names;
  }

  void Take(std::optional<uint64_t> index, size_t n, std::vector<uint64_t>& batch) {
    if (!index || batch.size() >= n || !taken_.insert(*index).second) return;
    batch.push_back(*index);
  }

  // What was fastest in similar tasks, or as near to it as this space allows. Those tasks may have got better
  // since the last batch.
  void TakeTransfers(size_t n, std::vector<uint64_t>& batch) {
    if (!problem_.history) return;
    const Config base = problem_.conv_template->Default(problem_.workload, problem_.cpu);
    for (const Config& config :
         problem_.history->FastestConfigs(*problem_.conv_template, problem_.workload, kTransfers)) {
      if (batch.size() >= n) return;
      if (!transferred_.insert(config.ToString()).second) continue;
      const std::optional<Config> nearest = NearestConfig(space_, base, config);
      if (nearest) Take(space_.IndexOf(*nearest), n, batch);
    }
  }

  void FillRandomly(size_t n, std::vector<uint64_t>& batch) {
    while (batch.size() < n) {
      const std::optional<uint64_t> index = sampler_.Draw(taken_, random_);
      if (!index) return;
      Take(index, n, batch);
    }
  }

  FeatureContext Context() const {
    return {problem_.conv_template, &problem_.workload, &problem_.cpu, problem_.conditions};
  }

  FeatureMatrix Features(const FeatureSchema& schema, const std::vector<uint64_t>& indices) const {
    FeatureMatrix features;
    for (uint64_t index : indices) schema.Append(Context(), space_.At(index), features);
    return features;
  }

  std::vector<float> BaseScores(const std::vector<uint64_t>& indices) const {
    return base_ ? base_->Predict(Features(base_->schema(), indices)) : std::vector<float>();
  }

  double BestSeconds() const {
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [index, seconds] : known_) {
      if (seconds > 0) best = std::min(best, seconds);
    }
    return best;
  }

  void Train() {
    trees_.reset();
    if (known_.empty()) return;
    const double best = BestSeconds();
    TrainingSet set;
    std::vector<uint64_t> indices;
    for (const auto& [index, seconds] : known_) {
      indices.push_back(index);
      set.scores.push_back(ScoreOf(seconds, best));
    }
    set.features = Features(schema_, indices);
    set.base = BaseScores(indices);
    set.group_sizes = {static_cast<uint32_t>(indices.size())};
    TrainingOptions options;
    options.objective = objective_;
    options.seed = problem_.seed;
    if (objective_ == Objective::kPairwiseRank) options.rounds = kRankRounds;
    trees_ = BoostedTrees::Train(set, options);
  }

  // Precondition: Train ran, and there is a base or something known.
  std::vector<Candidate> Score(const std::vector<uint64_t>& indices) const {
    const std::vector<float> base_scores = BaseScores(indices);
    const std::vector<float> scores =
        trees_ ? trees_->Predict(Features(schema_, indices), base_scores) : base_scores;
    std::vector<Candidate> candidates;
    candidates.reserve(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) candidates.push_back({indices[i], scores[i]});
    return Sorted(std::move(candidates));
  }

  static std::vector<Candidate> Sorted(std::vector<Candidate> candidates) {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.score != b.score ? a.score > b.score : a.index < b.index;
    });
    return candidates;
  }

  // Measured configs, fastest first.
  std::vector<uint64_t> Fastest(size_t n) const {
    std::vector<std::pair<double, uint64_t>> ok;
    for (const auto& [index, seconds] : known_) {
      if (seconds > 0) ok.emplace_back(seconds, index);
    }
    std::sort(ok.begin(), ok.end());
    if (ok.size() > n) ok.resize(n);
    std::vector<uint64_t> indices;
    indices.reserve(ok.size());
    for (const auto& [seconds, index] : ok) indices.push_back(index);
    return indices;
  }

  std::vector<uint64_t> Untaken(const std::vector<uint64_t>& indices) const {
    std::vector<uint64_t> left;
    std::copy_if(indices.begin(), indices.end(), std::back_inserter(left),
                 [this](uint64_t index) { return !taken_.contains(index); });
    return left;
  }

  std::vector<Candidate> Candidates() {
    if (space_.size() > kListed) return Evolve();
    if (listed_.empty()) {
      for (uint64_t index = 0; index < space_.size(); ++index) {
        if (space_.IsValid(index)) listed_.push_back(index);
      }
      listed_features_ = Features(schema_, listed_);
    }
    if (base_ != listed_base_) {
      listed_base_scores_ = BaseScores(listed_);
      listed_base_ = base_;
    }
    const std::vector<float> scores =
        trees_ ? trees_->Predict(listed_features_, listed_base_scores_) : listed_base_scores_;
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < listed_.size(); ++i) {
      if (!taken_.contains(listed_[i])) candidates.push_back({listed_[i], scores[i]});
    }
    return Sorted(std::move(candidates));
  }

  std::vector<Candidate> Evolve() {
    std::vector<uint64_t> parents = Fastest(kParents);
    std::unordered_map<uint64_t, float> seen;
    for (int generation = 0; generation < kGenerations; ++generation) {
      std::vector<uint64_t> children;
      const size_t fresh = generation == 0 ? kChildren / 2 : kChildren / 8;
      while (children.size() < kChildren) {
        const bool random = parents.size() < 2 || children.size() < fresh;
        const std::optional<uint64_t> child = random ? sampler_.Draw(taken_, random_) : Breed(parents);
        if (!child && random) break;
        if (child && !taken_.contains(*child) && seen.try_emplace(*child, 0.0F).second)
          children.push_back(*child);
      }
      const std::vector<Candidate> scored = Score(children);
      for (const Candidate& candidate : scored) seen[candidate.index] = candidate.score;
      parents = Fastest(kParents / 2);
      for (size_t i = 0; i < std::min(kParents, scored.size()); ++i) parents.push_back(scored[i].index);
    }
    std::vector<Candidate> all;
    all.reserve(seen.size());
    for (const auto& [index, score] : seen) all.push_back({index, score});
    return Sorted(std::move(all));
  }

  // nullopt when the child is not valid.
  std::optional<uint64_t> Breed(const std::vector<uint64_t>& parents) {
    uint64_t child = parents[random_.Below(parents.size())];
    if (random_.Chance(0.4))
      child = CrossKnobs(space_, child, parents[random_.Below(parents.size())], random_);
    do {
      child = MutateKnob(space_, child, random_);
    } while (random_.Chance(0.4));
    return space_.IsValid(child) ? std::optional(child) : std::nullopt;
  }

  void Choose(size_t n, std::vector<uint64_t>& batch) {
    // A history may mislead: until some of this task is known, it gets half of a batch.
    const double share = known_.size() < kFirstRandom ? 0.5 : kRandomShare;
    const auto random = static_cast<size_t>(std::lround(share * static_cast<double>(n)));
    const auto neighbours = static_cast<size_t>(std::lround(kNeighbourShare * static_cast<double>(n)));
    const std::vector<Candidate> candidates = Candidates();
    std::map<float, size_t> alike;
    for (const Candidate& candidate : candidates) {
      if (batch.size() + neighbours + random >= n) break;
      if (++alike[candidate.score] <= kAlike) Take(candidate.index, n, batch);
    }
    const std::vector<uint64_t> best = Fastest(1);
    if (!best.empty()) {
      for (const Candidate& near : Score(Untaken(space_.Neighbours(best[0])))) {
        if (batch.size() + random >= n) break;
        Take(near.index, n, batch);
      }
    }
    for (const Candidate& candidate : candidates) {
      if (batch.size() + random >= n) break;
      Take(candidate.index, n, batch);
    }
  }

  const SearchProblem problem_;
  const ConfigSpace& space_;  // problem_.space
  const FeatureSchema schema_;
  const Objective objective_;
  ValidSampler sampler_;
  RandomSource random_;
  std::optional<uint64_t> first_;
  std::unordered_set<uint64_t> taken_;
  std::unordered_set<std::string> transferred_;  // configs of other tasks
  std::map<uint64_t, double> known_;             // index to seconds; 0: failed
  // A small space: all of it, with what does not change from batch to batch.
  std::vector<uint64_t> listed_;
  FeatureMatrix listed_features_;
  std::shared_ptr<const CostModel> listed_base_;
  std::vector<float> listed_base_scores_;
  std::shared_ptr<const CostModel> base_;  // of the history; may be null
  std::optional<BoostedTrees> trees_;
};

}  // namespace

std::unique_ptr<Searcher> MakeModelSearcher(const SearchProblem& problem) {
  return std::make_unique<ModelSearcher>(problem, Objective::kRegression);
}

std::unique_ptr<Searcher> MakeRankModelSearcher(const SearchProblem& problem) {
  return std::make_unique<ModelSearcher>(problem, Objective::kPairwiseRank);
}

}  // namespace tilesmith
