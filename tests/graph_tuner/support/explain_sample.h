// What the tests of explanations explain: random networks with made-up candidates and prices.
#pragma once

#include <algorithm>
#include <vector>

#include "graph_tuner/explain/explain.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/graph_tuner/support/synthetic_fusion.h"

namespace tilesmith {

// A random network with its candidates, fused ones among them, and prices.
struct ExplainSample {
  explicit ExplainSample(uint64_t seed, int nodes)
      : seed(seed), graph(RandomNetwork(seed, nodes)), costs(seed) {}

  NetworkProblem Prepare(const GraphTuneOptions& options = SyntheticOptions()) {
    const std::vector<int64_t> blocks = seed % 3 ? std::vector<int64_t>{1, 8} : std::vector<int64_t>{8, 16};
    Candidates candidates = FindCandidates(graph, SyntheticLog(graph, blocks, seed), SyntheticCpu(), 2);
    AddFusedCandidates(graph, blocks, seed, candidates);
    std::erase_if(candidates, [](const auto& entry) { return entry.second.empty(); });
    return {graph, std::move(candidates), costs, options};
  }

  uint64_t seed;
  Graph graph;
  SyntheticCosts costs;
};

// Nodes that plans have.
inline std::vector<Graph::NodeId> PlannedNodes(const Graph& graph, const Plan& plan) {
  std::vector<Graph::NodeId> nodes;
  for (const NodePlan& node : plan.nodes) nodes.push_back(graph.Find(node.node).value());
  return nodes;
}

// At most so many plans there are, transforms left aside.
inline double Combinations(const BuiltProblem& built) {
  double count = 1;
  for (Graph::NodeId node = 0; node < built.nodes.size(); ++node)
    count *= static_cast<double>(std::max<size_t>(1, ChoicesOf(built, node).size()));
  return count;
}

}  // namespace tilesmith
