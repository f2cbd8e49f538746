// MODEL, WORKLOAD or --suite NAME: what tune and bench work on.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/model.h"
#include "tools/cli/suite.h"
#include "tools/cli/tasks.h"
#include "tuner/records/record.h"

namespace tilesmith {

struct TargetOptions {
  ModelOptions model;  // model.model holds the positional, whichever it is
  std::string suite;
  // A suite's and single convolutions are taken as a quantised network has them: of u8 and i8 to u8, where an
  // activation that clamps is part of the limits. A suite loses the others, what is the same then, and goals.
  bool in_bytes = false;

  bool of_workloads() const;  // no MODEL, nor nothing
};
void DeclareTargets(Args& args, TargetOptions* options);

struct Targets {
  std::vector<ConvTask> tasks;  // of suites: each workload once per kind of weights and templates
  std::vector<Suite> suites;
  std::vector<Graph> graphs;  // of a MODEL, one for each size of its inputs (SizesOf)
  bool is_network() const { return !graphs.empty(); }
};
// Throws Error(kUsage) when it is neither of them, or both are given, or nothing is left of it in bytes.
Targets LoadTargets(const TargetOptions& options);
// Throws Error(kBadModel) too, when there are no tasks.
Targets LoadTargetsToTune(const TargetOptions& options);

// "NCHW16c -> NCHW32c".
std::string LayoutsText(const LayoutPair& layouts);

}  // namespace tilesmith
