#include "tools/bench/gpu_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"
#include "layouts/random_tensor.h"
#include "layouts/transform.h"
#include "templates/cudnn/config.h"

namespace tilesmith {
namespace {

double BestOfThree(GpuConv& conv, bool cold) {
  conv.Seconds(cold);
  return std::min({conv.Seconds(cold), conv.Seconds(cold), conv.Seconds(cold)});
}

Activation FusedActivation(const Activation& activation) {
  const bool fused = activation.kind == ActivationKind::kNone || activation.kind == ActivationKind::kRelu;
  return fused ? activation : Activation{ActivationKind::kRelu};
}

void CheckAgreement(GpuConv& ours, GpuConv& theirs, const GpuConvBench& bench, double allowed) {
  const double difference = RelativeDifference(ours.Answer(), theirs.Answer());
  if (difference <= allowed) return;
  throw Error(ErrorCode::kWrongAnswer,
              fmt::format("{}: template {} [{}] differs from cuDNN's {} by {:.1e} of the largest output",
                          WorkloadToString(bench.workload), bench.schedule.template_name,
                          bench.schedule.config.ToString(), bench.cudnn->text, difference));
}

void RunGpuDuel(std::array<GpuConv*, 2> sides, const GpuDuel& duel, GpuConvBench& bench) {
  constexpr int kMaxRounds = 400;
  DuelRounds rounds;
  for (GpuConv* const side : sides) side->Seconds(duel.cold);
  const double begin = NowSeconds();
  while (std::ssize(rounds) < kMinRounds ||
         (std::ssize(rounds) < kMaxRounds && NowSeconds() - begin < duel.seconds)) {
    ThrowIfStopped(duel.stop);
    std::vector<double>& round = rounds.emplace_back(2);
    const size_t first = rounds.size() % 2;
    for (const size_t side : {first, 1 - first}) round[side] = sides[side]->Seconds(duel.cold);
  }
  bench.seconds = DuelSeconds(rounds, 0);
  bench.cudnn->seconds = DuelSeconds(rounds, 1);
  bench.ratio = RatioOf(rounds, 0, 1);
}

}  // namespace

GpuTensors::GpuTensors(const ConvWorkload& workload, const DevicePtr& machine)
    : workload_(workload), machine_(machine), data_(RandomWorkloadData(workload)) {}

std::vector<InputView> GpuTensors::Inputs(const LayoutPair& layouts) {
  DeviceMemory& there = inputs_[layouts.in];
  if (there.data == nullptr) {
    const Target here = DetectCpu();
    const Tensor input = Transform(*operands_.input, layouts.in, here, here.cores);
    there = machine_->Allocate(static_cast<size_t>(input.bytes()));
    machine_->Upload(input.raw(), there.data.get(), there.bytes);
  }
  std::vector<InputView> views = {{there.data.get(), BatchBytes(workload_.input_shape(), layouts.in)}};
  if (!workload_.post.sum) return views;
  const OutputView output = Output(layouts.out);
  views.push_back({output.data, output.batch_stride});
  return views;
}

OutputView GpuTensors::Output(const Layout& layout) {
  const int64_t image = BatchBytes(workload_.output_shape(), layout);
  DeviceMemory& there = outputs_[layout];
  if (there.data == nullptr) there = machine_->Allocate(static_cast<size_t>(image * workload_.mb));
  return {there.data.get(), image};
}

void GpuTensors::SetResidual(const Layout& layout) {
  if (operands_.residual == nullptr) return;
  const Tensor residual = TransformGeneric(*operands_.residual, layout);
  machine_->Upload(residual.raw(), Output(layout).data, static_cast<size_t>(residual.bytes()));
}

Tensor GpuTensors::PlainOutput(const Layout& layout) {
  Tensor output(workload_.output_shape(), layout);
  machine_->Download(Output(layout).data, output.raw(), static_cast<size_t>(output.bytes()));
  return TransformGeneric(output, Layout::Nchw(IsFloating(layout.type()) ? DataType::kF32 : layout.type()));
}

void* GpuTensors::Scratch(int64_t bytes) {
  if (scratch_.bytes < static_cast<size_t>(bytes)) scratch_ = machine_->Allocate(static_cast<size_t>(bytes));
  return scratch_.data.get();
}

GpuConv::GpuConv(const ConvWorkload& workload, const Schedule& schedule, GpuTensors& tensors,
                 const DevicePtr& machine)
    : machine_(machine), tensors_(tensors) {
  const ConvTemplate& conv_template = FindConvTemplate(schedule.template_name);
  RequireSupport(conv_template, workload, machine->target());
  layouts_ = conv_template.Layouts(workload, schedule.config);
  kernel_ = machine->BuildConv(conv_template, workload, schedule.config, tensors.weights());
  inputs_ = tensors.Inputs(layouts_);
}

double GpuConv::Seconds(bool cold) {
  const KernelArgs args = {inputs_, tensors_.Output(layouts_.out),
                           tensors_.Scratch(kernel_->ScratchBytes(machine_->threads()))};
  if (cold) machine_->Evict(kernel_->PackedWeights());
  return machine_->Time(*kernel_, args);
}

Tensor GpuConv::Answer() {
  tensors_.SetResidual(layouts_.out);
  const Launch launch = {kernel_.get(), inputs_, tensors_.Output(layouts_.out),
                         tensors_.Scratch(kernel_->ScratchBytes(machine_->threads()))};
  machine_->NewStream(nullptr)->Run({&launch, 1}, {});
  return tensors_.PlainOutput(layouts_.out);
}

std::optional<CudnnChoice> FastestCudnn(const ConvWorkload& workload, GpuTensors& tensors,
                                        const DevicePtr& machine, bool cold, const CudnnWays& ways,
                                        std::string* refusal) {
  const ConvTemplate& cudnn = CudnnTemplate();
  const Support support = cudnn.Supports(workload, machine->target());
  if (!support.ok) {
    *refusal = support.reason;
    return std::nullopt;
  }
  const ConfigSpace space = cudnn.Space(workload, machine->target());
  std::optional<CudnnChoice> fastest;
  for (uint64_t i = 0; i < space.size(); ++i) {
    const Config config = space.At(i);
    if (!space.WhyInvalid(config).empty() || config.Get("type") != static_cast<int64_t>(ways.type) ||
        (ways.block && config.Get("block") != *ways.block))
      continue;
    const Schedule schedule = {std::string(cudnn.Name()), config, "default"};
    try {
      GpuConv conv(workload, schedule, tensors, machine);
      const double seconds = BestOfThree(conv, cold);
      if (fastest && fastest->seconds <= seconds) continue;
      fastest = {schedule, conv.layouts(), seconds,
                 fmt::format("{}{}", cudnn::AlgorithmName(config.Get("algorithm")),
                             config.Get("fused") == 1 ? ", fused" : "")};
    } catch (const Error& error) {  // it has not this one, or no memory for it
      if (error.code() != ErrorCode::kNoCandidate) throw;
      *refusal = error.what();
    }
  }
  return fastest;
}

GpuConvBench BenchGpuConv(const ConvWorkload& workload, const Schedule& schedule, const DevicePtr& machine,
                          const GpuDuel& duel, bool beside_cudnn) {
  GpuTensors tensors(workload, machine);
  GpuConv ours(workload, schedule, tensors, machine);
  GpuConvBench bench;
  bench.workload = workload;
  bench.schedule = schedule;
  bench.layouts = ours.layouts();
  ConvWorkload fused = workload;
  fused.post.activation = FusedActivation(workload.post.activation);
  bench.with_relu = fused != workload;
  if (beside_cudnn)
    bench.cudnn = FastestCudnn(fused, tensors, machine, duel.cold, {.type = duel.type}, &bench.refusal);
  if (!bench.cudnn) {
    bench.seconds = BestOfThree(ours, duel.cold);
    return bench;
  }
  GpuConv theirs(fused, bench.cudnn->schedule, tensors, machine);
  const double allowed = duel.type == DataType::kBf16 ? 3e-2 : machine->target().tf32 ? 1e-2 : 1e-3;
  if (!bench.with_relu) CheckAgreement(ours, theirs, bench, allowed);
  RunGpuDuel({&ours, &theirs}, duel, bench);
  return bench;
}

}  // namespace tilesmith
