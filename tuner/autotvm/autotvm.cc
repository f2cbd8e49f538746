#include "tuner/autotvm/autotvm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "layouts/base/sizes.h"
#include "templates/base/conv_template.h"
#include "tuner/measure/estimator.h"
#include "tuner/records/json_fields.h"
#include "tuner/records/record.h"
#include "tuner/search/config_sampling.h"

namespace tilesmith {
namespace {

// LLVM's names of CPUs that have AVX-512 F, BW, DQ and VL.
constexpr std::array<std::string_view, 17> kAvx512Cpus = {
    "skylake-avx512",  "skx",           "cascadelake", "cooperlake",     "cannonlake",    "icelake-client",
    "icelake-server",  "tigerlake",     "rocketlake",  "sapphirerapids", "emeraldrapids", "graniterapids",
    "graniterapids-d", "diamondrapids", "znver4",      "znver5",         "x86-64-v4"};

// What follows "-name=", up to the next blank.
std::string_view Option(std::string_view target, std::string_view name) {
  const size_t at = target.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view value = target.substr(at + name.size());
  return value.substr(0, value.find(' '));
}

}  // namespace

Isa IsaOfAutotvmTarget(std::string_view target) {
  const std::string_view cpu = Option(target, "-mcpu=");
  const bool known = std::find(kAvx512Cpus.begin(), kAvx512Cpus.end(), cpu) != kAvx512Cpus.end();
  return known || Option(target, "-mattr=").find("+avx512vl") != std::string_view::npos ? Isa::kAvx512
                                                                                        : Isa::kAvx2;
}

int CoresOfAutotvmTarget(std::string_view target) {
  const std::string_view text = Option(target, "-num-cores=");
  int cores = 1;
  std::from_chars(text.data(), text.data() + text.size(), cores);
  return std::clamp(cores, 1, kMaxThreads);
}

std::string AutotvmTargetText(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
    case Isa::kPortableFused:
      return "llvm";
    case Isa::kAvx2:
      return "llvm -mcpu=core-avx2";
    case Isa::kAvx512:
      return "llvm -mcpu=skylake-avx512";
    case Isa::kNeon:
      return "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon";
    case Isa::kSve:
      return "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon,+sve";
  }
  return "llvm";
}

namespace {

bool SameConv(ConvWorkload a, ConvWorkload b) {
  a.post = b.post = {};
  return !a.fused() && a == b;
}

std::optional<Record> AsOf(const ConvWorkload& workload, Record record) {
  if (workload == record.workload) return record;
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  const Target& cpu = record.target;
  if (conv_template == nullptr || !conv_template->Supports(workload, cpu).ok) return std::nullopt;
  const std::optional<Config> config = NearestConfig(conv_template->Space(workload, cpu),
                                                     conv_template->Default(workload, cpu), record.config);
  if (!config) return std::nullopt;
  if (!record.detail.empty()) record.detail += "; ";
  record.detail += fmt::format("times of {}", WorkloadToString(record.workload));
  record.workload = workload;
  record.config = *config;
  record.layouts = conv_template->Layouts(workload, *config);
  return record;
}

using Json = nlohmann::ordered_json;

constexpr const char* kConvTask = "conv2d_NCHWc.x86";
constexpr const char* kDepthwiseTask = "depthwise_conv2d_NCHWc.x86";
constexpr double kFormatVersion = 0.2;
constexpr double kFailureCost = 1e9;

[[noreturn]] void Refuse(const std::string& why) { throw Error(ErrorCode::kUsage, why); }

const Json& Member(const Json& object, const char* name) {
  if (!object.is_object()) Refuse("not an AutoTVM record: not a JSON object");
  const auto found = object.find(name);
  if (found == object.end()) Refuse(fmt::format("not an AutoTVM record: \"{}\" is missing", name));
  return *found;
}

const Json& Element(const Json& list, size_t index, const char* what) {
  if (!list.is_array() || index >= list.size()) Refuse(fmt::format("{} has no element {}", what, index));
  return list[index];
}

int64_t Integer(const Json& value, const char* what) {
  if (!value.is_number_integer()) Refuse(fmt::format("{} is {}, not an integer", what, value.dump()));
  return value.get<int64_t>();
}

std::string Text(const Json& value, const char* what) {
  if (!value.is_string()) Refuse(fmt::format("{} is {}, not a text", what, value.dump()));
  return value.get<std::string>();
}

// Sizes, which are small enough to be added and multiplied with each other.
int64_t Size(const Json& value, const char* what) {
  const int64_t size = Integer(value, what);
  if (size < -kMaxWindow || size > kMaxWindow)
    Refuse(fmt::format("{} is {} (allowed: up to {})", what, size, kMaxWindow));
  return size;
}

std::vector<int64_t> Sizes(const Json& list, const char* what) {
  if (list.is_number_integer()) return {Size(list, what)};
  if (!list.is_array()) Refuse(fmt::format("{} is {}, not a list", what, list.dump()));
  std::vector<int64_t> sizes;
  for (const Json& value : list) sizes.push_back(Size(value, what));
  return sizes;
}

std::vector<int64_t> TensorShape(const Json& tensor, const char* what) {
  if (Text(Element(tensor, 0, what), what) != "TENSOR") Refuse(fmt::format("{} is no tensor", what));
  const std::string type = Text(Element(tensor, 2, what), what);
  if (type != "float32") Refuse(fmt::format("{} is of type {} (allowed: float32)", what, type));
  std::vector<int64_t> shape = Sizes(Element(tensor, 1, what), what);
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; }))
    Refuse(fmt::format("{} has shape {}", what, ShapeToString(shape)));
  return shape;
}

// One value stands for both axes.
std::array<int64_t, 2> Pair(const Json& list, const char* what) {
  const std::vector<int64_t> values = Sizes(list, what);
  if (values.empty() || values.size() > 2) Refuse(fmt::format("{} is {}", what, list.dump()));
  return {values.front(), values.back()};
}

// Top, left, bottom, right.
std::array<int64_t, 4> Padding(const Json& list) {
  const std::vector<int64_t> p = Sizes(list, "padding");
  if (p.size() == 1) return {p[0], p[0], p[0], p[0]};
  if (p.size() == 2) return {p[0], p[1], p[0], p[1]};
  if (p.size() == 4) return {p[0], p[1], p[2], p[3]};
  Refuse(fmt::format("padding is {}", list.dump()));
}

// NCHW, or NCHWc as one.
Shape PlainShape(const std::vector<int64_t>& shape) {
  if (shape.size() == 4) return shape;
  if (shape.size() == 5) return {shape[0], shape[1] * shape[4], shape[2], shape[3]};
  Refuse(fmt::format("data has shape {} (allowed: NCHW and NCHWc)", ShapeToString(shape)));
}

// OIHW, or OIHWio as one.
Shape PlainKernel(const std::vector<int64_t>& shape) {
  if (shape.size() == 4) return shape;
  if (shape.size() == 6) return {shape[0] * shape[5], shape[1] * shape[4], shape[2], shape[3]};
  Refuse(fmt::format("the kernel has shape {} (allowed: OIHW and OIHWio)", ShapeToString(shape)));
}

// Neither too small nor too large to calculate with, and no padding that the kernel does not reach over:
// there a template would have nothing but borders. At the end it is negative where strides leave inputs
// unread.
void CheckWindow(const ConvWorkload& w, const std::array<int64_t, 2>& strides,
                 const std::array<int64_t, 4>& padding, const std::array<int64_t, 2>& dilation) {
  for (const int64_t size : {strides[0], strides[1], dilation[0], dilation[1]}) {
    if (size < 1) Refuse(fmt::format("strides and dilation are 1 to {}, got {}", kMaxWindow, size));
  }
  const int64_t extents[] = {(w.kh - 1) * dilation[0] + 1, (w.kw - 1) * dilation[1] + 1};
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t most = std::min(extents[i % 2], kMaxWindow) - 1, least = i < 2 ? 0 : 1 - strides[i % 2];
    if (padding[i] < least || padding[i] > most)
      Refuse(fmt::format("padding is {} (allowed for this kernel: {} to {})", padding[i], least, most));
  }
}

ConvWorkload WorkloadOf(const std::string& task, const Json& args) {
  const Shape data = PlainShape(TensorShape(Element(args, 0, "args"), "data"));
  const Shape kernel = PlainKernel(TensorShape(Element(args, 1, "args"), "the kernel"));
  const auto strides = Pair(Element(args, 2, "args"), "strides");
  const auto padding = Padding(Element(args, 3, "args"));
  const auto dilation = Pair(Element(args, 4, "args"), "dilation");
  ConvWorkload w;
  w.mb = data[0], w.ic = data[1], w.ih = data[2], w.iw = data[3];
  w.kh = kernel[2], w.kw = kernel[3];
  if (task == kDepthwiseTask) {
    w.g = w.ic;
    w.oc = kernel[0] * kernel[1];
  } else {
    w.oc = kernel[0];
    if (kernel[1] != w.ic)
      Refuse(fmt::format("the kernel reads {} channels of {}: a grouped convolution", kernel[1], w.ic));
  }
  w.sh = strides[0], w.sw = strides[1];
  w.ph = padding[0], w.pw = padding[1];
  CheckWindow(w, strides, padding, dilation);
  w.dh = dilation[0] - 1, w.dw = dilation[1] - 1;
  const int64_t rows = w.ih + padding[0] + padding[2] - ((w.kh - 1) * (w.dh + 1) + 1);
  const int64_t columns = w.iw + padding[1] + padding[3] - ((w.kw - 1) * (w.dw + 1) + 1);
  if (rows < 0 || columns < 0) Refuse("the kernel does not fit the input");
  w.oh = rows / w.sh + 1, w.ow = columns / w.sw + 1;
  ValidateWorkload(w);
  return w;
}

// The knobs of a config, of a split its inner factor.
Config KnobsOf(const Json& config) {
  Config knobs;
  const Json& entity = Member(config, "entity");
  if (!entity.is_array()) Refuse("\"entity\" is not a list");
  for (const Json& knob : entity) {
    const std::string name = Text(Element(knob, 0, "a knob"), "a knob's name");
    const Json& value = Element(knob, 2, "a knob");
    if (Text(Element(knob, 1, "a knob"), "a knob's kind") == "sp") {
      const std::vector<int64_t> factors = Sizes(value, name.c_str());
      if (factors.empty() || factors.back() < 1) Refuse(fmt::format("{} is {}", name, value.dump()));
      knobs.Set(name, factors.back());
    } else {
      knobs.Set(name, value.is_boolean() ? (value.get<bool>() ? 1 : 0) : Integer(value, name.c_str()));
    }
  }
  for (const char* name : {"tile_ic", "tile_oc", "tile_ow"})
    if (!knobs.Find(name)) Refuse(fmt::format("knob \"{}\" is missing", name));
  return knobs;
}

// The names that TVM's knobs have here.
Config WantedOf(const Config& knobs, bool depthwise, const Target& cpu) {
  Config wanted;
  wanted.Set("width_tile", knobs.Get("tile_ow"));
  if (depthwise) {
    wanted.Set("block", knobs.Get("tile_oc"));
    return wanted;
  }
  wanted.Set("ic_block", knobs.Get("tile_ic"));
  wanted.Set("oc_block", knobs.Get("tile_oc"));
  wanted.Set("oc_vectors", std::max<int64_t>(1, knobs.Get("tile_oc") / cpu.vector_floats()));
  wanted.Set("flat_width", 0);
  if (const std::optional<int64_t> rows = knobs.Find("tile_oh")) wanted.Set("rows", *rows);
  return wanted;
}

// Whether all tiles could be kept.
bool SetConfig(const Config& knobs, const Target& cpu, Record& record) {
  const bool depthwise = record.workload.g > 1;
  const ConvTemplate& conv_template = FindConvTemplate(depthwise ? "depthwise" : "direct");
  const Support support = conv_template.Supports(record.workload, cpu);
  if (!support.ok)
    Refuse(fmt::format("template {} does not compute {}: {}", conv_template.Name(),
                       WorkloadToString(record.workload), support.reason));
  const Config wanted = WantedOf(knobs, depthwise, cpu);
  const Config base = conv_template.Default(record.workload, cpu);
  record.template_name = conv_template.Name();
  record.config = NearestConfig(conv_template.Space(record.workload, cpu), base, wanted).value_or(base);
  record.layouts = conv_template.Layouts(record.workload, record.config);
  bool exact = knobs.Find("unroll_kw").value_or(1) == 1;
  exact = exact && (!depthwise || knobs.Get("tile_ic") == knobs.Get("tile_oc"));
  for (const auto& [name, value] : wanted.knobs()) exact = exact && record.config.Get(name) == value;
  if (!exact) record.detail = fmt::format("nearest to AutoTVM's {}", knobs.ToString());
  return exact;
}

struct NamedError {
  int64_t number;
  TrialStatus status;
};
// Both ways: the first that fits. TVM: 1 instantiation, 2 and 3 compiling, 4 running, 5 wrong answer,
// 6 and 7 timeouts, 8 unknown.
constexpr std::array<NamedError, 10> kErrors = {{{0, TrialStatus::kOk},
                                                 {1, TrialStatus::kInvalidConfig},
                                                 {2, TrialStatus::kBuildError},
                                                 {3, TrialStatus::kBuildError},
                                                 {4, TrialStatus::kRunCrash},
                                                 {4, TrialStatus::kOutOfMemory},
                                                 {5, TrialStatus::kWrongAnswer},
                                                 {6, TrialStatus::kBuildTimeout},
                                                 {7, TrialStatus::kRunTimeout},
                                                 {8, TrialStatus::kWorkerLost}}};

void SetResult(const Json& result, Record& record) {
  const int64_t error = Integer(Element(result, 1, "result"), "error_no");
  const auto named = std::find_if(kErrors.begin(), kErrors.end(),
                                  [&](const NamedError& known) { return known.number == error; });
  if (named == kErrors.end()) Refuse(fmt::format("error_no is {} (known: 0 to 8)", error));
  record.status = named->status;
  const Json& timestamp = Element(result, 3, "result");
  if (!timestamp.is_number()) Refuse("the timestamp is not a number");
  const double seconds = timestamp.get<double>();
  if (!(seconds >= 0 && seconds < 1e11)) Refuse(fmt::format("the timestamp is {}", seconds));
  record.time = UtcText(static_cast<int64_t>(seconds));
  if (record.status != TrialStatus::kOk) return;
  const Json& costs = Element(result, 0, "result");
  if (!costs.is_array() || costs.empty()) Refuse("no costs in a result without error");
  for (const Json& cost : costs) {
    const double sample = cost.is_number() ? cost.get<double>() : 0;
    if (!(sample > 0 && IsPlausibleTime(sample))) Refuse(fmt::format("cost {} is no time", cost.dump()));
    record.sample_seconds.push_back(sample);
  }
  record.seconds = Estimate(record.sample_seconds);
  record.statistic = kEstimatorName;
}

// TVM's splits are exact: the largest divisor of `size` that is at most `factor`.
int64_t LargestDivisor(int64_t size, int64_t factor) {
  factor = std::clamp<int64_t>(factor, 1, size);
  while (size % factor != 0) --factor;
  return factor;
}

Json SplitKnob(const char* name, int64_t size, int64_t factor) {
  return {name, "sp", {-1, LargestDivisor(size, factor)}};
}

Json InputOf(const Record& record, bool depthwise) {
  const ConvWorkload& w = record.workload;
  const Json data = {"TENSOR", {w.mb, w.ic, w.ih, w.iw}, "float32"};
  const Json kernel = {"TENSOR", {w.oc, depthwise ? 1 : w.ic, w.kh, w.kw}, "float32"};
  const Json strides = {w.sh, w.sw}, dilation = {w.dh + 1, w.dw + 1};
  const Json padding = {w.ph, w.pw, std::max<int64_t>(w.pad_bottom(), 0),
                        std::max<int64_t>(w.pad_right(), 0)};
  const Json args = {data, kernel, strides, padding, dilation, "NCHW", "NCHW", "float32"};
  return Json::array(
      {AutotvmTargetText(record.target.isa), depthwise ? kDepthwiseTask : kConvTask, args, Json::object()});
}

// A log's configs need not be of today's space.
int64_t KnobOf(const Record& record, const char* name) {
  const std::optional<int64_t> value = record.config.Find(name);
  if (!value) Refuse(fmt::format("a config of template {} without knob \"{}\"", record.template_name, name));
  return *value;
}

Json ConfigOf(const Record& record, bool depthwise) {
  constexpr int64_t kWidest = 64;  // of TVM's tile_ow
  const ConvWorkload& w = record.workload;
  const int64_t width = std::min(KnobOf(record, "width_tile"), kWidest);
  const bool pointwise = !depthwise && w.kh == 1 && w.kw == 1;
  Json entity = Json::array({SplitKnob("tile_ic", w.ic, record.layouts.in.BlockFor(w.ic)),
                             SplitKnob("tile_oc", w.oc, record.layouts.out.BlockFor(w.oc)),
                             SplitKnob("tile_ow", w.ow, width)});
  if (pointwise) {
    entity.push_back(Json::array({"tile_oh", "ot", std::min<int64_t>({KnobOf(record, "rows"), w.oh, 2})}));
  } else {
    entity.push_back(Json::array({"unroll_kw", "ot", true}));
  }
  return {{"index", -1}, {"code_hash", nullptr}, {"entity", entity}};
}

// Whether it is a conv of one of the two tasks.
bool IsDepthwise(const Record& record) {
  const ConvWorkload& w = record.workload;
  if (w.fused()) Refuse("AutoTVM has no task for fused convolutions");
  for (const Layout& layout : {record.layouts.in, record.layouts.out}) {
    if (layout.type() == DataType::kF32) continue;
    Refuse(fmt::format("the layout {}: tasks of AutoTVM are written for float32 only", layout.ToString()));
  }
  if (record.template_name == "direct" && w.g == 1) return false;
  if (record.template_name == "depthwise") return true;
  Refuse(fmt::format("AutoTVM has no equal to template {}{} (allowed: direct without groups, depthwise)",
                     record.template_name, w.g > 1 ? fmt::format(" with {} groups", w.g) : ""));
}

Json ResultOf(const Record& record) {
  const auto named = std::find_if(kErrors.begin(), kErrors.end(),
                                  [&](const NamedError& known) { return known.status == record.status; });
  const bool ok = record.status == TrialStatus::kOk;
  const double sum = std::accumulate(record.sample_seconds.begin(), record.sample_seconds.end(), 0.0);
  const Json costs = ok ? Json(record.sample_seconds) : Json::array({kFailureCost});
  const auto time = static_cast<double>(UtcSeconds(record.time).value_or(0));
  return Json::array({costs, named->number, sum, time});
}

constexpr std::string_view kToolPrefix = "tvm ";

}  // namespace

std::vector<Record> AdoptPostOps(const Record& record, std::span<const ConvWorkload> workloads) {
  std::vector<Record> records;
  for (const ConvWorkload& workload : workloads) {
    if (!SameConv(workload, record.workload)) continue;
    if (std::optional<Record> adopted = AsOf(workload, record)) records.push_back(*std::move(adopted));
  }
  return records;
}

ImportedRecord RecordFromAutotvm(std::string_view line) {
  const Json json = ParseJson<Json>(line);
  if (json.is_discarded()) Refuse("not JSON (a torn line, or not an AutoTVM log)");
  const Json& version = Member(json, "version");
  if (!version.is_number() || std::abs(version.get<double>() - kFormatVersion) > 1e-9)
    Refuse(fmt::format("AutoTVM log version {} (this version reads {})", version.dump(), kFormatVersion));
  const Json& input = Member(json, "input");
  const std::string target = Text(Element(input, 0, "input"), "the target");
  const std::string task = Text(Element(input, 1, "input"), "the task");
  if (task != kConvTask && task != kDepthwiseTask)
    Refuse(fmt::format("task {} (known: {}, {})", task, kConvTask, kDepthwiseTask));
  Record record;
  Target cpu;
  cpu.isa = IsaOfAutotvmTarget(target);
  record.target = {.model = target,
                   .isa = cpu.isa,
                   .cores = CoresOfAutotvmTarget(target),
                   .l1d_bytes = 0,
                   .l2_bytes = 0,
                   .version = ""};
  const auto tool = json.find("tvm_version");
  if (tool != json.end() && tool->is_string())
    record.target.version = std::string(kToolPrefix) + tool->get<std::string>();
  record.workload = WorkloadOf(task, Element(input, 2, "input"));
  const bool same_tiles = SetConfig(KnobsOf(Member(json, "config")), cpu, record);
  record.conditions = {record.target.cores, false, false};
  SetResult(Member(json, "result"), record);
  record.tuner = "autotvm";
  record.origin = Json{{"input", input}, {"config", json["config"]}}.dump();
  return {record, same_tiles};
}

std::string RecordToAutotvm(const Record& record) {
  Json line;
  if (record.origin.empty()) {
    const bool depthwise = IsDepthwise(record);
    line["input"] = InputOf(record, depthwise);
    line["config"] = ConfigOf(record, depthwise);
  } else {
    line = ParseJson<Json>(record.origin);
    if (!line.is_object() || !line.contains("input") || !line.contains("config"))
      Refuse("field \"origin\" is not what an import writes");
  }
  line["result"] = ResultOf(record);
  line["version"] = kFormatVersion;
  const std::string& tool = record.target.version;
  if (tool.starts_with(kToolPrefix)) line["tvm_version"] = tool.substr(kToolPrefix.size());
  return line.dump();
}

}  // namespace tilesmith
