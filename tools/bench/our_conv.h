// Our side of a comparison: a conv by one of our kernels with everything it needs, and what a fused workload
// computes by two kernels instead, one after the other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "templates/base/workload_data.h"
#include "tools/cli/machine.h"
#include "tuner/records/record_groups.h"

namespace tilesmith {

// How we compute a conv.
struct Schedule {
  std::string template_name;
  Config config;
  std::string origin;  // "plan", "log", "default"
};

// How we compute a fused workload without fusing: a conv in front (ignored for input ops), then the main one.
struct SeparateSchedules {
  Schedule first, main;
};

// The schedule by which a plan's node computes. `planned` says that the plan is a file's, not the log's.
Schedule ScheduleIn(const Record& record, bool planned);

// A fused workload competes with its parts, one kernel after the other. These are the two records with the
// least sum of seconds that agree on the layout between them; of input ops, the main conv's fastest. Default
// schedules where records lack. Precondition: a fused workload.
SeparateSchedules FastestSeparate(const ConvWorkload& workload, const BestByWorkload& records,
                                  const Target& cpu);

// The schedule without tuning: the default of the first template that supports the workload, of those that
// multiply bf16 where `type` is that. Throws Error(kNoCandidate) when none does.
Schedule DefaultSchedule(const ConvWorkload& workload, const Target& cpu, DataType type = DataType::kF32);

// Throws Error(kNoCandidate) when the template does not support the workload.
void RequireSupport(const ConvTemplate& conv_template, const ConvWorkload& workload, const Target& target);

// All sides of a comparison compute on this data.
WorkloadData RandomWorkloadData(const ConvWorkload& workload);

class OurConv {
 public:
  // Throws as RequireSupport. Reads the residual
  // again whenever it answers.
  OurConv(const ConvWorkload& workload, const Schedule& schedule, const WorkloadOperands& operands,
          const DevicePtr& machine);

  const LayoutPair& layouts() const { return layouts_; }
  std::span<const std::byte> weights() const { return kernel_->PackedWeights(); }
  Tensor& input() { return input_; }
  const Tensor& output() const { return output_; }
  // From now on the input is this tensor. Precondition: its layout is layouts().in.
  void ReadFrom(const Tensor& source) { views_[0] = source.input_view(); }
  void Run();
  // Runs it once on the residual as given; the result is plain, of floats where it is stored as bf16.
  Tensor Answer();

 private:
  friend class OurSeparateConv;
  void SetResidual();

  ConvWorkload workload_;
  const Tensor* residual_;  // may be null
  DevicePtr machine_;
  LayoutPair layouts_;
  std::unique_ptr<ConvKernel> kernel_;
  Tensor input_, output_;
  AlignedBuffer scratch_;
  std::vector<InputView> views_;
};

class OurSeparateConv {
 public:
  // Precondition: a fused workload. Input ops run in the layout that the main conv reads; between two convs
  // whose layouts differ there is a transform.
  OurSeparateConv(const ConvWorkload& workload, const SeparateSchedules& schedules, const ConvData& data,
                  const DevicePtr& machine);

  std::vector<std::span<const std::byte>> weights() const;
  void Run();
  Tensor Answer();

 private:
  void AddInputOps(const ConvWorkload& workload, const ConvData& data);

  DevicePtr machine_;
  ConvData first_data_, main_data_;
  std::unique_ptr<OurConv> first_, main_;
  std::unique_ptr<Kernel> between_;  // the input ops, or the transform; may be null
  Tensor given_;                     // what the input ops read
};

}  // namespace tilesmith
