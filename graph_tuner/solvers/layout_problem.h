// The layout problem, without any ops in it: pairwise discrete minimisation.
//
// Variables have a handful of options each; the cost of an assignment x is
//
//     sum_v unary_v[x_v]  +  sum_{edges (a, b)} matrix_ab[x_a][x_b]
//
// with infinite entries for what is not allowed. build_problem.h turns a network into one of these; the
// solvers know nothing else.
//
// Conversions shared by several consumers are charged once and still stay pairwise. A tensor leaves its
// producer in a form that depends on the producer's option; each consumer's option says which form it reads;
// convert[p][f] >= 0 is what form f costs when the producer chose p (0 when it comes in that form). For every
// form f that at least two consumers could read there is a variable b_f in {0, 1}, "f is materialised":
//     edge (producer, b_f):  convert[p][f] when b_f = 1, else 0
//     edge (consumer, b_f):  infinite when the consumer reads f and b_f = 0, else 0
// Proof that the minimum is the intended cost: fix all options but the b's. A b_f read by somebody must be 1,
// any other is best at 0 because convert >= 0. What remains is the sum of convert[p][f] over the distinct
// forms read. A form that one consumer alone can read needs no variable: its cost lies on the edge
// (producer, consumer).
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tilesmith {

constexpr double kForbidden = std::numeric_limits<double>::infinity();

// Dense, row-major.
struct CostMatrix {
  CostMatrix() = default;
  CostMatrix(int rows, int cols)
      : rows(rows), cols(cols), values(static_cast<size_t>(rows) * static_cast<size_t>(cols)) {}
  double& at(int row, int col) {
    return values[static_cast<size_t>(row) * static_cast<size_t>(cols) + static_cast<size_t>(col)];
  }
  double at(int row, int col) const {
    return values[static_cast<size_t>(row) * static_cast<size_t>(cols) + static_cast<size_t>(col)];
  }

  int rows = 0, cols = 0;
  std::vector<double> values;
};

// One option per variable.
using Assignment = std::vector<int>;

class LayoutProblem {
 public:
  struct Variable {
    std::string name;           // for messages
    std::vector<double> costs;  // of each option; at least one
  };
  // The matrix of an edge has the options of the lower variable id as its rows.
  using Boost = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Variable, CostMatrix>;
  using VarId = Boost::vertex_descriptor;  // 0..size()-1

  VarId AddVariable(std::string name, std::vector<double> costs);
  void AddUnary(VarId var, int option, double cost);
  // Adds `costs`, whose rows are a's options, to what the edge carries already. Precondition: a != b.
  void AddPairwise(VarId a, VarId b, const CostMatrix& costs);

  size_t size() const { return boost::num_vertices(graph_); }
  const Variable& variable(VarId var) const { return graph_[var]; }
  int Options(VarId var) const { return static_cast<int>(graph_[var].costs.size()); }
  const Boost& boost() const { return graph_; }

 private:
  Boost graph_;
};

// The lower and the higher id: rows and columns of the edge's matrix.
std::pair<LayoutProblem::VarId, LayoutProblem::VarId> Endpoints(
    const LayoutProblem::Boost& graph, const LayoutProblem::Boost::edge_descriptor& edge);

// The formula above, term by term: what every solver's answer is checked with.
double Evaluate(const LayoutProblem& problem, const Assignment& assignment);

// A consumer of a tensor: which form each of its options reads, kReadsNothing when none.
struct TensorUse {
  LayoutProblem::VarId consumer = 0;
  std::vector<int> reads;
};
constexpr int kReadsNothing = -1;

// Charges the conversions of one tensor as described at the top. convert: producer's options x forms, all
// >= 0. A consumer that uses the tensor several times in the same way is charged once.
void AddConversions(LayoutProblem& problem, LayoutProblem::VarId producer, const CostMatrix& convert,
                    const std::vector<TensorUse>& uses);

}  // namespace tilesmith
