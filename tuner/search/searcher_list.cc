// The list of searchers. A new one is a line here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "layouts/base/error.h"
#include "tuner/cost_model/boosted_trees.h"
#include "tuner/search/searcher.h"

namespace tilesmith {

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
