#include "tuner/measure/trial_runner.h"

#include <new>

#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/sampling.h"
#include "tuner/measure/estimator.h"

namespace tilesmith {
namespace {

void Fail(TrialResult& result, TrialStatus status, std::string detail) {
  result.status = status;
  result.detail = std::move(detail);
  result.seconds = 0;
}

// The team stays pinned for the life of the worker, or until a session asks for another.
int PreparedThreads(const MeasureConditions& conditions) {
  UnpinThisThread();
  if (conditions.pinned) PinTeam(conditions.threads);
  return conditions.threads;
}

}  // namespace

TrialRunner::TrialRunner(const MeasureSession& session, TemplateFinder find)
    : session_(session),
      device_(OpenDevice(session.cpu, session.conditions.threads)),
      find_(std::move(find)),
      data_(session.workload, session.seed, session.cpu, PreparedThreads(session.conditions)),
      memory_(device_),
      cores_(session.conditions.threads) {}

void TrialRunner::Continue() { PreparedThreads(session_.conditions); }

// Spaces are kept: making one can take as long as building a small kernel.
std::string TrialRunner::WhyInvalid(const ConvTemplate& conv_template, const Config& config) {
  const auto known = spaces_.find(&conv_template);
  if (known != spaces_.end()) return known->second.WhyInvalid(config);
  const Support support = conv_template.Supports(session_.workload, session_.cpu);
  if (!support.ok) return support.reason;
  return spaces_.emplace(&conv_template, conv_template.Space(session_.workload, session_.cpu))
      .first->second.WhyInvalid(config);
}

std::unique_ptr<ConvKernel> TrialRunner::Build(const TrialRequest& request, LayoutPair& layouts,
                                               TrialResult& result) {
  try {
    const ConvTemplate& conv_template = find_(request.template_name);
    const std::string why_invalid = WhyInvalid(conv_template, request.config);
    if (!why_invalid.empty()) {
      Fail(result, TrialStatus::kInvalidConfig, why_invalid);
      return nullptr;
    }
    layouts = conv_template.Layouts(session_.workload, request.config);
    const double begin = NowSeconds();
    auto kernel = device_->BuildConv(conv_template, session_.workload, request.config, data_.weights());
    result.build_seconds = NowSeconds() - begin;
    memory_.Scratch(static_cast<size_t>(kernel->ScratchBytes(device_->threads())));
    return kernel;
  } catch (const std::bad_alloc&) {
    Fail(result, TrialStatus::kOutOfMemory, "out of memory while building");
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    const bool memory = error.code() == ErrorCode::kEnvironment;
    Fail(result, memory ? TrialStatus::kOutOfMemory : TrialStatus::kBuildError, error.what());
  } catch (const std::exception& error) {
    Fail(result, TrialStatus::kBuildError, error.what());
  }
  return nullptr;
}

void TrialRunner::Prepare(std::span<const TrialRequest> requests) {
  std::vector<std::pair<const ConvTemplate*, Config>> builds;
  for (const TrialRequest& request : requests) {
    try {
      const ConvTemplate& conv_template = find_(request.template_name);
      if (WhyInvalid(conv_template, request.config).empty())
        builds.emplace_back(&conv_template, request.config);
    } catch (const Error&) {  // the trial will tell
    }
  }
  device_->BuildAhead(session_.workload, builds, data_.weights());
}

double TrialRunner::RunOnce(const ConvKernel& kernel, const KernelArgs& args, bool cold) {
  if (cold) device_->Evict(kernel.PackedWeights());
  return device_->Time(kernel, args);
}

void TrialRunner::TakeSamplesOnOwnCores(const ConvKernel& kernel, const KernelArgs& args, double stop_above,
                                        TrialResult& result) {
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    cores_.Await();
    result.sample_seconds.clear();
    TakeSamples(kernel, args, stop_above, result);
    if (cores_.AreKept()) break;
  }
}

void TrialRunner::TakeSamples(const ConvKernel& kernel, const KernelArgs& args, double stop_above,
                              TrialResult& result) {
  const bool cold = session_.conditions.cold_weights;
  const auto take = [&] { return RunOnce(kernel, args, cold); };
  std::vector<double>& samples = result.sample_seconds;
  const double begin = NowSeconds();
  samples.push_back(take());
  // One run may have been disturbed; two in a row are believed.
  if (samples.back() > stop_above) samples.push_back(take());
  result.early_stopped = samples.back() > stop_above;
  if (!result.early_stopped) tilesmith::TakeSamples(session_.sampling, take, samples, begin);
  result.seconds = Estimate(samples);
}

TrialResult TrialRunner::Run(const TrialRequest& request, const std::function<void()>& before_run) {
  TrialResult result;
  LayoutPair layouts;
  const std::unique_ptr<ConvKernel> kernel = Build(request, layouts, result);
  if (kernel == nullptr) return result;
  try {
    std::vector<InputView> inputs = {memory_.Input(data_.Input(layouts.in))};
    if (session_.workload.product) inputs.push_back(memory_.Input(data_.RightSide()));
    if (session_.workload.post.sum) inputs.push_back(memory_.Input(data_.Residual(layouts.out)));
    data_.Poison(layouts.out);
    GuardedOutput& output = data_.Output(layouts.out);
    const KernelArgs args = {inputs, memory_.Output(output), memory_.Scratch(0)};
    before_run();
    // The run that is checked also warms caches, pages and the thread team, so it is no sample. A config this
    // far from the best needs no sample either.
    constexpr double kHopeless = 4;
    const double first = RunOnce(*kernel, args, false);
    memory_.BringBack(output);
    const ConvTemplate& conv_template = find_(request.template_name);
    const AnswerCheck check =
        data_.CheckAnswer(layouts.out, {conv_template.ErrorFactor(session_.workload, request.config),
                                        TypeRoundingOf(conv_template, session_.workload, layouts)});
    result.error = check.error;
    if (!check.wrong.empty()) {
      Fail(result, TrialStatus::kWrongAnswer, check.wrong);
    } else if (first > kHopeless * request.stop_above_seconds) {
      result.early_stopped = true;
      result.sample_seconds = {first};
      result.seconds = first;
    } else {
      TakeSamplesOnOwnCores(*kernel, args, request.stop_above_seconds, result);
    }
  } catch (const std::bad_alloc&) {
    Fail(result, TrialStatus::kOutOfMemory, "out of memory while running");
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    // Tensors for these layouts did not fit; anything else is a bug of ours, but still only one trial's.
    const bool memory = error.code() == ErrorCode::kEnvironment;
    Fail(result, memory ? TrialStatus::kOutOfMemory : TrialStatus::kRunCrash, error.what());
  } catch (const std::exception& error) {
    Fail(result, TrialStatus::kRunCrash, error.what());
  }
  return result;
}

}  // namespace tilesmith
