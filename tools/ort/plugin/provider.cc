#include "tools/ort/plugin/provider.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "graph_tuner/plan/plan_file.h"
#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "ops/passes/passes.h"
#include "tools/api/model_from_graph.h"
#include "tools/cli/system_files.h"
#include "tools/network/plan_choice.h"
#include "tools/ort/plugin/compiled_region.h"

namespace tilesmith {
namespace {

constexpr size_t kMaxReasons = 5;  // that are logged

int ParseThreads(const std::string& text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 0)
    throw Error(ErrorCode::kUsage,
                fmt::format("the option threads must be a number of at least 0, got {}", text));
  return threads;
}

int64_t ThreadsOf(const PluginOptions& options) {
  int64_t threads = options.threads;
  if (options.strict) return threads;
  for (const std::string& plan : options.plans) threads = ThreadsFor(plan, threads);
  return threads;
}

Provider& Of(OrtEp* ep) { return *static_cast<Provider*>(ep); }

}  // namespace

PluginOptions ParsePluginOptions(const std::map<std::string, std::string>& texts) {
  PluginOptions options;
  for (const auto& [name, text] : texts) {
    if (name == "plan") {
      std::istringstream plans(text);
      for (std::string plan; std::getline(plans, plan, ';');)
        if (!plan.empty()) options.plans.push_back(plan);
    } else if (name == "threads") {
      options.threads = ParseThreads(text);
    } else if (name == "strict" || name == "reproducible") {
      if (text != "0" && text != "1")
        throw Error(ErrorCode::kUsage, fmt::format("the option {} must be 0 or 1, got {}", name, text));
      (name == "strict" ? options.strict : options.reproducible) = text == "1";
    } else if (name == "dump") {
      options.dump = text;
    } else {
      throw Error(ErrorCode::kUsage,
                  fmt::format("no option {} (known: dump, plan, reproducible, strict, threads)", name));
    }
  }
  return options;
}

Provider::Provider(const OrtApi& api, const OrtLogger& logger, PluginOptions options, ContextOptions context)
    : OrtEp{},
      api_(api),
      logger_(logger),
      options_(std::move(options)),
      context_(std::move(context)),
      machine_(OpenMachine(
          {.threads = ThreadsOf(options_),
           .max_isa = "",
           .reproducible = options_.reproducible || std::ranges::any_of(options_.plans, AskReproducible)})) {
  import_.limits.network_bytes = MemoryBytes();
  ort_version_supported = kOrtApiVersion;
  GetName = [](const OrtEp*) noexcept { return kProviderName; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
    return OrtGuarded(Of(self).api_, [&] { Of(self).Claim(graph, support); });
  };
  Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** nodes, size_t count,
               OrtNodeComputeInfo** infos, OrtNode** contexts) noexcept {
    return OrtGuarded(Of(self).api_, [&] { Of(self).CompileAll(graphs, nodes, count, infos, contexts); });
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
                          OrtNodeComputeInfo** infos, OrtNode** contexts) {
  std::vector<Compiled> all;
  all.reserve(count);
  const auto plans = std::make_shared<PlansInUse>(options_.plans, count);
  for (size_t i = 0; i < count; ++i) all.push_back(CompileOne(graphs[i], nodes[i], i, plans));
  for (size_t i = 0; i < count; ++i) {
    infos[i] = all[i].region.release();
    if (context_.wanted) contexts[i] = all[i].context.release();
  }
}

Provider::Compiled Provider::CompileOne(const OrtGraph* graph, const OrtNode* node, size_t index,
                                        const std::shared_ptr<PlansInUse>& plans) {
  const auto ready = [this](std::vector<size_t> positions, auto model) {
    return std::make_unique<CompiledRegion>(api_, std::move(model), std::move(positions));
  };
  const HostGraph host = ReadGraph(api_, graph);
  const std::vector<HostValue> inputs = InputsOf(api_, node);
  std::vector<size_t> positions, members;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].constant == nullptr) positions.push_back(i);
  members.resize(host.nodes.size());
  std::iota(members.begin(), members.end(), size_t{0});
  if (host.nodes.size() == 1 && host.nodes[0].is_context) {
    if (!options_.plans.empty()) {
      throw Error(ErrorCode::kUsage, fmt::format("the option plan, {}, is not for regions that are compiled",
                                                 fmt::join(options_.plans, ";")));
    }
    const LoadOptions load = {.threads = machine_->threads(), .strict = options_.strict};
    Model model = LoadContextNode(api_, graph, host.nodes[0].handle, context_, load);
    return {ready(std::move(positions), std::move(model)), {nullptr, api_.ReleaseNode}};
  }
  const char* name = nullptr;
  CheckOrt(api_, api_.Node_GetName(node, &name));
  const HostModel model = ModelOf(api_, host, name, members, inputs, NamesOf(OutputsOf(api_, node)));
  if (!options_.dump.empty()) Dump(model);
  if (HasOpenBatch(model)) {
    if (context_.wanted) {
      throw Error(
          ErrorCode::kUsage,
          "a region of an open batch, which is compiled by its first run, cannot be written compiled: "
          "give the batch its size (AddFreeDimensionOverrideByName)");
    }
    return {ready(std::move(positions), ModelOfAnySize(model, plans)), {nullptr, api_.ReleaseNode}};
  }
  Graph optimized = OptimizeGraph(ImportHostModel(model, import_));
  std::vector<std::string> notes;
  const Plan plan =
      LoadPlan(plans->FileFor(optimized), optimized, machine_, {.strict = options_.strict, .notes = &notes});
  for (const std::string& note : notes) Log(ORT_LOGGING_LEVEL_WARNING, note);
  const double predicted = KnownPrediction(plan);
  CompiledOrigin origin = {model.name, plan.graph_hash, PlanHash(plan), TILESMITH_VERSION, predicted};
  const CompiledModel compiled = {std::move(origin), CompileNetwork(std::move(optimized), plan, machine_)};
  OrtNodePtr context(nullptr, api_.ReleaseNode);
  if (context_.wanted) context = MakeContextNode(api_, graph, node, index, compiled, context_);
  return {ready(std::move(positions), ModelFromGraph::Of(compiled.network, predicted)), std::move(context)};
}

// The host's weights are gone when the first run comes, so that the model waits for it as a file.
std::function<Model(const CompiledRegion::Shapes&)> Provider::ModelOfAnySize(
    const HostModel& model, const std::shared_ptr<PlansInUse>& plans) const {
  constexpr int kSizes =
      8;  // that are kept; PyTorch's last batch of an epoch is one, a server's queue several
  std::vector<std::string> names;
  names.reserve(model.inputs.size());
  for (const auto& [name, shape] : model.inputs) names.push_back(name);
  return [bytes = OnnxBytes(model), name = model.name, names = std::move(names), options = import_, plans,
          threads = machine_->threads(), strict = options_.strict](const CompiledRegion::Shapes& shapes) {
    const std::span<const std::byte> file = std::as_bytes(std::span(bytes));
    LoadOptions load = {.threads = threads, .sizes = kSizes, .strict = strict};
    ImportOptions sized = options;
    for (size_t i = 0; i < names.size(); ++i) {
      load.input_shapes.push_back(fmt::format("{}={}", names[i], fmt::join(shapes[i], "x")));
      sized.input_shapes[names[i]] = shapes[i];
    }
    if (plans->any()) load.plan = plans->FileFor(OptimizeGraph(ImportOnnxBytes(bytes, name, sized)));
    return Model::Load(ModelMemory{.bytes = file, .name = name}, load);
  };
}

PlansInUse::PlansInUse(const std::vector<std::string>& files, size_t regions)
    : regions_(regions), regions_left_(regions) {
  for (const std::string& path : files) files_.push_back({path, ReadPlans(path)});
}

std::string PlansInUse::FileFor(const Graph& graph) {
  const std::lock_guard lock(mutex_);
  const auto fits = [hash = GraphHash(graph)](const File& file) {
    return std::ranges::find(file.plans, hash, &Plan::graph_hash) != file.plans.end();
  };
  const auto found = std::ranges::find_if(files_, fits);
  if (found != files_.end()) found->used = true;
  if (regions_left_ > 0) --regions_left_;
  const auto unused = std::ranges::find(files_, false, &File::used);
  if (regions_left_ > 0 || unused == files_.end()) return found == files_.end() ? "" : found->path;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{}: it was made for none of the {} regions taken over; the option dump writes them as "
                  "files to tune",
                  unused->path, regions_));
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
