#include "graph_tuner/problem/region_choice.h"

#include <numeric>

#include "graph_tuner/solvers/layout_problem.h"

namespace tilesmith {
namespace {

struct Label {
  RegionRole role = RegionRole::kPlanned;
  size_t band_class = 0;
  int level = 0;  // of the cache, its own buffer included
};

bool HasBuffer(RegionRole role) { return role == RegionRole::kKeep || role == RegionRole::kRoll; }

std::vector<Label> LabelsOf(const RegionCandidate& node) {
  std::vector<Label> labels = {{}};
  for (size_t c = 0; c < node.inside.size(); ++c) {
    if (!node.inside[c]) continue;
    for (int level = 0; level <= kRegionLevels; ++level) {
      labels.push_back({RegionRole::kEnd, c, level});
      if (level < node.inside[c]->buffer_levels) continue;
      labels.push_back({RegionRole::kKeep, c, level});
      if (!node.must_exist) labels.push_back({RegionRole::kRoll, c, level});
    }
  }
  return labels;
}

// Whether producer and reader are in one region.
bool Joined(const RegionEdge& edge, const Label& producer, const RegionCandidate& by, const Label& reader) {
  if (!edge.streams || !HasBuffer(producer.role) || reader.role == RegionRole::kPlanned) return false;
  if (producer.band_class != reader.band_class) return false;
  const int own = HasBuffer(reader.role) ? by.inside[reader.band_class]->buffer_levels : 0;
  return reader.level >= producer.level + own;
}

double CostOfEdge(const RegionEdge& edge, RegionRole producer, RegionRole reader, bool joined) {
  if (joined) return 0;
  if (producer == RegionRole::kRoll) return kForbidden;
  if (producer == RegionRole::kPlanned)
    return reader == RegionRole::kPlanned ? edge.planned_seconds : edge.enter_seconds;
  return reader == RegionRole::kPlanned ? edge.leave_seconds : edge.between_seconds;
}

int RootOf(std::vector<int>& parents, int node) {
  while (parents[static_cast<size_t>(node)] != node) node = parents[static_cast<size_t>(node)];
  return node;
}

}  // namespace

RegionChoice ChooseRegions(const std::vector<RegionCandidate>& nodes, const std::vector<RegionEdge>& edges,
                           std::string_view solver, const SolveLimits& limits) {
  LayoutProblem problem;
  std::vector<std::vector<Label>> labels;
  for (const RegionCandidate& node : nodes) {
    std::vector<double> costs;
    for (const Label& label : labels.emplace_back(LabelsOf(node)))
      costs.push_back(label.role == RegionRole::kPlanned ? node.planned_seconds
                                                         : node.inside[label.band_class]->seconds);
    problem.AddVariable(node.name, std::move(costs));
  }
  for (const RegionEdge& edge : edges) {
    const std::vector<Label>&from = labels[edge.producer], &to = labels[edge.reader];
    CostMatrix costs(static_cast<int>(from.size()), static_cast<int>(to.size()));
    for (size_t i = 0; i < from.size(); ++i) {
      for (size_t j = 0; j < to.size(); ++j) {
        const bool joined = Joined(edge, from[i], nodes[edge.reader], to[j]);
        costs.at(static_cast<int>(i), static_cast<int>(j)) =
            CostOfEdge(edge, from[i].role, to[j].role, joined);
      }
    }
    problem.AddPairwise(edge.producer, edge.reader, costs);
  }
  RegionChoice choice{std::vector<RegionMember>(nodes.size()), FindSolver(solver).solve(problem, limits)};
  if (!choice.solution.solved()) return choice;
  const auto chosen = [&](size_t node) -> const Label& {
    return labels[node][static_cast<size_t>(choice.solution.assignment[node])];
  };
  std::vector<int> parents(nodes.size());
  std::iota(parents.begin(), parents.end(), 0);
  for (const RegionEdge& edge : edges) {
    if (!Joined(edge, chosen(edge.producer), nodes[edge.reader], chosen(edge.reader))) continue;
    parents[static_cast<size_t>(RootOf(parents, static_cast<int>(edge.reader)))] =
        RootOf(parents, static_cast<int>(edge.producer));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Label& label = chosen(i);
    if (label.role != RegionRole::kPlanned)
      choice.members[i] = {label.role, label.band_class, RootOf(parents, static_cast<int>(i))};
  }
  return choice;
}

double CostOfRegions(const std::vector<RegionCandidate>& nodes, const std::vector<RegionEdge>& edges,
                     const std::vector<RegionMember>& members) {
  double cost = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const RegionMember& member = members[i];
    cost += member.role == RegionRole::kPlanned ? nodes[i].planned_seconds
                                                : nodes[i].inside[member.band_class]->seconds;
  }
  for (const RegionEdge& edge : edges) {
    const RegionMember &from = members[edge.producer], &to = members[edge.reader];
    const bool joined = edge.streams && HasBuffer(from.role) && from.region >= 0 && from.region == to.region;
    cost += CostOfEdge(edge, from.role, to.role, joined);
  }
  return cost;
}

}  // namespace tilesmith
