#include "tools/ort/plugin/provider.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "ops/passes/passes.h"
#include "tools/api/model_from_graph.h"
#include "tools/cli/system_files.h"
#include "tools/network/network_run.h"
#include "tools/ort/plugin/compiled_region.h"

namespace tilesmith {
namespace {

constexpr size_t kMaxReasons = 5;  // that are logged

int64_t ThreadsOf(const PluginOptions& options) {
  int64_t threads = options.threads;
  if (options.strict) return threads;
  for (const std::string& plan : options.plans) threads = ThreadsFor(plan, threads);
  return threads;
}

Provider& Of(OrtEp* ep) { return *static_cast<Provider*>(ep); }

}  // namespace

Provider::Provider(const OrtApi& api, const OrtLogger& logger, PluginOptions options)
    : OrtEp{},
      api_(api),
      logger_(logger),
      options_(std::move(options)),
      machine_(OpenMachine({.threads = ThreadsOf(options_), .max_isa = ""})) {
  import_.limits.network_bytes = MemoryBytes();
  ort_version_supported = kOrtApiVersion;
  GetName = [](const OrtEp*) noexcept { return kProviderName; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
    return OrtGuarded(Of(self).api_, [&] { Of(self).Claim(graph, support); });
  };
  Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** nodes, size_t count,
               OrtNodeComputeInfo** infos, OrtNode**) noexcept {
    return OrtGuarded(Of(self).api_, [&] { Of(self).CompileAll(graphs, nodes, count, infos); });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) delete static_cast<CompiledRegion*>(infos[i]);
  };
}

void Provider::Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
  const HostGraph host = ReadGraph(api_, graph);
  if (host.is_subgraph) return;  // runs once for each turn of a loop, or not at all
  for (const HostValue& input : host.inputs) {
    if (input.type.shape || input.type.element_type == 0) continue;
    const std::string name = input.type.open_dimension;
    Log(ORT_LOGGING_LEVEL_WARNING,
        fmt::format(
            "input \"{}\" has an open dimension{}: what depends on it is left to ONNX Runtime. Give it "
            "its size before the session is made: AddFreeDimensionOverrideByName, in Python "
            "SessionOptions.add_free_dimension_override_by_name(\"{}\", 1)",
            input.name, name.empty() ? "" : " " + name, name.empty() ? "N" : name));
  }
  const HostRegions found = SupportedRegions(api_, host, import_);
  const OrtEpApi& ep_api = *api_.GetEpApi();
  size_t claimed = 0;
  for (const HostRegion& region : found.regions) {
    std::vector<const OrtNode*> nodes;
    nodes.reserve(region.members.size());
    for (const size_t member : region.members) nodes.push_back(host.nodes[member].handle);
    OrtNodeFusionOptions fusion{};
    fusion.ort_version_supported = kOrtApiVersion;
    fusion.drop_constant_initializers = true;  // they are copied and packed
    CheckOrt(api_, ep_api.EpGraphSupportInfo_AddNodesToFuse(support, nodes.data(), nodes.size(), &fusion));
    claimed += nodes.size();
  }
  std::vector<std::string> reasons = found.refused;
  const size_t left_out = reasons.size() - std::min(reasons.size(), kMaxReasons);
  reasons.resize(std::min(reasons.size(), kMaxReasons));
  if (left_out > 0) reasons.push_back(fmt::format("and {} more", left_out));
  Log(claimed == 0 ? ORT_LOGGING_LEVEL_WARNING : ORT_LOGGING_LEVEL_INFO,
      fmt::format("{} of {} nodes taken over, in {} regions{}{}", claimed, host.nodes.size(),
                  found.regions.size(), reasons.empty() ? "" : "; left: ", fmt::join(reasons, "; ")));
}

void Provider::CompileAll(const OrtGraph** graphs, const OrtNode** nodes, size_t count,
                          OrtNodeComputeInfo** infos) {
  std::vector<std::unique_ptr<CompiledRegion>> regions;
  std::vector<bool> used_plans(options_.plans.size());
  regions.reserve(count);
  for (size_t i = 0; i < count; ++i)
    regions.emplace_back(static_cast<CompiledRegion*>(CompileOne(graphs[i], nodes[i], used_plans)));
  for (size_t i = 0; i < used_plans.size(); ++i) {
    if (used_plans[i]) continue;
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{}: it was made for none of the {} regions taken over; the option dump writes them as "
                    "files to tune",
                    options_.plans[i], count));
  }
  for (size_t i = 0; i < count; ++i) infos[i] = regions[i].release();
}

OrtNodeComputeInfo* Provider::CompileOne(const OrtGraph* graph, const OrtNode* node,
                                         std::vector<bool>& used_plans) {
  const HostGraph host = ReadGraph(api_, graph);
  const std::vector<HostValue> inputs = InputsOf(api_, node);
  std::vector<size_t> positions, members;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].constant == nullptr) positions.push_back(i);
  for (size_t i = 0; i < host.nodes.size(); ++i) members.push_back(i);
  std::vector<std::string> outputs;
  for (const HostValue& output : OutputsOf(api_, node)) outputs.push_back(output.name);
  const char* name = nullptr;
  CheckOrt(api_, api_.Node_GetName(node, &name));
  const HostModel model = ModelOf(api_, host, name, members, inputs, std::move(outputs));
  if (!options_.dump.empty()) Dump(model);
  Graph optimized = OptimizeGraph(ImportHostModel(model, import_));
  const Plan plan = PlanFor(optimized, used_plans);
  return new CompiledRegion(api_, ModelFromGraph::Compile(std::move(optimized), plan, machine_),
                            std::move(positions));
}

Plan Provider::PlanFor(const Graph& graph, std::vector<bool>& used_plans) const {
  for (size_t i = 0; i < options_.plans.size(); ++i) {
    const std::vector<Plan> plans = ReadPlans(options_.plans[i]);
    if (std::ranges::find(plans, GraphHash(graph), &Plan::graph_hash) == plans.end()) continue;
    used_plans[i] = true;
    std::vector<std::string> notes;
    Plan plan = LoadPlan(options_.plans[i], graph, machine_, {.strict = options_.strict, .notes = &notes});
    for (const std::string& note : notes) Log(ORT_LOGGING_LEVEL_WARNING, note);
    return plan;
  }
  return LoadPlan("", graph, machine_);
}

void Provider::Dump(const HostModel& model) const {
  std::string file = model.name + ".onnx";
  std::ranges::replace(file, '/', '_');
  RequireWritableDirectory(options_.dump);
  const std::string path = (std::filesystem::path(options_.dump) / file).string();
  WriteTextFile(path, OnnxBytes(model));
  Log(ORT_LOGGING_LEVEL_INFO, fmt::format("wrote {}", path));
}

void Provider::Log(OrtLoggingLevel level, const std::string& message) const {
  CheckOrt(api_, api_.Logger_LogMessage(&logger_, level, message.c_str(), __FILE_NAME__, __LINE__, __func__));
}

}  // namespace tilesmith
