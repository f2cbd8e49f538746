// Layout problems for the solvers' tests: seeded, the same everywhere.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph_tuner/solvers/layout_problem.h"

namespace tilesmith {

class RandomCosts {
 public:
  explicit RandomCosts(unsigned seed) : rng_(seed) {}
  int Below(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  double Cost(int forbidden_percent) {
    if (Below(100) < forbidden_percent) return kForbidden;
    return Below(4) == 0 ? Below(5) : Below(1000000) * 1e-6;  // ties as well as generic values
  }
  std::vector<double> Costs(int n, int forbidden_percent) {
    std::vector<double> costs;
    for (int i = 0; i < n; ++i) costs.push_back(Cost(forbidden_percent));
    return costs;
  }
  CostMatrix Matrix(int rows, int cols, int forbidden_percent) {
    CostMatrix costs(rows, cols);
    costs.values = Costs(rows * cols, forbidden_percent);
    return costs;
  }

 private:
  std::mt19937 rng_;
};

// Up to `most` variables of up to four options, and up to `edges_each` times as many edges, which may repeat.
inline LayoutProblem RandomProblem(unsigned seed, int most = 8, int edges_each = 2) {
  RandomCosts random(seed);
  LayoutProblem problem;
  const int variables = 1 + random.Below(most), forbidden = random.Below(3) * 15;
  for (int v = 0; v < variables; ++v)
    problem.AddVariable("v" + std::to_string(v), random.Costs(1 + random.Below(4), forbidden / 2));
  const int edges = random.Below(variables * edges_each);
  for (int e = 0; e < edges && variables > 1; ++e) {
    const auto a = LayoutProblem::VarId(random.Below(variables));
    const auto b = LayoutProblem::VarId(random.Below(variables));
    if (a == b) continue;
    problem.AddPairwise(a, b, random.Matrix(problem.Options(a), problem.Options(b), forbidden));
  }
  return problem;
}

// Dense, and without costs of single options, which are what makes a problem easy for bounds and heuristics.
inline LayoutProblem RandomDenseProblem(unsigned seed) {
  RandomCosts random(seed);
  LayoutProblem problem;
  const int variables = 4 + random.Below(4), forbidden = random.Below(3) * 12;
  for (int v = 0; v < variables; ++v)
    problem.AddVariable("v" + std::to_string(v),
                        std::vector<double>(static_cast<size_t>(2 + random.Below(3)), 0.0));
  for (LayoutProblem::VarId b = 1; b < problem.size(); ++b)
    for (LayoutProblem::VarId a = 0; a < b; ++a)
      if (random.Below(5) != 0)
        problem.AddPairwise(a, b, random.Matrix(problem.Options(a), problem.Options(b), forbidden));
  return problem;
}

// Every variable is joined to one earlier variable, or to both ends of an earlier edge: what RI and RII
// reduce to nothing.
inline LayoutProblem RandomSeriesParallelProblem(unsigned seed) {
  RandomCosts random(seed);
  LayoutProblem problem;
  const int variables = 2 + random.Below(9), forbidden = random.Below(2) * 10;
  std::vector<std::pair<int, int>> edges;
  auto join = [&](int a, int b) {
    problem.AddPairwise(static_cast<size_t>(a), static_cast<size_t>(b),
                        random.Matrix(problem.Options(a), problem.Options(b), forbidden));
    edges.emplace_back(a, b);
  };
  for (int v = 0; v < variables; ++v) {
    problem.AddVariable("v" + std::to_string(v), random.Costs(2 + random.Below(3), 0));
    if (v == 0) continue;
    if (edges.empty() || random.Below(3) == 0) {
      join(random.Below(v), v);
    } else {
      const auto [a, b] = edges[static_cast<size_t>(random.Below(static_cast<int>(edges.size())))];
      join(a, v);
      join(b, v);
    }
  }
  return problem;
}

// Networks of convs (two variables each), joins and concats, with conversions between all forms.
class RandomNetworkProblem {
 public:
  // With whole costs totals are exact however they are added up.
  RandomNetworkProblem(int forms, unsigned seed, int forbidden_percent = 0, bool whole_costs = false)
      : random_(seed),
        forms_(forms),
        forbidden_(forbidden_percent),
        whole_(whole_costs),
        reads_(static_cast<size_t>(forms)) {
    for (int i = 0; i < forms; ++i) reads_[static_cast<size_t>(i)] = i;
    last_ = Join({});
  }

  // Four branches that share their input's conversions and meet in a concat.
  void AddInceptionBlock() {
    std::vector<VarId> outs;
    std::vector<TensorUse> uses;
    for (int branch = 0; branch < 4; ++branch) {
      const auto [in, out] = Conv();
      uses.push_back({in, reads_});
      outs.push_back(out);
    }
    const VarId concat = Join(outs);
    AddConversions(problem, last_, Conversions(), uses);
    last_ = concat;
  }
  // Two convs, and a join that reads the block's input as well.
  void AddResidualBlock() {
    const auto [first_in, first_out] = Conv();
    const auto [second_in, second_out] = Conv();
    AddConversions(problem, first_out, Conversions(), {{second_in, reads_}});
    const VarId join = Join({second_out});
    AddConversions(problem, last_, Conversions(), {{first_in, reads_}, {join, reads_}});
    last_ = join;
  }
  // Each conv reads a concat of everything before it in the block.
  void AddDenseBlock(int layers) {
    std::vector<VarId> tensors = {last_};
    std::vector<std::vector<TensorUse>> uses(1);
    VarId read = last_;
    for (int layer = 0; layer < layers; ++layer) {
      const auto [in, out] = Conv();
      if (layer == 0)
        uses[0].push_back({in, reads_});
      else
        AddConversions(problem, read, Conversions(), {{in, reads_}});
      tensors.push_back(out);
      uses.emplace_back();
      read = Join({});
      for (auto& use : uses) use.push_back({read, reads_});
    }
    for (size_t i = 0; i < tensors.size(); ++i) AddConversions(problem, tensors[i], Conversions(), uses[i]);
    last_ = read;
  }
  void AddRandomBlock() {
    switch (random_.Below(4)) {
      case 0:
        return AddDenseBlock(2 + random_.Below(2));
      case 1:
        return AddInceptionBlock();
      default:
        return AddResidualBlock();
    }
  }

  LayoutProblem problem;

 private:
  using VarId = LayoutProblem::VarId;

  double Cost() { return whole_ ? random_.Below(100000) : random_.Cost(0); }

  std::pair<VarId, VarId> Conv() {
    const auto costs = std::vector<double>(static_cast<size_t>(forms_), 0.0);
    const VarId in = problem.AddVariable("in", costs), out = problem.AddVariable("out", costs);
    CostMatrix conv(forms_, forms_);
    for (double& cost : conv.values) cost = random_.Below(100) < forbidden_ ? kForbidden : Cost();
    conv.at(0, 0) = Cost();  // so that something is feasible
    problem.AddPairwise(in, out, conv);
    return {in, out};
  }

  // A node that runs in one form and is the only reader of its inputs.
  VarId Join(const std::vector<VarId>& inputs) {
    std::vector<double> costs;
    for (int i = 0; i < forms_; ++i) costs.push_back(Cost());
    const VarId join = problem.AddVariable("join", std::move(costs));
    for (VarId input : inputs) AddConversions(problem, input, Conversions(), {{join, reads_}});
    return join;
  }

  CostMatrix Conversions() {
    CostMatrix convert(forms_, forms_);
    for (int i = 0; i < forms_; ++i)
      for (int j = 0; j < forms_; ++j)
        convert.at(i, j) = i == j   ? 0
                           : whole_ ? 5000 + random_.Below(10000)
                                    : 0.05 + 0.001 * random_.Below(100);
    return convert;
  }

  RandomCosts random_;
  const int forms_, forbidden_;
  const bool whole_;
  std::vector<int> reads_;
  VarId last_ = 0;
};

// Five nodes a block.
inline LayoutProblem InceptionChain(int blocks, int forms, unsigned seed) {
  RandomNetworkProblem network(forms, seed);
  for (int block = 0; block < blocks; ++block) network.AddInceptionBlock();
  return std::move(network.problem);
}

inline LayoutProblem MixedNetwork(int variables, int forms, unsigned seed) {
  RandomNetworkProblem network(forms, seed, 10, true);
  while (static_cast<int>(network.problem.size()) < variables) network.AddRandomBlock();
  return std::move(network.problem);
}

// Every two variables joined: too wide for anything exact.
inline LayoutProblem Clique(int variables, int options, unsigned seed) {
  RandomCosts random(seed);
  LayoutProblem problem;
  for (int v = 0; v < variables; ++v) problem.AddVariable("v", random.Costs(options, 0));
  for (LayoutProblem::VarId b = 1; b < problem.size(); ++b)
    for (LayoutProblem::VarId a = 0; a < b; ++a) {
      CostMatrix costs(options, options);
      for (double& cost : costs.values) cost = 100.0 * random.Below(1000);
      problem.AddPairwise(a, b, costs);
    }
  return problem;
}

}  // namespace tilesmith
