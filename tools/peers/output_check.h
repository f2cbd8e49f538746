// What plans compute beside what ONNX Runtime does.
#pragma once

#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "tools/cli/machine.h"
#include "tools/cli/model.h"
#include "tools/cli/report.h"

namespace tilesmith {

struct PlanToCheck {
  std::string name;
  const Plan* plan = nullptr;  // null: not checked, `note` says why
  std::string note;
};

struct OutputCheck {
  std::string expected_from;        // "ONNX Runtime 1.30.0", or "the reference"
  std::vector<double> differences;  // of each plan, largest of all outputs; 0 of one that is not checked
  std::vector<double> allowed;      // of each plan
  std::vector<std::string> wrong;   // likewise: "", or the step that computes something else
};

// Runs every plan once, with seeded inputs. Without a library, or where its sums may saturate on this CPU
// (byte_sums.h), the reference executor says what is right. A plan whose outputs differ by more than
// kAllowedOutputDifference is checked layer by layer, and held to what its network makes of rounding
// (network_check.h). Throws as OnnxRuntimeModel does, and Error(kInterrupted) when it is stopped.
OutputCheck CheckOutputs(const ModelOptions& model, const Graph& graph, const std::vector<PlanToCheck>& plans,
                         const DevicePtr& machine, const std::string& library, const StopFlag* stop);

// A table of them.
void AddOutputCheck(Report& report, const std::vector<PlanToCheck>& plans, const OutputCheck& check);
// Throws Error(kWrongAnswer) naming a plan whose outputs differ by more than is allowed, and its first wrong
// step.
void RequireAlike(const std::vector<PlanToCheck>& plans, const OutputCheck& check);

}  // namespace tilesmith
