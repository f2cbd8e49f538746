#include "tools/bench/our_conv.h"

#include <fmt/format.h>

#include <limits>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "layouts/random_tensor.h"
#include "layouts/transform.h"
#include "ops/elementwise/elementwise_kernel.h"

namespace tilesmith {
namespace {

const BestByLayouts& RecordsOf(const ConvWorkload& workload, const BestByWorkload& records) {
  static const BestByLayouts none;
  const auto found = records.find(WorkloadToString(workload));
  return found == records.end() ? none : found->second;
}

}  // namespace

Schedule ScheduleIn(const Record& record, bool planned) {
  return {record.template_name, record.config, planned ? "plan" : record.seconds > 0 ? "log" : "default"};
}

SeparateSchedules FastestSeparate(const ConvWorkload& workload, const BestByWorkload& records,
                                  const Target& cpu) {
  const ConvWorkload main = workload.main_conv();
  SeparateSchedules best{{}, DefaultSchedule(main, cpu)};
  if (!workload.before.empty()) best.first = DefaultSchedule(workload.before[0], cpu);
  double seconds = std::numeric_limits<double>::infinity();
  const auto offer = [&](const Record* first, const Record& second) {
    const double sum = second.seconds + (first ? first->seconds : 0);
    if (sum >= seconds) return;
    seconds = sum;
    best = {first ? ScheduleIn(*first, false) : Schedule(), ScheduleIn(second, false)};
  };
  for (const auto& [layouts, second] : RecordsOf(main, records)) {
    if (workload.before.empty()) offer(nullptr, second);
    for (const ConvWorkload& before : workload.before) {
      for (const auto& [first_layouts, first] : RecordsOf(before, records))
        if (first_layouts.out == layouts.in) offer(&first, second);
    }
  }
  return best;
}

Schedule DefaultSchedule(const ConvWorkload& workload, const Target& cpu, DataType type) {
  for (const ConvTemplate* candidate : ConvTemplatesFor(cpu, workload, type)) {
    if (!candidate->Supports(workload, cpu).ok) continue;
    return {std::string(candidate->Name()), candidate->Default(workload, cpu), "default"};
  }
  throw Error(ErrorCode::kNoCandidate,
              fmt::format("no template of {} supports {}", DataTypeName(type), WorkloadToString(workload)));
}

void RequireSupport(const ConvTemplate& conv_template, const ConvWorkload& workload, const Target& target) {
  const Support support = conv_template.Supports(workload, target);
  if (support.ok) return;
  throw Error(ErrorCode::kNoCandidate,
              fmt::format("template {} does not support {}: {}", conv_template.Name(),
                          WorkloadToString(workload), support.reason));
}

WorkloadData RandomWorkloadData(const ConvWorkload& workload) {
  uint64_t seed = 0;
  return MakeWorkloadData(workload, seed,
                          [&seed](Tensor& tensor) { tensor = RandomTensor(tensor.shape(), ++seed); });
}

OurConv::OurConv(const ConvWorkload& workload, const Schedule& schedule, const WorkloadOperands& operands,
                 const DevicePtr& machine)
    : workload_(workload), residual_(operands.residual), machine_(machine) {
  const ConvTemplate& conv_template = FindConvTemplate(schedule.template_name);
  RequireSupport(conv_template, workload, machine->target());
  layouts_ = conv_template.Layouts(workload, schedule.config);
  kernel_ = conv_template.Build(workload, schedule.config, machine->target(), operands.weights);
  input_ = Transform(*operands.input, layouts_.in, machine->target(), machine->threads());
  output_ = Tensor(workload.output_shape(), layouts_.out);
  scratch_ = AlignedBuffer(static_cast<size_t>(kernel_->ScratchBytes(machine->threads())));
  views_.push_back(input_.input_view());
  if (workload.product) views_.push_back(operands.right_side->input_view());
  if (workload.post.sum) views_.push_back(output_.input_view());
}

void OurConv::Run() {
  RunKernel(*kernel_, {views_, output_.output_view(), scratch_.data()}, machine_->threads());
}

Tensor OurConv::Answer() {
  SetResidual();
  Run();
  const DataType stored = output_.type();
  return TransformGeneric(output_, Layout::Nchw(stored == DataType::kBf16 ? DataType::kF32 : stored));
}

void OurConv::SetResidual() {
  if (residual_ == nullptr) return;
  output_ = Transform(*residual_, layouts_.out, machine_->target(), 1);
  views_[1] = output_.input_view();
}

OurSeparateConv::OurSeparateConv(const ConvWorkload& workload, const SeparateSchedules& schedules,
                                 const ConvData& data, const DevicePtr& machine)
    : machine_(machine), main_data_(data) {
  main_data_.input = Tensor(workload.main_input_shape());
  main_ = std::make_unique<OurConv>(workload.main_conv(), schedules.main, OperandsOf(main_data_), machine);
  if (workload.before.empty()) {
    AddInputOps(workload, data);
    return;
  }
  first_data_.input = data.input;
  first_data_.weights = *data.before_weights;
  first_data_.bias = data.before_bias;
  first_ = std::make_unique<OurConv>(workload.before[0], schedules.first, OperandsOf(first_data_), machine);
  const Layout &given = first_->layouts().out, &read = main_->layouts().in;
  if (given == read) {
    main_->ReadFrom(first_->output());
  } else {
    between_ = MakeTransformKernel(workload.main_input_shape(), given, read, machine->target());
  }
}

void OurSeparateConv::AddInputOps(const ConvWorkload& workload, const ConvData& data) {
  const Shape shape = workload.main_input_shape();
  const Layout& layout = main_->layouts().in;
  const KernelRequest request{{shape}, shape, layout, machine_->target()};
  given_ = Transform(data.input, layout, machine_->target(), machine_->threads());
  if (workload.pre.scale_shift) {
    const auto values = [](const Tensor& t) { return std::vector(t.floats(), t.floats() + t.size()); };
    between_ =
        MakeScaleShiftKernel(request, values(*data.scale), values(*data.shift), workload.pre.activation);
  } else {
    between_ = MakeActivationKernel(request, workload.pre.activation);
  }
}

std::vector<std::span<const std::byte>> OurSeparateConv::weights() const {
  std::vector<std::span<const std::byte>> weights = {main_->weights()};
  if (first_) weights.push_back(first_->weights());
  return weights;
}

void OurSeparateConv::Run() {
  if (first_) first_->Run();
  if (between_) {
    const InputView source[] = {first_ ? first_->output().input_view() : given_.input_view()};
    RunKernel(*between_, {source, main_->input().output_view(), nullptr}, machine_->threads());
  }
  main_->Run();
}

Tensor OurSeparateConv::Answer() {
  main_->SetResidual();
  Run();
  return TransformGeneric(main_->output(), Layout::Nchw());
}

}  // namespace tilesmith
