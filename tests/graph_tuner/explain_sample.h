// What the tests of explanations explain: random networks with made-up candidates and prices.
#pragma once

#include <algorithm>
#include <vector>

#include "graph_tuner/explain.h"
#include "tests/graph_tuner/synthetic.h"
#include "tests/graph_tuner/synthetic_fusion.h"

namespace tilesmith {

inline GraphTuneOptions SyntheticOptions() {
  GraphTuneOptions options;
  options.cpu = SyntheticCpu();
  options.threads = 2;
  return options;
}

// A random network with its candidates, fused ones among them, and prices.
struct ExplainSample {
  explicit ExplainSample(uint64_t seed, int nodes)
      : seed(seed), graph(RandomNetwork(seed, nodes)), costs(seed) {}

  PreparedProblem Prepare() {
    const std::vector<int64_t> blocks = seed % 3 ? std::vector<int64_t>{1, 8} : std::vector<int64_t>{8, 16};
    PreparedProblem prepared;
    prepared.candidates = FindCandidates(graph, SyntheticLog(graph, blocks, seed), SyntheticCpu(), 2);
    AddFusedCandidates(graph, blocks, seed, prepared.candidates);
    prepared.layouts = LayoutsOf(prepared.candidates);
    prepared.built = BuildProblem(graph, prepared.candidates, prepared.layouts, costs);
    return prepared;
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
    count *= double(std::max<size_t>(1, ChoicesOf(built, node).size()));
  return count;
}

}  // namespace tilesmith
