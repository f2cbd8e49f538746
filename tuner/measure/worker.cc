#include "tuner/measure/worker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <list>
#include <new>
#include <string>
#include <thread>

#include "layouts/base/check.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"
#include "layouts/measure/sampling.h"
#include "tuner/measure/estimator.h"
#include "tuner/measure/protocol.h"
#include "tuner/measure/transport.h"

namespace tilesmith {

void OwnCores::Await() {
  constexpr double kPatienceSeconds = 150e-3;
  constexpr std::chrono::milliseconds kPause(5);
  const double begin = NowSeconds();
  while (!AreKept()) {
    if (NowSeconds() - begin > kPatienceSeconds) fastest_ = {};
    std::this_thread::sleep_for(kPause);
  }
}

bool OwnCores::AreKept() {
  const CorePlacement seen = SeePlacement(threads_);
  if (!fastest_.is_known() || seen.arithmetic_seconds < fastest_.arithmetic_seconds) fastest_ = seen;
  return ComputeAlike(seen, fastest_);
}

InputView TrialMemory::Input(const Tensor& tensor) {
  InputView view = tensor.input_view();
  if (device_->ReadsHostMemory()) return view;
  DeviceMemory& there = brought_[tensor.raw()];
  if (there.data == nullptr) {
    there = device_->Allocate(static_cast<size_t>(tensor.bytes()));
    device_->Upload(tensor.raw(), there.data.get(), there.bytes);
  }
  view.data = there.data.get();
  return view;
}

OutputView TrialMemory::Output(GuardedOutput& output) {
  OutputView view = output.view();
  if (device_->ReadsHostMemory()) return view;
  const std::span<std::byte> memory = output.memory();
  DeviceMemory& there = brought_[memory.data()];
  if (there.data == nullptr) there = device_->Allocate(memory.size());
  device_->Upload(memory.data(), there.data.get(), memory.size());
  view.data = static_cast<std::byte*>(there.data.get()) + GuardedOutput::kGuardBytes;
  return view;
}

void TrialMemory::BringBack(GuardedOutput& output) const {
  if (device_->ReadsHostMemory()) return;
  const std::span<std::byte> memory = output.memory();
  const auto there = brought_.find(memory.data());
  TILESMITH_CHECK(there != brought_.end(), "an output that was not brought there");
  device_->Download(there->second.data.get(), memory.data(), memory.size());
}

void* TrialMemory::Scratch(size_t bytes) {
  if (scratch_.bytes < bytes) scratch_ = device_->Allocate(bytes);
  return scratch_.data.get();
}

int64_t TrialMemory::bytes() const {
  size_t sum = scratch_.bytes;
  for (const auto& [where, memory] : brought_) sum += memory.bytes;
  return static_cast<int64_t>(sum);
}

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

namespace {

// Sanitizers reserve terabytes of address space, which no limit may then cap.
constexpr bool kCanLimitAddressSpace =
#ifdef __SANITIZE_ADDRESS__
    false;
#else
    true;
#endif

void LimitMemory(int64_t bytes) {
  if (bytes <= 0 || !kCanLimitAddressSpace) return;
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return;
  const rlim_t wanted = static_cast<rlim_t>(bytes);
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(limit.rlim_max, wanted);
  setrlimit(RLIMIT_AS, &limit);
}

// A worker that hangs kills itself some time after its tuner would have, in case the tuner is gone.
class Watchdog {
 public:
  explicit Watchdog(const TrialLimits& limits) {
    constexpr double kGraceSeconds = 10;
    constexpr double kLongest = 1e6;
    const double seconds = limits.build_seconds + limits.run_seconds + kGraceSeconds;
    alarm(static_cast<unsigned>(std::clamp(std::ceil(seconds), 1.0, kLongest)));
  }
  ~Watchdog() { alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

class Worker {
 public:
  Worker(Transport& transport, Target target, TemplateFinder find)
      : transport_(transport), target_(std::move(target)), find_(std::move(find)) {}

  int Serve() {
    if (!Send(ReadyMessage{target_})) return static_cast<int>(ErrorCode::kEnvironment);
    std::string text;
    while (transport_.Receive(text, Transport::kNever) == Transport::Receipt::kMessage) {
      if (!Send(Answer(text))) break;
    }
    return 0;
  }

 private:
  Message Answer(const std::string& text) {
    try {
      const Message message = MessageFromText(text);
      if (const auto* begin = std::get_if<SessionMessage>(&message)) return BeginSession(begin->session);
      if (const auto* coming = std::get_if<ComingMessage>(&message)) return Prepare(*coming);
      if (const auto* trial = std::get_if<TrialMessage>(&message)) return RunTrial(*trial);
      return ErrorMessage{"neither a session nor a trial"};
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& error) {
      return ErrorMessage{error.what()};
    }
  }

  // Data and answers of the sessions before are kept, since a tuner of many tasks comes back to each: making
  // them takes from milliseconds to a second.
  Message BeginSession(const MeasureSession& session) {
    // Other devices' drivers reserve address space for all the memory there is.
    if (session.cpu.device == kCpuDevice) LimitMemory(session.limits.memory_bytes);
    limits_ = session.limits;
    std::string key = MessageToText(SessionMessage{session});
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const Session& kept) { return kept.key == key; });
    if (found != sessions_.end()) {
      sessions_.splice(sessions_.begin(), sessions_, found);
      sessions_.front().runner.Continue();
    } else {
      MakeRoom();
      sessions_.emplace_front(std::move(key), session, find_);
    }
    return AcceptedMessage{};
  }

  // The session longest unused goes first.
  void MakeRoom() {
    constexpr int64_t kMaxBytes = int64_t{1} << 30;
    int64_t bytes = 0;
    auto session = sessions_.begin();
    while (session != sessions_.end() && (bytes += session->runner.bytes()) <= kMaxBytes) ++session;
    sessions_.erase(session, sessions_.end());
  }

  Message Prepare(const ComingMessage& message) {
    if (sessions_.empty()) return ErrorMessage{"trials before any session"};
    sessions_.front().runner.Prepare(message.trials);
    return AcceptedMessage{};
  }

  Message RunTrial(const TrialMessage& message) {
    if (sessions_.empty()) return ErrorMessage{"a trial before any session"};
    const Watchdog watchdog(limits_);
    return ResultMessage{message.ticket, sessions_.front().runner.Run(
                                             message.trial, [&] { Send(RunningMessage{message.ticket}); })};
  }

  bool Send(const Message& message) { return transport_.Send(MessageToText(message)); }

  Transport& transport_;
  const Target target_;
  TemplateFinder find_;
  TrialLimits limits_;
  struct Session {
    Session(std::string own_key, const MeasureSession& session, const TemplateFinder& find)
        : key(std::move(own_key)), runner(session, find) {}
    std::string key;
    TrialRunner runner;
  };
  std::list<Session> sessions_;  // the latest first
};

}  // namespace

int ServeTrials(Transport& transport, const Target& target, const TemplateFinder& find) {
  return Worker(transport, target, find).Serve();
}

int MeasureWorkerMain(int in_fd, int out_fd, const Target& target, const TemplateFinder& find) {
  LineTransport lines(in_fd, out_fd);
  return ServeTrials(lines, target, find);
}

}  // namespace tilesmith
