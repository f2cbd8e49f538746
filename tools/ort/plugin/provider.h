// The execution provider: one for each session of ONNX Runtime that asked for it.
#pragma once

#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "tools/cli/machine.h"
#include "tools/ort/plugin/host_graph.h"
#include "tools/ort/plugin/options.h"

namespace tilesmith {

constexpr const char* kProviderName = "TilesmithExecutionProvider";

class Provider : public OrtEp {
 public:
  // `api` and `logger` outlive it. Throws Error(kUsage) for options that this machine cannot fulfil.
  Provider(const OrtApi& api, const OrtLogger& logger, PluginOptions options);

 private:
  void Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
  void CompileAll(const OrtGraph** graphs, const OrtNode** nodes, size_t count, OrtNodeComputeInfo** infos);
  OrtNodeComputeInfo* CompileOne(const OrtGraph* graph, const OrtNode* node, std::vector<bool>& used_plans);
  // The plan made for this very network, noted as used; default schedules when there is none.
  Plan PlanFor(const Graph& graph, std::vector<bool>& used_plans) const;
  void Dump(const HostModel& model) const;
  void Log(OrtLoggingLevel level, const std::string& message) const;

  const OrtApi& api_;
  const OrtLogger& logger_;
  const PluginOptions options_;
  const DevicePtr machine_;
  ImportOptions import_;
};

}  // namespace tilesmith
