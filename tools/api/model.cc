#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <thread>

#include "graph_tuner/executor/compiled_network.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/executor.h"
#include "layouts/base/error.h"
#include "layouts/base/fork_gate.h"
#include "layouts/base/thread_team.h"
#include "tools/api/model_impl.h"
#include "tools/api/prepared_sizes.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {
namespace {

// That threads of a session spin for the next run: others in the process may have use for their cores.
constexpr double kAwakeSeconds = 1e-4;

bool IsAligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 64 == 0; }

}  // namespace

// What a run is given instead of the caller's memory, where that is not aligned.
template <typename Pointer>
class Staging {
 public:
  explicit Staging(const std::vector<TensorInfo>& tensors)
      : tensors_(tensors), buffers_(tensors.size()), bound_(tensors.size()) {}

  std::span<const Pointer> Bind(std::span<const Pointer> memory) {
    if (memory.size() != tensors_.size()) return memory;  // the executor says what is wrong
    for (size_t i = 0; i < memory.size(); ++i) {
      if (memory[i] == nullptr && tensors_[i].bytes > 0)
        throw Error(ErrorCode::kUsage, fmt::format("tensor \"{}\" is a null pointer", tensors_[i].name));
      bound_[i] = memory[i];
      if (IsAligned(memory[i]) || tensors_[i].bytes == 0) continue;
      if (buffers_[i].bytes() == 0) buffers_[i] = AlignedBuffer(tensors_[i].bytes);
      bound_[i] = buffers_[i].data();
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
    if (outputs[i] == nullptr) continue;  // it has no elements, or Bind says what is wrong
    if (std::ranges::find(inputs, outputs[i]) != inputs.end() ||
        std::ranges::find(before, outputs[i]) != before.end())
      throw Error(ErrorCode::kUsage, fmt::format("output {} is the same memory as another tensor", i));
  }
}

void CheckCores(const std::vector<int>& cores, int threads) {
  if (cores.empty()) return;
  if (static_cast<int>(cores.size()) != threads)
    throw Error(ErrorCode::kUsage, fmt::format("{} cores given for {} threads", cores.size(), threads));
  const std::vector<int>& usable = ProcessCores();
  for (const int core : cores) {
    if (std::ranges::count(cores, core) > 1)
      throw Error(ErrorCode::kUsage, fmt::format("core {} is given more than once", core));
    if (std::ranges::find(usable, core) != usable.end()) continue;
    throw Error(ErrorCode::kUsage, fmt::format("core {} is none of those this process may use: {}", core,
                                               fmt::join(usable, ", ")));
  }
}

// On the team's cores, if it is pinned: in a thread of its own, so that memory is theirs and the caller is
// not pinned.
Executor MakeExecutor(const std::shared_ptr<const CompiledNetwork>& network, ThreadTeam& team,
                      SharedArena* arena) {
  const TeamScope scope(team);
  if (team.cores().empty()) return Executor(network, nullptr, arena);
  std::optional<Executor> executor;
  std::exception_ptr error;
  std::thread([&] {
    try {
      const TeamScope its(team);
      KeepOn(team.cores().front());
      executor.emplace(network, nullptr, arena);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
  return *std::move(executor);
}

}  // namespace

namespace {

// "x is 1x3x-1x-1"
std::string OpenSizesText(const std::vector<TensorInfo>& inputs) {
  std::vector<std::string> open;
  for (const TensorInfo& input : inputs) {
    if (std::ranges::find(input.shape, -1) == input.shape.end()) continue;
    open.push_back(fmt::format("\"{}\" is {}", input.name, fmt::join(input.shape, "x")));
  }
  return fmt::format("{}", fmt::join(open, ", "));
}

// What is declared, with what is given in it. Throws Error(kUsage).
Shape GivenShape(const TensorInfo& declared, std::span<const int64_t> given) {
  Shape shape(declared.shape.begin(), declared.shape.end());
  if (!given.empty()) shape.assign(given.begin(), given.end());
  bool fits = shape.size() == declared.shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] >= 0 && (declared.shape[i] < 0 || shape[i] == declared.shape[i]);
  if (fits) return shape;
  throw Error(ErrorCode::kUsage,
              given.empty()
                  ? fmt::format("sizes of input \"{}\" are open, {}: give its shape, or input_shapes to load",
                                declared.name, fmt::join(declared.shape, "x"))
                  : fmt::format("input \"{}\" has shape {}, expected {}", declared.name,
                                fmt::join(given, "x"), fmt::join(declared.shape, "x")));
}

}  // namespace

// What the sizes of a session share, of which one runs at a time.
struct SharedMemory {
  SharedArena arena;
  std::vector<std::shared_ptr<AlignedBuffer>> outputs;  // the graph's

  AlignedBuffer OfOutput(size_t index, size_t bytes) {
    if (outputs.size() <= index) outputs.resize(index + 1);
    std::shared_ptr<AlignedBuffer>& memory = outputs[index];
    if (memory == nullptr || memory->bytes() < bytes) memory = std::make_shared<AlignedBuffer>(bytes);
    return {{static_cast<const std::byte*>(memory->data()), bytes}, memory};
  }
};

// What a session holds for one size of the inputs.
class SizedRun {
 public:
  SizedRun(PreparedSizePtr size, ThreadTeam& team, SharedMemory* shared)
      : size_(std::move(size)),
        shared_(*shared),
        executor_(MakeExecutor(size_->network, team, &shared->arena)),
        inputs_(size_->inputs),
        outputs_(size_->network->tail ? kNone : size_->outputs) {}

  const PreparedSize& size() const { return *size_; }
  const Executor& executor() const { return executor_; }

  // Calls body with the executor and memory that it can work on.
  template <typename Body>
  void With(std::span<const void* const> from, std::span<void* const> to, const Body& body) {
    if (size_->network->tail) {
      throw Error(ErrorCode::kUsage,
                  "sizes of the outputs depend on values, so that only a run whose outputs the session holds "
                  "(without memory for them) can give them");
    }
    CheckDistinct(from, to);
    const std::span<const void* const> bound_inputs = inputs_.Bind(from);
    const std::span<void* const> bound_outputs = outputs_.Bind(to);
    if (from.size() == size_->inputs.size()) inputs_.CopyIn(from);
    body(executor_, bound_inputs, bound_outputs);
    outputs_.CopyOut(to);
  }

  // The same with the graph's outputs in memory of the session.
  template <typename Body>
  void WithValues(std::span<const void* const> from, const Body& body) {
    if (values_.empty()) {
      for (const UserTensor& tensor : size_->network->outputs) {
        const auto bytes = static_cast<size_t>(PaddedBytes(tensor.shape, tensor.layout));
        values_.emplace_back(tensor.shape, tensor.layout, shared_.OfOutput(values_.size(), bytes));
      }
      for (Tensor& value : values_) value_memory_.push_back(value.raw());
    }
    const std::span<const void* const> bound = inputs_.Bind(from);
    inputs_.CopyIn(from);
    body(executor_, bound, std::span<void* const>(value_memory_));
  }

  // After such a run; as long as there is no other.
  const std::vector<OutputTensor>& Results() {
    results_.resize(size_->outputs.size());
    if (size_->network->tail) {
      const OpMachine host = HostOf(*size_->network->device);
      late_ = size_->network->tail->Run(PlainTensors(values_).pointers(), &host);
    }
    const std::vector<Tensor>& tensors = size_->network->tail ? late_ : values_;
    for (size_t i = 0; i < results_.size(); ++i) Describe(tensors[i], results_[i]);
    return results_;
  }

 private:
  static void Describe(const Tensor& tensor, OutputTensor& output) {
    output.data = tensor.raw();
    output.shape.assign(tensor.shape().begin(), tensor.shape().end());
    output.layout = tensor.layout().WithType(DataType::kF32).ToString();
    output.type = DataTypeName(tensor.type());
    output.elements = static_cast<size_t>(PaddedElementCount(tensor.shape(), tensor.layout()));
    output.bytes = static_cast<size_t>(tensor.bytes());
  }

  static inline const std::vector<TensorInfo> kNone = {};

  const PreparedSizePtr size_;
  SharedMemory& shared_;
  Executor executor_;
  Staging<const void*> inputs_;
  Staging<void*> outputs_;
  std::vector<Tensor> values_;  // the graph's outputs
  std::vector<void*> value_memory_;
  std::vector<Tensor> late_;  // the tail's
  std::vector<OutputTensor> results_;
};

struct Session::Impl {
  Impl(std::shared_ptr<const Model::Impl> of, const SessionOptions& options) : model(std::move(of)) {
    team.PinTo(options.cores);
    if (model->sizes->first()) first.emplace(model->sizes->first(), team, &shared);
  }

  // The calling thread works for a session: with its team, on its core, and no fork meanwhile, since a child
  // shall find the session as it is between two runs.
  class AtWork {
   public:
    explicit AtWork(Impl& session) : scope_(session.team) {
      session.model->RequireSameProcess();
      if (const std::span<const int> cores = session.team.cores(); !cores.empty()) KeepOn(cores.front());
    }

   private:
    const AwayFromForks away_;
    const TeamScope scope_;
  };

  // Calls body with what the session holds for the size of these inputs, and their memory.
  template <typename Body>
  void With(std::span<const InputTensor> given, const Body& body) {
    const std::vector<TensorInfo>& own = model->inputs();
    if (given.size() != own.size()) {
      throw Error(ErrorCode::kUsage, fmt::format("{} inputs given, expected {}", given.size(), own.size()));
    }
    const bool declared = &own == &model->declared_inputs;
    InputShapes shapes;
    std::vector<const void*> memory;
    for (size_t i = 0; i < given.size(); ++i) {
      const std::span<const int64_t> shape =
          given[i].shape.empty() && !declared ? own[i].shape : given[i].shape;
      shapes.push_back(declared ? GivenShape(own[i], shape) : Shape(shape.begin(), shape.end()));
      memory.push_back(given[i].data);
    }
    SizedRun& sized = Of(shapes);
    body(sized, std::span<const void* const>(memory));
  }

  // Of the model's first size. Throws Error(kUsage) where there is none yet.
  SizedRun& First() {
    if (!first && !model->sizes->first()) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("sizes of inputs are left open until a run is given their shapes, or "
                              "input_shapes when the model is loaded: {}",
                              OpenSizesText(model->declared_inputs)));
    }
    if (!first) first.emplace(model->sizes->first(), team, &shared);
    return *first;
  }

  SizedRun& Of(const InputShapes& shapes) {
    if (first && shapes == first->size().shapes) return *first;
    if (const auto* known = others.Find(shapes)) return **known;
    const PreparedSizePtr size = model->sizes->For(shapes);
    SizedRun& of_first = First();
    if (size == model->sizes->first()) return of_first;
    auto sized = std::make_unique<SizedRun>(size, team, &shared);
    others.MakeRoom(model->sizes->limit(), of_first.size().bytes + size->bytes,
                    [](const std::unique_ptr<SizedRun>& kept) { return kept->size().bytes; });
    return *others.Add(shapes, std::move(sized));
  }

  const std::shared_ptr<const Model::Impl> model;
  ThreadTeam team{kAwakeSeconds};
  SharedMemory shared;
  std::optional<SizedRun> first;
  RecentlyUsed<std::unique_ptr<SizedRun>> others;
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

namespace {

std::vector<StepTime> ProfileSteps(Executor& executor, std::span<const void* const> from,
                                   std::span<void* const> to, int runs) {
  std::vector<StepTime> steps;
  for (const StepProfile& step : executor.Profile(from, to, runs))
    steps.push_back({step.name, step.kind, step.layouts, step.seconds, step.predicted_seconds});
  return steps;
}

void CheckRuns(int runs) {
  if (runs < 1) throw Error(ErrorCode::kUsage, fmt::format("runs must be at least 1, got {}", runs));
}

}  // namespace

void Session::Run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  const Impl::AtWork at_work(*impl_);
  impl_->First().With(inputs, outputs,
                      [](Executor& executor, auto from, auto to) { executor.Run(from, to); });
}

const std::vector<OutputTensor>& Session::Run(std::span<const InputTensor> inputs) {
  const Impl::AtWork at_work(*impl_);
  const std::vector<OutputTensor>* results = nullptr;
  impl_->With(inputs, [&](SizedRun& sized, auto memory) {
    sized.WithValues(memory, [](Executor& executor, auto from, auto to) { executor.Run(from, to); });
    results = &sized.Results();
  });
  return *results;
}

std::vector<StepTime> Session::Profile(std::span<const void* const> inputs, std::span<void* const> outputs,
                                       int runs) {
  CheckRuns(runs);
  const Impl::AtWork at_work(*impl_);
  std::vector<StepTime> steps;
  impl_->First().With(inputs, outputs, [&](Executor& executor, auto from, auto to) {
    steps = ProfileSteps(executor, from, to, runs);
  });
  return steps;
}

std::vector<StepTime> Session::Profile(std::span<const InputTensor> inputs, int runs) {
  CheckRuns(runs);
  const Impl::AtWork at_work(*impl_);
  std::vector<StepTime> steps;
  impl_->With(inputs, [&](SizedRun& sized, auto memory) {
    sized.WithValues(memory, [&](Executor& executor, auto from, auto to) {
      steps = ProfileSteps(executor, from, to, runs);
    });
  });
  return steps;
}

size_t Session::activation_bytes() const {
  std::set<const void*> counted;
  size_t bytes = 0;
  const auto count = [&](const SizedRun& sized) {
    const DeviceMemory& arena = sized.executor().arena();
    if (counted.insert(arena.data.get()).second) bytes += arena.bytes;
  };
  if (impl_->first) count(*impl_->first);
  impl_->others.ForEach([&](const auto& other) { count(*other); });
  return bytes;
}

void Model::Impl::RequireSameProcess() const {
  if (forks == ForkCount() || device->target().device == kCpuDevice) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("a model on {} cannot be used behind a fork: load it in the child",
                          device->target().device));
}

Model::Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

const std::vector<TensorInfo>& Model::inputs() const { return impl_->inputs(); }
const std::vector<TensorInfo>& Model::outputs() const { return impl_->outputs(); }
const std::vector<std::string>& Model::warnings() const { return impl_->warnings; }
int Model::threads() const { return impl_->device->threads(); }

bool Model::reproducible() const { return impl_->device->target().reproducible; }
size_t Model::packed_weight_bytes() const {
  const AwayFromForks away;
  return impl_->sizes->PackedWeightBytes();
}
double Model::predicted_seconds() const {
  const PreparedSizePtr& first = impl_->sizes->first();
  return first ? first->predicted_seconds : 0;
}

Session Model::NewSession(const SessionOptions& options) const {
  CheckCores(options.cores, threads());
  const AwayFromForks away;
  impl_->RequireSameProcess();
  return Session(std::make_unique<Session::Impl>(impl_, options));
}

}  // namespace tilesmith
