// Baselines: what a plan has to beat to be worth the trouble of choosing layouts at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph_tuner/problem/graph_tune.h"

namespace tilesmith {

struct Baseline {
  std::string name;
  Restriction restriction;
};

// "best record of each conv" (what tuning alone gives: the fastest schedule of every workload whatever its
// layouts, the other ops as cheap as that allows), where types are mixed "f32 only" and "bf16 wherever it can
// be", then one layout wherever it is possible: "NCHW8c everywhere", and the same for NCHW16c, NCHW32c, NHWC
// and NCHW.
std::vector<Baseline> Baselines(Precision precision = Precision::kF32);

struct PlannedBaseline {
  std::string name;
  std::optional<Plan> plan;  // what is to be run; none where `note` says why
  // "no candidate in NCHW32c", "the same as the plan", "the same as NHWC everywhere", "no plan with so small
  // weights", "no plan with so small an error"; of one that is to be run in which not every conv writes its
  // layout: "12 of 53 convolutions in it".
  std::string note;
};

// Solves every baseline, by the log's costs; of equal ones the first is kept. Errors are GraphTune's; costs
// that are not known yet are asked for.
std::vector<PlannedBaseline> PlanBaselines(const NetworkProblem& problem,
                                           std::optional<int64_t> max_weight_bytes = {});

// Baselines that are the plan itself need no run.
void DropPlan(const Plan& plan, std::vector<PlannedBaseline>& baselines);

}  // namespace tilesmith
