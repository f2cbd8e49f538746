#include "tools/bench/conv_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layouts/base/check.h"
#include "layouts/random_tensor.h"
#include "ops/base/elements.h"
#include "ops/conv/conv.h"
#include "ops/quantize/quantized_data.h"
#include "tools/onednn/onednn.h"

namespace tilesmith {

// oneDNN's side of a conv: one primitive; for a fused workload two, one run after the other, since oneDNN is
// not asked to fuse anything in front of a conv.
class OneDnnSequence {
 public:
  // Null when oneDNN cannot do one of them, with the reason in *refusal. `algorithm` is the main conv's; a
  // conv in front of it is direct. The data is set, the residual with it; all of it is stored as `type`, f32
  // or, of a conv alone, bf16.
  static std::unique_ptr<OneDnnSequence> Create(const ConvWorkload& workload, OneDnnAlgorithm algorithm,
                                                const ConvData& data, DataType type, std::string* refusal);

  // The twin of a convolution of bytes.
  static std::unique_ptr<OneDnnSequence> Create(const QuantizedData& data, std::string* refusal);

  void Run();
  void SetResidual(const Tensor& plain) { conv_->SetResidual(plain); }
  Tensor GetOutput() { return conv_->GetOutput(); }

  std::string ImplName() const;  // "brgconv:avx512_core", or both with a ">" between
  std::string LayoutsText() const;
  std::vector<std::span<const std::byte>> PackedWeights() const;

 private:
  bool CreateFirst(const ConvWorkload& workload, const ConvData& data, std::string* refusal);

  std::unique_ptr<OneDnnPrimitive> first_;  // null where nothing is in front
  std::unique_ptr<OneDnnConv> conv_;
};

namespace {

const float* FloatsOf(const std::optional<Tensor>& tensor) { return tensor ? tensor->floats() : nullptr; }

std::unique_ptr<OneDnnPrimitive> MakeInputOps(const ConvWorkload& workload, const ConvData& data,
                                              const std::string& layout, std::string* refusal) {
  if (layout == "other") {
    *refusal = "the conv reads a layout that oneDNN's elementwise primitives are not asked for";
    return nullptr;
  }
  const Shape shape = workload.input_shape();
  const Activation& activation = workload.pre.activation;
  if (!workload.pre.scale_shift) {
    return MakeOneDnnActivation(shape, activation, Layout::Parse(layout), refusal);
  }
  return MakeOneDnnScaleShift(shape, {data.scale->floats(), data.shift->floats(), activation},
                              Layout::Parse(layout), refusal);
}

}  // namespace

std::unique_ptr<OneDnnSequence> OneDnnSequence::Create(const ConvWorkload& workload,
                                                       OneDnnAlgorithm algorithm, const ConvData& data,
                                                       DataType type, std::string* refusal) {
  if (workload.fused() && type != DataType::kF32) {
    *refusal = "oneDNN is asked for one convolution alone in " + std::string(DataTypeName(type));
    return nullptr;
  }
  auto sequence = std::make_unique<OneDnnSequence>();
  sequence->conv_ = OneDnnConv::Create(workload.main_conv(), algorithm,
                                       {data.weights.floats(), FloatsOf(data.bias)}, refusal, type);
  if (sequence->conv_ == nullptr) return nullptr;
  if (workload.fused()) {
    if (!sequence->CreateFirst(workload, data, refusal)) return nullptr;
    sequence->conv_->Connect(0, *sequence->first_);
  }
  (workload.fused() ? *sequence->first_ : *sequence->conv_).OneDnnPrimitive::SetInput(0, data.input);
  if (data.residual) sequence->SetResidual(*data.residual);
  return sequence;
}

std::unique_ptr<OneDnnSequence> OneDnnSequence::Create(const QuantizedData& data, std::string* refusal) {
  auto sequence = std::make_unique<OneDnnSequence>();
  sequence->conv_ = OneDnnConv::Create(*data.op, refusal);
  if (sequence->conv_ == nullptr) return nullptr;
  sequence->conv_->SetInput(data.input);
  if (data.residual) sequence->SetResidual(*data.residual);
  return sequence;
}

bool OneDnnSequence::CreateFirst(const ConvWorkload& workload, const ConvData& data, std::string* refusal) {
  if (workload.before.empty()) {
    first_ = MakeInputOps(workload, data, conv_->InputLayoutName(), refusal);
  } else {
    first_ = OneDnnConv::Create(workload.before[0], OneDnnAlgorithm::kDirect,
                                {data.before_weights->floats(), FloatsOf(data.before_bias)}, refusal);
  }
  return first_ != nullptr;
}

void OneDnnSequence::Run() {
  if (first_) first_->Run();
  conv_->Run();
}

std::string OneDnnSequence::ImplName() const {
  return first_ ? first_->ImplName() + ">" + conv_->ImplName() : conv_->ImplName();
}

std::string OneDnnSequence::LayoutsText() const {
  const OneDnnPrimitive& reads = first_ ? *first_ : *conv_;
  return fmt::format("{} -> {}", reads.InputLayoutName(), conv_->OutputLayoutName());
}

std::vector<std::span<const std::byte>> OneDnnSequence::PackedWeights() const {
  std::vector<std::span<const std::byte>> weights = {conv_->PackedWeights()};
  if (first_) weights.push_back(first_->PackedWeights());
  return weights;
}

namespace {

constexpr OneDnnAlgorithm kAlgorithms[] = {OneDnnAlgorithm::kDirect, OneDnnAlgorithm::kAuto,
                                           OneDnnAlgorithm::kWinograd};

constexpr double kNarrowDifference = 3e-2;  // of the largest output, in bf16

struct Twin {
  OneDnnAlgorithm algorithm;
  std::unique_ptr<OneDnnSequence> conv;
  double steps_apart = 0;
};

// For bytes oneDNN has one algorithm.
std::vector<Twin> MakeTwins(const ConvWorkload& workload, const WorkloadData& data, DataType type,
                            std::vector<std::string>* refusals) {
  std::vector<Twin> twins;
  for (OneDnnAlgorithm algorithm :
       std::span(kAlgorithms).first(workload.bytes ? 1 : std::size(kAlgorithms))) {
    std::string refusal;
    auto conv = workload.bytes ? OneDnnSequence::Create(data.bytes, &refusal)
                               : OneDnnSequence::Create(workload, algorithm, data.floats, type, &refusal);
    if (conv == nullptr) {
      if (refusals) refusals->push_back(fmt::format("{}: {}", OneDnnAlgorithmName(algorithm), refusal));
      continue;
    }
    twins.push_back({algorithm, std::move(conv)});
  }
  return twins;
}

OneDnnSide SideOf(const Twin& twin) {
  return {.algorithm = twin.algorithm,
          .implementation = twin.conv->ImplName(),
          .layouts = twin.conv->LayoutsText(),
          .ratio = {},
          .steps_apart = twin.steps_apart};
}

// Whether ours multiplies or stores bf16.
bool IsNarrow(const ConvWorkload& workload, const Schedule& schedule) {
  const ConvTemplate& conv_template = FindConvTemplate(schedule.template_name);
  const LayoutPair layouts = conv_template.Layouts(workload, schedule.config);
  const DataType types[] = {conv_template.FactorType(), layouts.in.type(), layouts.out.type()};
  return std::ranges::count(types, DataType::kBf16) > 0;
}

// What oneDNN multiplies and stores beside it.
DataType TwinType(const ConvWorkload& workload, const Schedule& schedule, const Target& cpu) {
  return cpu.bf16 && IsNarrow(workload, schedule) ? DataType::kBf16 : DataType::kF32;
}

void CheckAgreement(const Tensor& answer, std::vector<Twin>& twins, const ConvBench& bench,
                    const ConvData& data) {
  const bool plain_sum =
      FindConvTemplate(bench.schedule.template_name).ErrorFactor(bench.workload, bench.schedule.config) == 1;
  for (Twin& twin : twins) {
    twin.conv->Run();
    const double difference = RelativeDifference(answer, twin.conv->GetOutput());
    if (data.residual) twin.conv->SetResidual(*data.residual);
    const bool narrow = IsNarrow(bench.workload, bench.schedule);
    const double allowed = narrow                                                      ? kNarrowDifference
                           : plain_sum && twin.algorithm != OneDnnAlgorithm::kWinograd ? 1e-4
                                                                                       : 1e-3;
    if (difference <= allowed) continue;
    throw Error(
        ErrorCode::kWrongAnswer,
        fmt::format("{}: template {} [{}] differs from oneDNN's {} by {:.1e} of the largest output",
                    WorkloadToString(bench.workload), bench.schedule.template_name,
                    bench.schedule.config.ToString(), OneDnnAlgorithmName(twin.algorithm), difference));
  }
}

// Whether ours is the reference at these elements.
bool IsReference(const std::vector<float>& ours, const QuantizedData& data, std::vector<int64_t> elements) {
  constexpr size_t kSeen = 4096;
  if (elements.size() > kSeen) elements.resize(kSeen);
  const std::vector<float> reference = ElementsAs<float>(data.op->ReferenceAt(data.inputs(), elements));
  return std::ranges::equal(
      elements, reference, [&](int64_t at, float stored) { return ours[static_cast<size_t>(at)] == stored; });
}

// What is stored, which may be a step apart, or with a residual two. Where it is more, ours has to be the
// reference's.
void CheckBytesAgree(const Tensor& answer, std::vector<Twin>& twins, const ConvBench& bench,
                     const QuantizedData& data) {
  const bool real = answer.type() == DataType::kF32;
  const std::vector<float> ours = ElementsAs<float>(answer);
  for (Twin& twin : twins) {
    twin.conv->Run();
    const Tensor theirs = twin.conv->GetOutput();
    if (data.residual) twin.conv->SetResidual(*data.residual);
    const double allowed = data.residual ? 2 : 1;
    double steps = 0;
    std::vector<int64_t> apart;
    for (size_t i = 0; i < ours.size() && !real; ++i) {
      const double own = std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs.floats()[i]));
      if (own > allowed) apart.push_back(static_cast<int64_t>(i));
      steps = std::max(steps, own);
    }
    if (real ? RelativeDifference(answer, theirs) <= 1e-4 : apart.empty()) continue;
    if (!real && IsReference(ours, data, apart)) {
      twin.steps_apart = steps;
      continue;
    }
    throw Error(ErrorCode::kWrongAnswer,
                fmt::format("{}: template {} [{}] differs from oneDNN's by {} steps",
                            WorkloadToString(bench.workload), bench.schedule.template_name,
                            bench.schedule.config.ToString(), steps));
  }
}

// oneDNN's choice is often its direct algorithm by another name.
void MeasureErrors(ConvBench& bench, const Target& cpu) {
  bench.error = MeasureConvError(FindConvTemplate(bench.schedule.template_name), bench.workload,
                                 bench.schedule.config, cpu);
  if (IsNarrow(bench.workload, bench.schedule)) return;
  for (OneDnnSide& side : bench.sides) {
    const OneDnnSide& first = bench.sides.front();
    side.error = side.implementation == first.implementation && first.error
                     ? first.error
                     : MeasureOneDnnError(bench.workload, side.algorithm);
  }
}

}  // namespace

const OneDnnSide* ConvBench::Fastest() const {
  const auto found = std::min_element(sides.begin(), sides.end(),
                                      [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return found == sides.end() ? nullptr : &*found;
}

const OneDnnSide* ConvBench::Direct() const {
  const auto found = std::find_if(sides.begin(), sides.end(), [](const OneDnnSide& side) {
    return side.algorithm == OneDnnAlgorithm::kDirect;
  });
  return found == sides.end() ? nullptr : &*found;
}

ConvBench BenchConv(const ConvWorkload& workload, const Schedule& schedule, const DevicePtr& machine,
                    const DuelOptions& options, const SeparateSchedules* separate) {
  const WorkloadData both = RandomWorkloadData(workload);
  const ConvData& data = both.floats;
  OurConv ours(workload, schedule, both.operands(), machine);
  ConvBench bench{workload, schedule, ours.layouts(), 0, {}, {}, {}, 0, {}};
  std::vector<Twin> twins =
      MakeTwins(workload, both, TwinType(workload, schedule, machine->target()), &bench.refusals);
  const Tensor answer = ours.Answer();
  if (!workload.bytes)
    CheckAgreement(answer, twins, bench, data);
  else if (machine->target().vnni)  // else oneDNN's sums saturate
    CheckBytesAgree(answer, twins, bench, both.bytes);

  std::vector<Contestant> contestants{{"ours", [&] { ours.Run(); }, {ours.weights()}}};
  for (Twin& twin : twins) {
    contestants.push_back({std::string(OneDnnAlgorithmName(twin.algorithm)),
                           [conv = twin.conv.get()] { conv->Run(); }, twin.conv->PackedWeights(),
                           TakeOneDnnTurn});
  }
  std::optional<OurSeparateConv> apart;
  if (separate != nullptr) {
    apart.emplace(workload, *separate, data, machine);
    const double allowed = IsNarrow(workload, schedule) ? kNarrowDifference : 1e-3;
    TILESMITH_CHECK(RelativeDifference(apart->Answer(), answer) <= allowed, "{}", WorkloadToString(workload));
    contestants.push_back({"separate", [&] { apart->Run(); }, apart->weights()});
  }
  const DuelRounds rounds = RunDuel(contestants, options).rounds;
  bench.seconds = DuelSeconds(rounds, 0);
  for (size_t i = 0; i < twins.size(); ++i) {
    OneDnnSide side = SideOf(twins[i]);
    side.seconds = DuelSeconds(rounds, i + 1);
    side.ratio = RatioOf(rounds, 0, i + 1);
    bench.sides.push_back(std::move(side));
  }
  if (separate != nullptr) {
    bench.separate_seconds = DuelSeconds(rounds, contestants.size() - 1);
    bench.separate_ratio = RatioOf(rounds, 0, contestants.size() - 1);
  }
  const bool of_one_conv = !workload.fused() && !workload.bytes && !workload.product;
  if (of_one_conv) MeasureErrors(bench, machine->target());
  return bench;
}

std::vector<OneDnnSide> TimeOneDnn(const ConvWorkload& workload, const DuelOptions& options) {
  const WorkloadData data = RandomWorkloadData(workload);
  const std::vector<Twin> twins = MakeTwins(workload, data, DataType::kF32, nullptr);
  if (twins.empty()) return {};
  std::vector<Contestant> contestants;
  contestants.reserve(twins.size());
  for (const Twin& twin : twins) {
    contestants.push_back(
        {"", [conv = twin.conv.get()] { conv->Run(); }, twin.conv->PackedWeights(), TakeOneDnnTurn});
  }
  const DuelRounds rounds = RunDuel(contestants, options).rounds;
  std::vector<OneDnnSide> sides;
  for (size_t i = 0; i < twins.size(); ++i) {
    sides.push_back(SideOf(twins[i]));
    sides.back().seconds = DuelSeconds(rounds, i);
  }
  return sides;
}

}  // namespace tilesmith
