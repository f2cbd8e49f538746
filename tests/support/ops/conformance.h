// ONNX's own test cases, from Debian's package libonnx-testdata, run through whatever executes a graph.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ops/graph/graph.h"

namespace tilesmith {

// Computes the outputs of an imported, not yet optimised graph.
using RunGraph = std::function<std::vector<Tensor>(const Graph& graph, const std::vector<Tensor>& inputs)>;

struct ConformanceReport {
  std::vector<std::string> ran;                             // names of cases
  std::map<std::string, std::vector<std::string>> skipped;  // names of cases, by the importer's reason
  std::set<std::string> failed;                             // names of cases, of those that ran
  std::vector<std::string> failures;                        // "name: what differs"
};

// Whether the package is installed.
bool HaveConformanceData();

// Runs every case. A case with several inputs runs with
// all of them as activations and with all but the first as constants (weights), where the importer accepts
// it; it is skipped when it accepts neither. Results must satisfy |a - b| <= 1e-7 + 1e-3 * |b|, the tolerance
// of ONNX's backend test runner, with b the stored output.
ConformanceReport RunConformance(const RunGraph& run);

// The report as text: how many cases there are, ran, and were skipped for which reason.
std::string DescribeConformance(const ConformanceReport& report);

// How many cases of single nodes there are, which tells versions of the package apart.
size_t CountNodeCases();

// What becomes of the cases that consist of one operator's nodes.
struct OperatorCoverage {
  int taken = 0, cases = 0;  // how many are imported, of how many
  std::set<std::string>
      refusals;  // the importer's reasons for not taking the others, without the node's name
};
// Every operator that has such a case and an importer. A case is taken if it is in one of RunConformance's
// ways.
std::map<std::string, OperatorCoverage> CoverOperators();

}  // namespace tilesmith
