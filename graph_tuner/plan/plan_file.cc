#include "graph_tuner/plan/plan_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <sstream>

#include "graph_tuner/plan/plan.h"
#include "layouts/base/arm_cpu.h"
#include "layouts/base/settings.h"
#include "layouts/base/text_file.h"
#include "ops/base/order.h"
#include "ops/dense/tasks.h"
#include "ops/qdq/qdq_model.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/log.h"

namespace tilesmith {
namespace {

// How a model is quantised, in a plan's header.

using nlohmann::json;

template <typename Texts>
Texts TextsIn(const json& object, const char* field) {
  Texts texts;
  if (!object.contains(field)) return texts;
  for (const json& text : object[field]) texts.insert(texts.end(), JsonValue<std::string>(text, field));
  return texts;
}

TensorQuantizer QuantizerFromJson(const json& pair, const std::string& tensor, DataType type) {
  TensorQuantizer quantizer = {.scale = 0, .type = type};
  if (pair.is_array() && pair.size() == 2)
    quantizer = {JsonValue<float>(pair[0], "tensors"), JsonValue<int32_t>(pair[1], "tensors"), type};
  const int32_t lowest = type == DataType::kU8 ? 0 : -128;
  if (std::isnormal(quantizer.scale) && quantizer.scale > 0 && quantizer.zero_point >= lowest &&
      quantizer.zero_point <= lowest + 255)
    return quantizer;
  throw Error(ErrorCode::kUsage,
              fmt::format("tensor \"{}\" is {} (allowed: a scale above 0 and a zero point of {})", tensor,
                          JsonLine(pair), DataTypeName(type)));
}

int LargestWeightIn(const json& object) {
  const int largest = JsonGetOr<int>(object, "largest_weight", kLargestWeight);
  if (largest >= 1 && largest <= kLargestWeight) return largest;
  throw Error(ErrorCode::kUsage,
              fmt::format("field \"largest_weight\" is {} (allowed: 1 to {})", largest, kLargestWeight));
}

// {"activations":"u8","calibration":"minmax, 8 samples of random inputs (seed
// 1)","model_hash":"0123456789abcdef",
//  "random_inputs":true,"tensors":{"x":[0.02,128]}}, scale and zero point of each tensor, and what of
// "keep", "keep_first", "keep_last", "largest_weight", "operators" and "unknown" is not as it is by default.
json QuantizationToJson(const ModelQuantization& quantization) {
  const QdqOptions& options = quantization.options;
  json object = {{"model_hash", quantization.model_hash},
                 {"activations", ActivationName(options.activations)},
                 {"calibration", quantization.calibration},
                 {"random_inputs", quantization.random_inputs},
                 {"tensors", json::object()}};
  for (const auto& [name, quantizer] : quantization.tensors)
    object["tensors"][name] = {quantizer.scale, quantizer.zero_point};
  if (options.largest_weight != kLargestWeight) object["largest_weight"] = options.largest_weight;
  if (!options.keep.empty()) object["keep"] = options.keep;
  if (!options.op_types.empty()) object["operators"] = options.op_types;
  if (options.keep_first) object["keep_first"] = true;
  if (options.keep_last) object["keep_last"] = true;
  if (!quantization.unknown.empty()) object["unknown"] = quantization.unknown;
  return object;
}

// Throws Error(kUsage) naming the field that is missing or makes no sense.
ModelQuantization QuantizationFromJson(const json& object) {
  ModelQuantization quantization;
  quantization.model_hash = JsonGet<std::string>(object, "model_hash");
  quantization.calibration = JsonGet<std::string>(object, "calibration");
  quantization.random_inputs = JsonGet<bool>(object, "random_inputs");
  quantization.unknown = TextsIn<std::set<std::string>>(object, "unknown");
  QdqOptions& options = quantization.options;
  options.activations = ParseActivations(JsonGet<std::string>(object, "activations"));
  options.largest_weight = LargestWeightIn(object);
  options.keep = TextsIn<std::vector<std::string>>(object, "keep");
  options.op_types = TextsIn<std::vector<std::string>>(object, "operators");
  options.keep_first = JsonGetOr<bool>(object, "keep_first", false);
  options.keep_last = JsonGetOr<bool>(object, "keep_last", false);
  for (const auto& [name, pair] : JsonField(object, "tensors").items())
    quantization.tensors[name] = QuantizerFromJson(pair, name, options.activations.type);
  return quantization;
}

using nlohmann::json;

constexpr const char* kPlanFormatField = "tilesmith_plan";

double SecondsIn(const json& object, const char* field) {
  const double seconds = JsonGet<double>(object, field);
  if (!IsPlausibleTime(seconds)) {
    throw Error(ErrorCode::kUsage, fmt::format("field \"{}\" is {} (allowed: 0, and {:g} to {:g} seconds)",
                                               field, seconds, kMinSeconds, kMaxSeconds));
  }
  return seconds;
}

// What SecondsIn reads again: a computed time shorter than any that is plausible is none.
double Written(double seconds) { return seconds < kMinSeconds ? 0 : seconds; }

double OptionalSeconds(const json& object, const char* field) {
  return object.contains(field) ? SecondsIn(object, field) : 0;
}

double PredictedSecondsOf(const json& object) { return SecondsIn(object, "predicted_seconds"); }

// The layout is that of a network's ends, whose tensors are padded to whole blocks.
Layout EndLayoutIn(const json& object, const char* field) {
  constexpr int64_t kMaxBlock = 128;
  const std::string text = JsonGetOr<std::string>(object, field, "NCHW");
  const Layout layout = Layout::Parse(text);
  if (layout.BlockFor(1) > kMaxBlock)
    throw Error(ErrorCode::kUsage,
                fmt::format("field \"{}\" is \"{}\" (allowed: NCHW, NHWC, NCHW[x]c with x up to {})", field,
                            text, kMaxBlock));
  return layout;
}

json HeaderToJson(const Plan& plan) {
  json header = {{kPlanFormatField, kPlanFormat},   {"network", plan.network},
                 {"graph_hash", plan.graph_hash},   {"target", TargetToJson(plan.target)},
                 {"threads", plan.threads},         {"solver", plan.solver},
                 {"certificate", plan.certificate}, {"predicted_seconds", Written(plan.predicted_seconds)}};
  if (plan.target.reproducible) header["order"] = kOrderVersion;
  if (plan.placement.is_known()) {
    header["barrier_seconds"] = Written(plan.placement.barrier_seconds);
    header["arithmetic_seconds"] = Written(plan.placement.arithmetic_seconds);
  }
  for (const PlacedPrediction& prediction : plan.at_distances) {
    header["at_distances"].push_back({{"barrier_seconds", Written(prediction.placement.barrier_seconds)},
                                      {"predicted_seconds", Written(prediction.seconds)}});
  }
  if (!plan.ends.inputs.is_nchw()) header["input_layout"] = plan.ends.inputs.ToString();
  if (!plan.ends.outputs.is_nchw()) header["output_layout"] = plan.ends.outputs.ToString();
  if (std::isfinite(plan.accuracy.max_error)) header["max_error"] = plan.accuracy.max_error;
  if (!plan.accuracy.forbidden_templates.empty())
    header["forbidden_templates"] = plan.accuracy.forbidden_templates;
  if (plan.quantization) header["quantization"] = QuantizationToJson(*plan.quantization);
  return header;
}

Plan HeaderFromJson(const json& object) {
  if (!object.is_object() || !object.contains(kPlanFormatField)) {
    const std::string kind = FileKind(object);
    throw Error(ErrorCode::kUsage,
                kind.empty() ? fmt::format("not a plan: the first line lacks \"{}\"", kPlanFormatField)
                             : fmt::format("{}, not a plan", kind));
  }
  const int format = JsonGet<int>(object, kPlanFormatField);
  if (format != kPlanFormat)
    throw Error(ErrorCode::kUsage,
                fmt::format("plan format {} (this version reads {})", format, kPlanFormat));
  Plan plan;
  plan.network = JsonGet<std::string>(object, "network");
  plan.graph_hash = JsonGet<std::string>(object, "graph_hash");
  plan.target = TargetFromJson(JsonField(object, "target"));
  if (const auto order = JsonGetOr<int64_t>(object, "order", 0);
      plan.target.reproducible && order != kOrderVersion) {
    throw Error(ErrorCode::kUsage,
                fmt::format("field \"order\" is {} (this version adds by order {})", order, kOrderVersion));
  }
  plan.threads = JsonGet<int>(object, "threads");
  if (plan.threads < 1 || plan.threads > kMaxThreads) {
    throw Error(ErrorCode::kUsage,
                fmt::format("field \"threads\" is {} (allowed: 1 to {})", plan.threads, kMaxThreads));
  }
  plan.solver = JsonGet<std::string>(object, "solver");
  plan.certificate = JsonGet<std::string>(object, "certificate");
  plan.predicted_seconds = PredictedSecondsOf(object);
  if (object.contains("barrier_seconds") && object.contains("arithmetic_seconds"))
    plan.placement = {SecondsIn(object, "barrier_seconds"), SecondsIn(object, "arithmetic_seconds")};
  if (object.contains("at_distances")) {
    for (const json& distance : object["at_distances"]) {
      const double barrier_seconds = SecondsIn(distance, "barrier_seconds");
      plan.at_distances.push_back(
          {{barrier_seconds, plan.placement.arithmetic_seconds}, PredictedSecondsOf(distance)});
    }
  }
  plan.ends = {EndLayoutIn(object, "input_layout"), EndLayoutIn(object, "output_layout")};
  plan.accuracy.max_error = JsonGetOr<double>(object, "max_error", plan.accuracy.max_error);
  if (!(plan.accuracy.max_error > 0)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("field \"max_error\" is {} (allowed: > 0)", plan.accuracy.max_error));
  }
  if (object.contains("forbidden_templates")) {
    for (const json& name : object["forbidden_templates"])
      plan.accuracy.forbidden_templates.push_back(JsonValue<std::string>(name, "forbidden_templates"));
  }
  if (object.contains("quantization")) {
    plan.quantization =
        std::make_shared<const ModelQuantization>(QuantizationFromJson(object["quantization"]));
  }
  return plan;
}

json NodeToJson(const NodePlan& node) {
  json object = node.record ? RecordToJson(*node.record) : json::object();
  if (node.record && node.record->seconds == 0) object["unmeasured"] = true;
  object["node"] = node.node;
  object["op"] = node.op_type;
  if (node.fused_into.empty())
    object["layouts"] = {node.layouts.in.ToString(), node.layouts.out.ToString()};
  else
    object["fused_into"] = node.fused_into;
  if (node.split != Split::kEven) object["split"] = SplitName(node.split);
  if (node.region > 0) object["in_region"] = node.region;
  object["predicted_seconds"] = Written(node.predicted_seconds);
  if (node.crossing_seconds >= kMinSeconds) object["crossing_seconds"] = node.crossing_seconds;
  return object;
}

Record RecordOf(json object) {
  const bool unmeasured = JsonGetOr<bool>(object, "unmeasured", false);
  if (unmeasured) object["seconds"] = 1.0;  // what RecordFromJson insists on
  Record record = RecordFromJson(object);
  if (unmeasured) record.seconds = 0;
  return record;
}

Split SplitFromJson(const json& object) {
  const auto name = JsonGet<std::string>(object, "split");
  const std::optional<Split> split = SplitOfName(name);
  if (split) return *split;
  throw Error(ErrorCode::kUsage,
              fmt::format("field \"split\" is \"{}\" (known: even, rows, channels, images, one)", name));
}

int RegionNumberIn(const json& object, size_t regions) {
  const auto number = JsonGet<int64_t>(object, "in_region");
  if (number >= 1 && std::cmp_less_equal(number, regions)) return static_cast<int>(number);
  throw Error(ErrorCode::kUsage,
              fmt::format("field \"in_region\" is {} (known: {} regions)", number, regions));
}

NodePlan NodeFromJson(const json& object, size_t regions) {
  NodePlan node;
  node.node = JsonGet<std::string>(object, "node");
  node.op_type = JsonGet<std::string>(object, "op");
  node.fused_into = JsonGetOr<std::string>(object, "fused_into", "");
  if (node.fused_into.empty()) node.layouts = LayoutsFromJson(JsonField(object, "layouts"));
  node.predicted_seconds = PredictedSecondsOf(object);
  node.crossing_seconds = OptionalSeconds(object, "crossing_seconds");
  if (object.contains("split")) node.split = SplitFromJson(object);
  if (object.contains("in_region")) node.region = RegionNumberIn(object, regions);
  if (object.contains("workload")) node.record = RecordOf(object);
  return node;
}

RegionPlan RegionFromJson(const json& object, size_t before) {
  const auto number = JsonGet<int64_t>(object, "region");
  if (number != static_cast<int64_t>(before) + 1)
    throw Error(ErrorCode::kUsage, fmt::format("field \"region\" is {} (expected: {})", number, before + 1));
  const auto rows = JsonGet<int64_t>(object, "band_rows");
  if (rows < 1 || rows > kMaxTensorElements)
    throw Error(ErrorCode::kUsage, fmt::format("field \"band_rows\" is {} (allowed: 1 and more)", rows));
  return {rows};
}

TransformPlan TransformFromJson(const json& object) {
  return {JsonGet<std::string>(object, "transform"), Layout::Parse(JsonGet<std::string>(object, "from")),
          Layout::Parse(JsonGet<std::string>(object, "to")), PredictedSecondsOf(object),
          JsonGetOr<bool>(object, "interpolated", false)};
}

const char* NameFieldOf(Correction::Of of) {
  return of == Correction::Of::kNode ? "corrected" : "corrected_tensor";
}

json CorrectionToJson(const Correction& correction) {
  json object = {{NameFieldOf(correction.of), correction.name},
                 {"option", correction.option},
                 {"stand_alone_seconds", Written(correction.stand_alone_seconds)},
                 {"seconds", Written(correction.seconds)}};
  if (correction.crossing_seconds >= kMinSeconds) object["crossing_seconds"] = correction.crossing_seconds;
  return object;
}

Correction CorrectionFromJson(const json& object, Correction::Of of) {
  return {of,
          JsonGet<std::string>(object, NameFieldOf(of)),
          JsonGet<std::string>(object, "option"),
          SecondsIn(object, "stand_alone_seconds"),
          SecondsIn(object, "seconds"),
          OptionalSeconds(object, "crossing_seconds")};
}

bool HasField(const json& object, const char* field) { return object.is_object() && object.contains(field); }

// Whether a line is a correction. A torn one is told by what it begins with: fields are written in the order
// of their names, and `corrected` comes first; torn even before that, by standing after another one, since
// corrections come last.
bool IsCorrection(std::string_view line, const json& object, bool after_one) {
  constexpr std::string_view kBegin = "{\"corrected";
  if (object.is_discarded()) return line.starts_with(kBegin) || (after_one && kBegin.starts_with(line));
  return HasField(object, NameFieldOf(Correction::Of::kNode)) ||
         HasField(object, NameFieldOf(Correction::Of::kTensor));
}

enum class LineKind { kHeader, kBody, kCorrection };

void ReadLine(const json& object, LineKind kind, Plan& plan) {
  if (object.is_discarded()) throw Error(ErrorCode::kUsage, "not JSON (a torn line, or not a plan)");
  if (kind == LineKind::kHeader) {
    plan = HeaderFromJson(object);
  } else if (kind == LineKind::kCorrection) {
    const bool of_node = HasField(object, NameFieldOf(Correction::Of::kNode));
    plan.corrections.Learn(
        CorrectionFromJson(object, of_node ? Correction::Of::kNode : Correction::Of::kTensor));
  } else if (HasField(object, "transform")) {
    plan.transforms.push_back(TransformFromJson(object));
  } else if (HasField(object, "region")) {
    plan.regions.push_back(RegionFromJson(object, plan.regions.size()));
  } else {
    plan.nodes.push_back(NodeFromJson(object, plan.regions.size()));
  }
}

std::string TextOf(const Plan& plan) {
  std::string text = JsonLine(HeaderToJson(plan)) + "\n";
  for (size_t i = 0; i < plan.regions.size(); ++i)
    text += JsonLine({{"region", i + 1}, {"band_rows", plan.regions[i].band_rows}}) + "\n";
  for (const NodePlan& node : plan.nodes) text += JsonLine(NodeToJson(node)) + "\n";
  for (const TransformPlan& transform : plan.transforms) {
    json object = {{"transform", transform.tensor},
                   {"from", transform.from.ToString()},
                   {"to", transform.to.ToString()},
                   {"predicted_seconds", Written(transform.predicted_seconds)}};
    if (transform.interpolated) object["interpolated"] = true;
    text += JsonLine(object) + "\n";
  }
  for (const Correction& correction : plan.corrections.All())
    text += JsonLine(CorrectionToJson(correction)) + "\n";
  return text;
}

// Where the graph's inputs have other sizes than the plan's, as far as convolutions that read them tell:
// "x=2x3x224x224" in the plan and here.
struct ReadSizes {
  std::vector<std::string> planned, here;
};

ReadSizes SizesRead(const Plan& plan, const Graph& graph) {
  ReadSizes sizes;
  for (const Graph::NodeId input : graph.GraphInputs()) {
    const Node& tensor = graph.node(input);
    for (const Graph::NodeId reader : graph.Consumers(input)) {
      const auto planned = std::ranges::find(plan.nodes, graph.node(reader).name, &NodePlan::node);
      const std::optional<ConvWorkload> task = TaskOf(graph, reader);
      if (planned == plan.nodes.end() || !planned->record || !task || task->input_shape() != tensor.shape)
        continue;
      const auto text = [&](const ConvWorkload& workload) {
        return fmt::format("{}={}", tensor.name, ShapeToString(workload.input_shape()));
      };
      sizes.planned.push_back(text(planned->record->workload));
      sizes.here.push_back(text(*task));
      break;
    }
  }
  return sizes;
}

void CheckOrigin(const Plan& plan, const Graph& graph, const Target& cpu, int threads) {
  const std::string hash = GraphHash(graph);
  if (plan.graph_hash != hash && plan.network == graph.name()) {
    const ReadSizes sizes = SizesRead(plan, graph);
    if (sizes.planned != sizes.here)
      RefusePlan(fmt::format("made for inputs of {}, not of {}", fmt::join(sizes.planned, " "),
                             fmt::join(sizes.here, " ")));
  }
  if (plan.graph_hash != hash)
    RefusePlan(fmt::format("made for network \"{}\" ({}hash {}), not for \"{}\" (hash {})", plan.network,
                           plan.quantization ? "in int8, " : "", plan.graph_hash, graph.name(), hash));
  if (!SameMachine(plan.target, cpu))
    RefusePlan(fmt::format("made on \"{}\" ({}), this machine is \"{}\" ({})", plan.target.model,
                           VectorsText(plan.target), cpu.model, VectorsText(cpu)));
  if (cpu.reproducible && !plan.target.reproducible)
    RefusePlan(fmt::format("made without {}, which is asked for", settings::kReproducible));
  if (plan.target.version != cpu.version)
    RefusePlan(fmt::format("made by tilesmith {}, this is {}: templates and configs may have changed since",
                           plan.target.version, cpu.version));
  if (plan.threads != threads)
    RefusePlan(fmt::format("made for {} thread{}, asked to run with {}", plan.threads,
                           plan.threads == 1 ? "" : "s", threads));
}

// `workload`: what a task's record must be of, itself and what is fused in front of it.
void CheckNode(const Node& node, const NodePlan& plan, const ConvWorkload* workload) {
  if (plan.op_type != node.op->Type())
    RefusePlan(fmt::format("node \"{}\" is {} in the plan, {} in the network", node.name, plan.op_type,
                           node.op->Type()));
  if (!workload || !plan.fused_into.empty()) return;
  if (!plan.record && !NeedsRecord(*workload)) return;
  if (!plan.record) RefusePlan(fmt::format("node \"{}\" has no record", node.name));
  if (!(plan.record->workload == *workload))
    RefusePlan(fmt::format("node \"{}\" is {} in the plan, {} in the network", node.name,
                           WorkloadToString(plan.record->workload), WorkloadToString(*workload)));
}

// `path` is for messages.
std::vector<Plan> PlansIn(std::string text, const std::string& path, std::vector<std::string>* skipped) {
  std::istringstream in(std::move(text));
  std::vector<Plan> plans;
  LineKind kind = LineKind::kHeader;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const json object = ParseJson(line);
    if (!plans.empty()) {
      const bool correction = IsCorrection(line, object, kind == LineKind::kCorrection);
      kind = HasField(object, kPlanFormatField) ? LineKind::kHeader
             : correction                       ? LineKind::kCorrection
                                                : LineKind::kBody;
    }
    try {
      Plan next;
      ReadLine(object, kind, kind == LineKind::kHeader ? next : plans.back());
      if (kind == LineKind::kHeader) plans.push_back(std::move(next));
    } catch (const Error& error) {
      if (kind != LineKind::kCorrection)
        throw Error(ErrorCode::kUsage, fmt::format("{}:{}: {}", path, number, error.what()));
      if (skipped) skipped->push_back(fmt::format("{}:{}: skipped: {}", path, number, error.what()));
    }
  }
  if (plans.empty()) throw Error(ErrorCode::kUsage, fmt::format("{}: the plan is empty", path));
  return plans;
}

}  // namespace

void WritePlan(const std::string& path, const Plan& plan) { WritePlans(path, std::span(&plan, 1)); }

void WritePlans(const std::string& path, std::span<const Plan> plans) {
  std::string text;
  for (const Plan& plan : plans) text += TextOf(plan);
  WriteTextFile(path, text);
}

std::vector<Plan> ReadPlans(const std::string& path, std::vector<std::string>* skipped) {
  return PlansIn(ReadTextFile(path), path, skipped);
}

Plan ReadPlanHeader(const std::string& path) {
  std::string text = ReadTextFile(path);
  text.resize(std::min(text.size(), text.find('\n', text.find_first_not_of('\n'))));
  return std::move(PlansIn(std::move(text), path, nullptr).front());
}

Plan ReadPlan(const std::string& path, std::vector<std::string>* skipped) {
  std::vector<Plan> plans = ReadPlans(path, skipped);
  if (plans.size() == 1) return std::move(plans.front());
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: plans for {} sizes of the inputs, where one is needed", path, plans.size()));
}

void CheckPlan(const Plan& plan, const Graph& graph, const Target& cpu, int threads, bool force) {
  if (!force) CheckOrigin(plan, graph, cpu, threads);
  std::map<std::string_view, const NodePlan*> planned;
  for (const NodePlan& node : plan.nodes) {
    if (!planned.emplace(node.node, &node).second)
      RefusePlan(fmt::format("node \"{}\" appears twice", node.node));
  }
  const FusedNodes fused = FindFusedNodes(graph, plan);
  size_t found = 0;
  for (Graph::NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op->Type() == "Input" || node.op->Type() == "Constant") continue;
    const auto entry = planned.find(node.name);
    if (entry == planned.end()) RefusePlan(fmt::format("node \"{}\" of the network is missing", node.name));
    const std::optional<ConvWorkload> task = TaskOf(graph, id);
    const auto pair = fused.find(id);
    CheckNode(node, *entry->second, pair != fused.end() ? &pair->second.workload : task ? &*task : nullptr);
    ++found;
  }
  for (const TransformPlan& transform : plan.transforms) {
    if (!graph.Find(transform.tensor))
      RefusePlan(fmt::format("a transform of \"{}\", which the network does not have", transform.tensor));
  }
  if (found != planned.size())
    RefusePlan(fmt::format("{} nodes that the network does not have", planned.size() - found));
}

}  // namespace tilesmith
