#include "graph_tuner/executor/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <utility>

#include "graph_tuner/executor/compiled_network.h"
#include "layouts/base/check.h"
#include "layouts/measure/quantile.h"

namespace tilesmith {
namespace {

void CheckTensor(const Tensor* tensor, const UserTensor& expected, std::string_view role) {
  TILESMITH_CHECK(tensor != nullptr, "{} \"{}\"", role, expected.name);
  if (tensor->shape() == expected.shape && tensor->layout() == expected.layout) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} \"{}\" is {} {}, expected {} {}", role, expected.name,
                                             ShapeToString(tensor->shape()), tensor->layout().ToString(),
                                             ShapeToString(expected.shape), expected.layout.ToString()));
}

}  // namespace

struct Executor::Impl {
  // A pointer into memory of the user's, set at the start of every run.
  template <typename Pointer>
  struct UserPointer {
    Pointer* pointer = nullptr;
    int index = 0;       // of the tensor
    int64_t offset = 0;  // in bytes
  };

  Impl(std::shared_ptr<const CompiledNetwork> network, const StopFlag* stop_flag, SharedArena* shared);

  void StageUserTensors();
  std::byte* InArena(int64_t byte) const;
  void ConnectSteps();
  template <typename Pointer>
  void Connect(int value, Pointer* pointer, int64_t* stride);
  void CheckCounts(size_t inputs, size_t outputs) const;
  void CheckTensors(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs) const;
  void CheckDistinct(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs) const;
  void TakeTensors(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs);
  void Bind(std::span<const void* const> inputs, std::span<void* const> outputs);
  void Patch(std::span<const void* const> inputs, std::span<void* const> outputs);
  Launch& LaunchOf(size_t step);
  void Run();
  void DownloadOutputs() const;
  std::vector<StepProfile> Profile(int runs);
  void Repeat(int repeats, std::span<StepProfile> profile);
  void SpreadOverSteps(std::span<const double> by_launch, std::span<double> by_step);
  void NoteRegions(std::span<StepProfile> profile) const;

  const std::shared_ptr<const CompiledNetwork> network;
  const Device& device;
  const std::unique_ptr<Stream> stream;
  // What runs: of steps in no region each one, of a region one for all of its steps, whose own ones are
  // apart.
  std::vector<Launch> launches;
  std::vector<std::vector<Launch>> region_launches;
  std::vector<std::unique_ptr<RegionKernel>> region_kernels;
  std::vector<std::vector<double>> region_seconds;  // of each of its steps, in the last profiled run
  std::vector<size_t> launch_of;                    // by step
  const StopFlag* const stop;
  const DeviceMemory arena;
  // Where the user's tensors are brought to by a device that does not read host memory, and the outputs to
  // bring back.
  std::vector<DeviceMemory> staged_inputs, staged_outputs;
  std::vector<void*> user_outputs;
  std::vector<const void*> inputs;  // of tensors, so that running allocates nothing
  std::vector<void*> outputs;
  std::vector<UserPointer<const void*>> input_patches;  // reads of the user's inputs
  std::vector<UserPointer<const void*>>
      output_read_patches;  // reads of what was written to the user's outputs
  std::vector<UserPointer<void*>> output_patches;
};

// Networks of ever larger sizes leave arenas behind that are a multiple of the largest one together.
DeviceMemory SharedArena::AtLeast(size_t bytes, const Device& device) {
  if (memory_.data == nullptr || memory_.bytes < bytes)
    memory_ = device.Allocate(std::max(bytes, memory_.bytes + memory_.bytes / 2));
  return memory_;
}

Executor::Impl::Impl(std::shared_ptr<const CompiledNetwork> compiled, const StopFlag* stop_flag,
                     SharedArena* shared)
    : network(std::move(compiled)),
      device(*network->device),
      stream(device.NewStream(stop_flag)),
      stop(stop_flag),
      arena(shared ? shared->AtLeast(network->memory.bytes, device) : device.Allocate(network->memory.bytes)),
      inputs(network->inputs.size()),
      outputs(network->outputs.size()) {
  ConnectSteps();
  if (!device.ReadsHostMemory()) StageUserTensors();
}

void Executor::Impl::StageUserTensors() {
  const auto stage = [&](const std::vector<UserTensor>& tensors) {
    std::vector<DeviceMemory> staged;
    staged.reserve(tensors.size());
    for (const UserTensor& tensor : tensors)
      staged.push_back(device.Allocate(static_cast<size_t>(PaddedBytes(tensor.shape, tensor.layout))));
    return staged;
  };
  staged_inputs = stage(network->inputs);
  staged_outputs = stage(network->outputs);
}

std::byte* Executor::Impl::InArena(int64_t byte) const {
  return static_cast<std::byte*>(arena.data.get()) + byte;
}

Launch& Executor::Impl::LaunchOf(size_t step) {
  const int region = network->program.steps[step].region;
  if (region < 0) return launches[launch_of[step]];
  const auto index = static_cast<size_t>(region);
  return region_launches[index][step - static_cast<size_t>(network->program.regions[index].first)];
}

void Executor::Impl::ConnectSteps() {
  const Program& program = network->program;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const int region = program.steps[i].region;
    const bool joins = region >= 0 && std::cmp_greater(i, program.regions[region].first);
    launch_of.push_back(joins ? launch_of.back() : i == 0 ? 0 : launch_of.back() + 1);
  }
  launches.resize(launch_of.empty() ? 0 : launch_of.back() + 1);
  for (const ScheduledRegion& region : network->regions) region_launches.emplace_back(region.steps.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    Launch& launch = LaunchOf(i);
    launch.kernel = network->kernels[i].get();
    launch.split = step.split;
    launch.after_neighbours = network->neighbour_waits[i];
    if (step.region < 0 && launch.kernel->ScratchBytes(device.threads()) > 0)
      launch.scratch = InArena(network->memory.offsets[network->ScratchIndex(i)]);
    launch.inputs.resize(step.reads.size());
    for (size_t slot = 0; slot < step.reads.size(); ++slot) {
      InputView& view = launch.inputs[slot];
      Connect(step.reads[slot], &view.data, &view.batch_stride);
    }
    Connect(step.write, &launch.output.data, &launch.output.batch_stride);
  }
  for (size_t i = 0; i < network->regions.size(); ++i) {
    const ScheduledRegion& region = network->regions[i];
    region_kernels.push_back(std::make_unique<RegionKernel>(region.schedule, region.steps, region_launches[i],
                                                            device.threads(), stop));
    region_seconds.emplace_back(region.steps.size());
    Launch& launch = launches[launch_of[static_cast<size_t>(program.regions[i].first)]];
    launch.kernel = region_kernels.back().get();
    launch.scratch = InArena(network->memory.offsets[network->RegionIndex(i)]);
  }
}

template <typename Pointer>
void Executor::Impl::Connect(int value, Pointer* pointer, int64_t* stride) {
  const Program& program = network->program;
  const Value& v = program.values[value];
  const TensorBuffer& buffer = program.buffers[v.buffer];
  const Place& place = network->places[v.buffer];
  const int64_t images = v.shape.empty() ? 1 : v.shape[0];
  *stride = images == buffer.images ? place.image_stride : BatchBytes(v.shape, v.layout);
  const TensorBuffer& root = program.buffers[place.root];
  constexpr bool kReads = std::is_same_v<Pointer, const void*>;
  if (root.rolls) return;  // the region's kernel knows where its rows are
  if (root.source == TensorBuffer::Source::kComputed && root.output < 0) {
    *pointer = InArena(network->memory.offsets[place.root] + place.offset);
  } else if constexpr (kReads) {
    if (root.source == TensorBuffer::Source::kConstant) {
      const auto& uploaded = network->constants;
      *pointer = uploaded.empty() ? root.constant->raw() : uploaded[place.root].data.get();
    } else if (root.source == TensorBuffer::Source::kInput) {
      input_patches.push_back({pointer, root.input, place.offset});
    } else {
      output_read_patches.push_back({pointer, root.output, place.offset});
    }
  } else {
    TILESMITH_CHECK(root.output >= 0, "a step writes to memory that is not ours");
    output_patches.push_back({pointer, root.output, place.offset});
  }
}

void Executor::Impl::CheckCounts(size_t input_count, size_t output_count) const {
  if (input_count == inputs.size() && output_count == outputs.size()) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} inputs and {} outputs given, expected {} and {}",
                                             input_count, output_count, inputs.size(), outputs.size()));
}

void Executor::Impl::CheckTensors(std::span<const Tensor* const> in, std::span<Tensor* const> out) const {
  CheckCounts(in.size(), out.size());
  for (size_t i = 0; i < in.size(); ++i) CheckTensor(in[i], network->inputs[i], "input");
  for (size_t i = 0; i < out.size(); ++i) CheckTensor(out[i], network->outputs[i], "output");
}

void Executor::Impl::CheckDistinct(std::span<const Tensor* const> in, std::span<Tensor* const> out) const {
  for (size_t i = 0; i < out.size(); ++i) {
    const bool is_input = std::find(in.begin(), in.end(), out[i]) != in.end();
    const bool is_twice = std::find(out.begin(), out.begin() + i, out[i]) != out.begin() + i;
    if (is_input || is_twice) {
      throw Error(ErrorCode::kUsage, fmt::format("output \"{}\" is the same tensor as another argument",
                                                 network->outputs[i].name));
    }
  }
}

void Executor::Impl::TakeTensors(std::span<const Tensor* const> in, std::span<Tensor* const> out) {
  CheckTensors(in, out);
  CheckDistinct(in, out);
  std::ranges::transform(in, inputs.begin(), [](const Tensor* tensor) { return tensor->raw(); });
  std::ranges::transform(out, outputs.begin(), [](Tensor* tensor) { return tensor->raw(); });
  Bind(inputs, outputs);
}

void Executor::Impl::Bind(std::span<const void* const> in, std::span<void* const> out) {
  CheckCounts(in.size(), out.size());
  if (device.ReadsHostMemory()) return Patch(in, out);
  std::vector<const void*> from;
  std::vector<void*> to;
  for (size_t i = 0; i < in.size(); ++i) {
    device.Upload(in[i], staged_inputs[i].data.get(), staged_inputs[i].bytes);
    from.push_back(staged_inputs[i].data.get());
  }
  to.reserve(staged_outputs.size());
  for (const DeviceMemory& output : staged_outputs) to.push_back(output.data.get());
  user_outputs.assign(out.begin(), out.end());
  Patch(from, to);
}

void Executor::Impl::Patch(std::span<const void* const> in, std::span<void* const> out) {
  for (const auto& patch : input_patches)
    *patch.pointer = static_cast<const std::byte*>(in[patch.index]) + patch.offset;
  for (const auto& patch : output_read_patches)
    *patch.pointer = static_cast<const std::byte*>(out[patch.index]) + patch.offset;
  for (const auto& patch : output_patches)
    *patch.pointer = static_cast<std::byte*>(out[patch.index]) + patch.offset;
}

void Executor::Impl::Run() {
  stream->Run(launches, {});
  DownloadOutputs();
}

void Executor::Impl::DownloadOutputs() const {
  for (size_t i = 0; i < staged_outputs.size(); ++i)
    device.Download(staged_outputs[i].data.get(), user_outputs[i], staged_outputs[i].bytes);
}

namespace {

// The low quantiles of `count` steps that ran several times, one run behind the other.
std::vector<double> LowQuantiles(std::span<const double> seconds, size_t count) {
  std::vector<double> quantiles, samples;
  for (size_t i = 0; i < count; ++i) {
    samples.clear();
    for (size_t at = i; at < seconds.size(); at += count) samples.push_back(seconds[at]);
    quantiles.push_back(LowerQuartile(samples));
  }
  return quantiles;
}

}  // namespace

// What a region takes is its steps' as thread 0 saw it.
void Executor::Impl::SpreadOverSteps(std::span<const double> by_launch, std::span<double> by_step) {
  for (size_t i = 0; i < by_step.size(); ++i) {
    const int region = network->program.steps[i].region;
    by_step[i] = by_launch[launch_of[i]];
    if (region < 0) continue;
    const std::vector<double>& seconds = region_seconds[static_cast<size_t>(region)];
    const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    const size_t step = i - static_cast<size_t>(network->program.regions[static_cast<size_t>(region)].first);
    by_step[i] *= all > 0 ? seconds[step] / all : 1.0 / static_cast<double>(seconds.size());
  }
}

std::vector<StepProfile> Executor::Impl::Profile(int runs) {
  TILESMITH_CHECK(runs >= 1, "{} runs", runs);
  const size_t count = network->steps.size();
  std::vector<double> seconds(count * static_cast<size_t>(runs)), by_launch(launches.size());
  for (size_t i = 0; i < region_kernels.size(); ++i) region_kernels[i]->Clock(region_seconds[i]);
  for (size_t run = 0; run < static_cast<size_t>(runs); ++run) {
    for (std::vector<double>& of_steps : region_seconds) std::ranges::fill(of_steps, 0.0);
    stream->Run(launches, by_launch);
    SpreadOverSteps(by_launch, std::span(seconds).subspan(run * count, count));
  }
  for (const std::unique_ptr<RegionKernel>& kernel : region_kernels) kernel->Clock({});
  DownloadOutputs();
  std::vector<StepProfile> profile = network->steps;
  NoteRegions(profile);
  const std::vector<double> quantiles = LowQuantiles(seconds, count);
  for (size_t i = 0; i < count; ++i) profile[i].seconds = quantiles[i];
  return profile;
}

void Executor::Impl::NoteRegions(std::span<StepProfile> profile) const {
  for (size_t i = 0; i < network->regions.size(); ++i) {
    const Region& region = network->program.regions[i];
    const auto& [steps, schedule] = network->regions[i];
    for (size_t step = 0; step < steps.size(); ++step) {
      profile[static_cast<size_t>(region.first) + step].region = {region.number, schedule.step_rows[step],
                                                                  steps[step].height};
    }
  }
}

void Executor::Impl::Repeat(int repeats, std::span<StepProfile> profile) {
  const size_t count = launches.size();
  // Once more, what writes where it reads would compute something else, and indices of it may lie anywhere.
  const auto is_in_place = [](const Launch& step) {
    return std::ranges::any_of(step.inputs,
                               [&](const InputView& input) { return input.data == step.output.data; });
  };
  std::vector<double> seconds(count * static_cast<size_t>(repeats)), by_step(profile.size());
  for (size_t repeat = 0; repeat < static_cast<size_t>(repeats); ++repeat) {
    for (size_t i = 0; i < count; ++i) {
      const auto launch = std::span(launches).subspan(i, 1);
      stream->RunByAll(launch);
      if (is_in_place(launch[0])) continue;
      stream->Run(launch, std::span(seconds).subspan(repeat * count + i, 1));
    }
  }
  SpreadOverSteps(LowQuantiles(seconds, count), by_step);
  for (size_t i = 0; i < by_step.size(); ++i) profile[i].repeated_seconds = by_step[i];
}

Executor::Executor(std::shared_ptr<const CompiledNetwork> network, const StopFlag* stop, SharedArena* arena)
    : impl_(std::make_unique<Impl>(std::move(network), stop, arena)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

void Executor::Run(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs) {
  impl_->TakeTensors(inputs, outputs);
  impl_->Run();
}

void Executor::Run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  impl_->Bind(inputs, outputs);
  impl_->Run();
}

void Executor::RunAgain() { impl_->stream->RunByAll(impl_->launches); }

std::vector<StepProfile> Executor::Profile(std::span<const Tensor* const> inputs,
                                           std::span<Tensor* const> outputs, int runs) {
  impl_->TakeTensors(inputs, outputs);
  return impl_->Profile(runs);
}

std::vector<StepProfile> Executor::Profile(std::span<const void* const> inputs,
                                           std::span<void* const> outputs, int runs) {
  impl_->Bind(inputs, outputs);
  return impl_->Profile(runs);
}

std::vector<StepProfile> Executor::RepeatSteps(std::span<const Tensor* const> inputs,
                                               std::span<Tensor* const> outputs, int runs, int repeats) {
  std::vector<StepProfile> profile = Profile(inputs, outputs, runs);
  impl_->Repeat(repeats, profile);
  return profile;
}

std::vector<BoundStep> Executor::BindSteps(std::span<const Tensor* const> inputs,
                                           std::span<Tensor* const> outputs) {
  TILESMITH_CHECK(impl_->network->regions.empty(), "steps one by one of a network with regions");
  impl_->TakeTensors(inputs, outputs);
  const CompiledNetwork& network = *impl_->network;
  const auto tensor_of = [&](int value) -> StepTensor {
    const Value& v = network.program.values[value];
    return {v.node, v.shape, v.layout};
  };
  std::vector<BoundStep> bound;
  for (size_t i = 0; i < impl_->launches.size(); ++i) {
    const Step& step = network.program.steps[i];
    BoundStep& b = bound.emplace_back();
    b.name = network.steps[i].name;
    b.kind = network.steps[i].kind;
    b.node = step.node;
    b.computes = step.kind == StepKind::kNode;
    for (const int value : step.reads) b.inputs.push_back(tensor_of(value));
    b.input_memory = impl_->launches[i].inputs;
    b.output = tensor_of(step.write);
    b.output_memory = impl_->launches[i].output;
  }
  return bound;
}

void Executor::RunStep(size_t index) {
  impl_->stream->RunByAll(std::span(impl_->launches).subspan(index, 1));
}

void Executor::FetchOutputs() { impl_->DownloadOutputs(); }

const CompiledNetwork& Executor::network() const { return *impl_->network; }

const StopFlag* Executor::stop() const { return impl_->stop; }

const Device& Executor::device() const { return impl_->device; }

size_t Executor::ArenaBytes() const { return impl_->network->memory.bytes; }

const DeviceMemory& Executor::arena() const { return impl_->arena; }

size_t Executor::PackedWeightBytes() const { return tilesmith::PackedWeightBytes(*impl_->network); }

std::vector<CodeBlob> Executor::Code() const {
  std::vector<CodeBlob> code;
  const CompiledNetwork& network = *impl_->network;
  for (size_t i = 0; i < network.kernels.size(); ++i) {
    if (network.recipes[i].conv_template.empty()) continue;
    for (CodeBlob& blob : dynamic_cast<const ConvKernel&>(*network.kernels[i]).Code()) {
      blob.name = fmt::format("{}/{}", network.steps[i].node, blob.name);
      code.push_back(std::move(blob));
    }
  }
  return code;
}

size_t PackedWeightBytes(std::span<const CompiledNetwork* const> networks) {
  size_t bytes = 0;
  std::set<const std::byte*> counted;
  for (const CompiledNetwork* network : networks) {
    for (const std::unique_ptr<Kernel>& kernel : network->kernels) {
      const std::span<const std::byte> weights = PackedWeightsOf(*kernel);
      if (counted.insert(weights.data()).second) bytes += weights.size_bytes();
    }
  }
  return bytes;
}

size_t PackedWeightBytes(const CompiledNetwork& network) { return PackedWeightBytes(std::array{&network}); }

}  // namespace tilesmith
