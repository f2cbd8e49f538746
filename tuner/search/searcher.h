// Searchers: who decides which configs to try. A searcher only chooses; the loop (tune.h) measures and logs.
// A searcher has no clock and prints nothing: what it chooses follows from the space, the seed and the
// outcomes it was told, in their order.
//
// A new searcher is one file, plus one line in searcher.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "templates/base/conv_template.h"
#include "tuner/records/record.h"

namespace tilesmith {

class TrainingHistory;

struct TrialOutcome {
  Config config;
  std::optional<double> seconds;  // absent when the trial failed
  bool early_stopped = false;     // hopeless: seconds is rough
  double relative_error = 0;      // one standard error of seconds, as a share of it; 0: unknown
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  // Up to n configs, valid, distinct, neither returned before nor told by Update. Fewer when the space holds
  // no more that can be found; none means exhausted.
  virtual std::vector<Config> NextBatch(size_t n) = 0;
  // Results of configs, its own or from a log. Configs outside the space are ignored.
  virtual void Update(std::span<const TrialOutcome> outcomes) = 0;
};

struct SearchProblem {
  ConvWorkload workload;
  Target cpu;
  const ConvTemplate* conv_template = nullptr;
  ConfigSpace space;  // conv_template->Space(workload, cpu)
  uint64_t seed = 1;
  MeasureConditions conditions = {};
  // What other tasks and earlier runs taught; may be null. May grow while the searcher lives.
  std::shared_ptr<const TrainingHistory> history = nullptr;
};

// The template's default, to begin with; nothing where the space, which may be cut down, does not hold it.
std::optional<uint64_t> DefaultIndex(const SearchProblem& problem);

struct SearcherInfo {
  std::string_view name;
  std::string_view help;
  std::unique_ptr<Searcher> (*make)(const SearchProblem& problem);
  bool learns = false;  // from SearchProblem::history
};
// Every searcher.
std::span<const SearcherInfo> Searchers();
// Throws Error(kUsage) naming the known searchers.
const SearcherInfo& FindSearcher(std::string_view name);
// FindSearcher; also throws Error(kEnvironment) where the searcher learns and XGBoost is not installed.
const SearcherInfo& RequireSearcher(std::string_view name);

std::unique_ptr<Searcher> MakeGridSearcher(const SearchProblem& problem);
std::unique_ptr<Searcher> MakeRandomSearcher(const SearchProblem& problem);
std::unique_ptr<Searcher> MakeGeneticSearcher(const SearchProblem& problem);
std::unique_ptr<Searcher> MakeCoordinateSearcher(const SearchProblem& problem);
std::unique_ptr<Searcher> MakeModelSearcher(const SearchProblem& problem);      // learns throughputs
std::unique_ptr<Searcher> MakeRankModelSearcher(const SearchProblem& problem);  // learns which is faster

}  // namespace tilesmith
