// The execution provider: one for each session of ONNX Runtime that asked for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graph_tuner/plan/plan.h"
#include "ops/graph/graph.h"
#include "tools/cli/machine.h"
#include "tools/ort/plugin/compiled_region.h"
#include "tools/ort/plugin/context.h"
#include "tools/ort/plugin/host_graph.h"

namespace tilesmith {

// What a session's owner can ask of the plug-in.
struct PluginOptions {
  std::vector<std::string>
      plans;        // files of optimize or graph-tune; each is for the region whose network it was made for
  int threads = 0;  // 0: one for each core of this process
  bool strict = false;        // a plan for other threads than there are is an error
  bool reproducible = false;  // as plans ask for that were made so
  std::string dump;           // a folder for the regions as ONNX files, to be tuned; empty: none
};

// From texts by name: "plan" (several separated by ";"), "threads", "strict" and "reproducible" ("0" or "1"),
// "dump". Throws Error(kUsage) for another name, and for a value that is none.
PluginOptions ParsePluginOptions(const std::map<std::string, std::string>& texts);

// The plans that a session was given, and for how many regions nobody knows yet whether one is theirs: those
// whose batch is open until their first run. Thread-safe.
class PlansInUse {
 public:
  // Throws Error where a file cannot be read.
  PlansInUse(const std::vector<std::string>& files, size_t regions);

  bool any() const { return !files_.empty(); }
  // The file with a plan for this very network, noted as used; "" when there is none: default schedules.
  // Throws Error(kUsage) where this was the last region and one of the plans is for none of them.
  std::string FileFor(const Graph& graph);

 private:
  struct File {
    std::string path;
    std::vector<Plan> plans;
    bool used = false;
  };

  const size_t regions_;
  std::mutex mutex_;
  std::vector<File> files_;
  size_t regions_left_;
};

class Provider : public OrtEp {
 public:
  // `api` and `logger` outlive it. Throws Error(kUsage) for options that this machine cannot fulfil.
  Provider(const OrtApi& api, const OrtLogger& logger, PluginOptions options, ContextOptions context);

 private:
  void Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
  // contexts: EPContext nodes, where the session asks for them.
  void CompileAll(const OrtGraph** graphs, const OrtNode** nodes, size_t count, OrtNodeComputeInfo** infos,
                  OrtNode** contexts);
  // The region's place among `count`, and its EPContext node, which may be wanted.
  struct Compiled {
    std::unique_ptr<CompiledRegion> region;
    OrtNodePtr context;
  };
  Compiled CompileOne(const OrtGraph* graph, const OrtNode* node, size_t index,
                      const std::shared_ptr<PlansInUse>& plans);
  std::function<Model(const CompiledRegion::Shapes&)> ModelOfAnySize(
      const HostModel& model, const std::shared_ptr<PlansInUse>& plans) const;
  void Dump(const HostModel& model) const;
  void Log(OrtLoggingLevel level, const std::string& message) const;

  const OrtApi& api_;
  const OrtLogger& logger_;
  const PluginOptions options_;
  const ContextOptions context_;
  const DevicePtr machine_;
  ImportOptions import_;
};

}  // namespace tilesmith
