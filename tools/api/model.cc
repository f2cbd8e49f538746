#include "tools/cli/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/executor.h"
#include "layouts/base/error.h"
#include "layouts/base/thread_team.h"
#include "tools/api/model_from_graph.h"
#include "tools/api/tilesmith.h"
#include "tools/cli/machine.h"
#include "tools/network/network_run.h"

namespace tilesmith {
namespace {

std::vector<TensorInfo> Describe(const std::vector<UserTensor>& tensors) {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors.size());
  for (const UserTensor& tensor : tensors) {
    infos.push_back({tensor.name,
                     {tensor.shape.begin(), tensor.shape.end()},
                     tensor.layout.WithType(DataType::kF32).ToString(),
                     std::string(DataTypeName(tensor.layout.type())),
                     static_cast<size_t>(PaddedElementCount(tensor.shape, tensor.layout)),
                     static_cast<size_t>(PaddedBytes(tensor.shape, tensor.layout))});
  }
  return infos;
}

bool IsAligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 64 == 0; }

}  // namespace

// What a run is given instead of the caller's memory, where that is not aligned.
template <typename Pointer>
class Staging {
 public:
  explicit Staging(const std::vector<TensorInfo>& tensors) : tensors_(tensors), bound_(tensors.size()) {
    for (const TensorInfo& tensor : tensors) buffers_.emplace_back(tensor.bytes);
  }

  std::span<const Pointer> Bind(std::span<const Pointer> memory) {
    if (memory.size() != tensors_.size()) return memory;  // the executor says what is wrong
    for (size_t i = 0; i < memory.size(); ++i) {
      if (memory[i] == nullptr)
        throw Error(ErrorCode::kUsage, fmt::format("tensor \"{}\" is a null pointer", tensors_[i].name));
      bound_[i] = IsAligned(memory[i]) ? memory[i] : buffers_[i].data();
    }
    return bound_;
  }

  // Brings what lies elsewhere to where the run finds it, or to where the caller wants it.
  void CopyIn(std::span<const Pointer> memory) const {
    for (size_t i = 0; i < bound_.size(); ++i)
      if (bound_[i] != memory[i]) std::memcpy(buffers_[i].data(), memory[i], buffers_[i].bytes());
  }
  void CopyOut(std::span<const Pointer> memory) const {
    for (size_t i = 0; i < bound_.size(); ++i)
      if (bound_[i] != memory[i]) std::memcpy(memory[i], buffers_[i].data(), buffers_[i].bytes());
  }

 private:
  const std::vector<TensorInfo>& tensors_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<Pointer> bound_;
};

namespace {

// Before staging, which would hide it.
void CheckDistinct(std::span<const void* const> inputs, std::span<void* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::span<void* const> before = outputs.first(i);
    if (std::ranges::find(inputs, outputs[i]) != inputs.end() ||
        std::ranges::find(before, outputs[i]) != before.end())
      throw Error(ErrorCode::kUsage, fmt::format("output {} is the same memory as another tensor", i));
  }
}

void CheckCores(const std::vector<int>& cores, int threads) {
  if (cores.empty()) return;
  if (int(cores.size()) != threads)
    throw Error(ErrorCode::kUsage, fmt::format("{} cores given for {} threads", cores.size(), threads));
  const std::vector<int>& usable = ProcessCores();
  for (const int core : cores) {
    if (std::ranges::find(usable, core) != usable.end()) continue;
    throw Error(ErrorCode::kUsage, fmt::format("core {} is none of those this process may use: {}", core,
                                               fmt::join(usable, ", ")));
  }
}

// Pinned to `cores`, in a thread of its own, so that its memory is theirs and the caller is not pinned.
Executor MakeExecutor(const std::shared_ptr<const CompiledNetwork>& network, const std::vector<int>& cores) {
  if (cores.empty()) return Executor(network);
  std::optional<Executor> executor;
  std::exception_ptr error;
  std::thread([&] {
    try {
      PinTeam(cores);
      executor.emplace(network);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
  return *std::move(executor);
}

// Numbers sessions, so that a thread knows which one it was pinned for last.
int64_t NextNumber() {
  static std::atomic<int64_t> last = 0;
  return ++last;
}

}  // namespace

struct Model::Impl {
  std::shared_ptr<const CompiledNetwork> network;
  std::vector<TensorInfo> inputs, outputs;
  double predicted_seconds = 0;
};

struct Session::Impl {
  Impl(std::shared_ptr<const Model::Impl> of, const SessionOptions& options)
      : model(std::move(of)),
        cores(options.cores),
        executor(MakeExecutor(model->network, cores)),
        inputs(model->inputs),
        outputs(model->outputs) {}

  void Pin() const {
    static thread_local int64_t pinned_for = 0;
    if (cores.empty() || pinned_for == number) return;
    PinTeam(cores);
    pinned_for = number;
  }

  // Calls body with memory that the executor can work on.
  template <typename Body>
  void With(std::span<const void* const> from, std::span<void* const> to, const Body& body) {
    CheckDistinct(from, to);
    Pin();
    const std::span<const void* const> bound_inputs = inputs.Bind(from);
    const std::span<void* const> bound_outputs = outputs.Bind(to);
    if (from.size() == model->inputs.size()) inputs.CopyIn(from);
    body(bound_inputs, bound_outputs);
    outputs.CopyOut(to);
  }

  const std::shared_ptr<const Model::Impl> model;
  const std::vector<int> cores;
  const int64_t number = NextNumber();
  Executor executor;
  Staging<const void*> inputs;
  Staging<void*> outputs;
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::Run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  impl_->With(inputs, outputs, [&](auto from, auto to) { impl_->executor.Run(from, to); });
}

std::vector<StepTime> Session::Profile(std::span<const void* const> inputs, std::span<void* const> outputs,
                                       int runs) {
  if (runs < 1) throw Error(ErrorCode::kUsage, fmt::format("runs must be at least 1, got {}", runs));
  std::vector<StepTime> steps;
  impl_->With(inputs, outputs, [&](auto from, auto to) {
    for (const StepProfile& step : impl_->executor.Profile(from, to, runs))
      steps.push_back({step.name, step.kind, step.layouts, step.seconds, step.predicted_seconds});
  });
  return steps;
}

size_t Session::activation_bytes() const { return impl_->executor.ArenaBytes(); }

Model::Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Model Model::Load(const std::string& model, const LoadOptions& options) {
  // A negative one, and not the default that 0 asks for.
  for (const auto& [name, value] : {std::pair<std::string_view, int64_t>("threads", options.threads),
                                    {"batch", options.batch},
                                    {"max_elements", options.max_elements},
                                    {"max_memory", options.max_memory}}) {
    if (value < 0) throw Error(ErrorCode::kUsage, fmt::format("{} must be at least 0, got {}", name, value));
  }
  const DevicePtr machine = OpenMachine({.threads = options.threads, .wait = options.wait, .max_isa = ""});
  Graph graph =
      LoadModel({model, options.batch, options.input_shapes, options.max_elements, options.max_memory});
  if (graph.tail()) {
    throw Error(ErrorCode::kBadModel,
                fmt::format("{}: sizes of its outputs ({}) depend on values; the command run computes them, "
                            "sessions take memory of fixed sizes only",
                            model, fmt::join(graph.tail()->outputs(), ", ")));
  }
  const Plan plan = LoadPlan(options.plan, graph, machine);
  return ModelFromGraph::Compile(std::move(graph), plan, machine);
}

Model ModelFromGraph::Compile(Graph graph, const Plan& plan, const DevicePtr& machine) {
  auto impl = std::make_shared<Model::Impl>();
  impl->network = CompileNetwork(std::move(graph), plan, machine);
  impl->inputs = Describe(impl->network->inputs);
  impl->outputs = Describe(impl->network->outputs);
  impl->predicted_seconds = plan.predicted_seconds;
  return Model(std::move(impl));
}

const std::vector<TensorInfo>& Model::inputs() const { return impl_->inputs; }
const std::vector<TensorInfo>& Model::outputs() const { return impl_->outputs; }
int Model::threads() const { return impl_->network->device->threads(); }
size_t Model::packed_weight_bytes() const { return PackedWeightBytes(*impl_->network); }
double Model::predicted_seconds() const { return impl_->predicted_seconds; }

Session Model::NewSession(const SessionOptions& options) const {
  CheckCores(options.cores, threads());
  return Session(std::make_unique<Session::Impl>(impl_, options));
}

}  // namespace tilesmith
