#include "graph_tuner/check/output_errors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "graph_tuner/check/step_memory.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/executor.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

const ConvTemplate* Bf16TemplateOf(const ConvWorkload& workload, const Target& cpu) {
  for (const ConvTemplate* conv_template : ConvTemplates(cpu.device, DataType::kBf16))
    if (conv_template->Supports(workload, cpu).ok) return conv_template;
  return nullptr;
}

// What a conv computes of plain inputs, plain.
Tensor InBf16(const ConvTemplate& conv_template, const ConvOp& conv, const std::vector<Tensor>& inputs,
              const Device& device) {
  const ConvWorkload& w = conv.workload();
  const Config config = conv_template.Default(w, device.target());
  const LayoutPair layouts = conv_template.Layouts(w, config);
  const auto kernel = device.BuildConv(
      conv_template, w, config,
      {.weights = conv.weights()->floats(), .bias = conv.bias() ? conv.bias()->floats() : nullptr});
  std::vector<Tensor> stored = {InLayout(inputs[0], layouts.in)};
  if (w.post.sum) stored.push_back(InLayout(inputs[1], layouts.out));
  std::vector<DeviceMemory> there;
  const auto there_for = [&](size_t bytes) { return there.emplace_back(device.Allocate(bytes)).data.get(); };
  Launch launch{.kernel = kernel.get(), .inputs = {}, .output = {}};
  for (const Tensor& tensor : stored) {
    void* const memory = there_for(static_cast<size_t>(tensor.bytes()));
    device.Upload(tensor.raw(), memory, static_cast<size_t>(tensor.bytes()));
    launch.inputs.push_back({memory, tensor.input_view().batch_stride});
  }
  Tensor output(w.output_shape(), layouts.out);
  launch.output = {there_for(static_cast<size_t>(output.bytes())), output.output_view().batch_stride};
  launch.scratch = there_for(static_cast<size_t>(kernel->ScratchBytes(device.threads())));
  device.NewStream(nullptr)->Run({&launch, 1}, {});
  device.Download(launch.output.data, output.raw(), static_cast<size_t>(output.bytes()));
  return InLayout(output, Layout::Nchw());
}

// A step of the executor, from what its inputs hold.
void ComputeInBf16(const ConvTemplate& conv_template, const ConvOp& conv, const BoundStep& step,
                   const Device& device) {
  std::vector<Tensor> read;
  read.reserve(step.inputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const InputView& memory = step.input_memory[i];
    read.push_back(ReadPlain(step.inputs[i],
                             SeenMemory(device, step.inputs[i], memory.data, memory.batch_stride).view()));
  }
  SeenMemory written(device, step.output, step.output_memory.data, step.output_memory.batch_stride);
  WritePlain(InBf16(conv_template, conv, read, device), step.output, written.writable());
  written.PutBack();
}

// Floats as f32.
std::vector<Tensor> Plain(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> plain;
  plain.reserve(tensors.size());
  for (const Tensor& tensor : tensors)
    plain.push_back(
        InLayout(tensor, Layout::Nchw(IsFloating(tensor.type()) ? DataType::kF32 : tensor.type())));
  return plain;
}

// Into tensors that steps are bound to.
void CopyInto(const std::vector<Tensor>& from, std::vector<Tensor>& to) {
  for (size_t i = 0; i < from.size(); ++i)
    std::memcpy(to[i].raw(), from[i].raw(), static_cast<size_t>(from[i].bytes()));
}

}  // namespace

void OutputSums::Add(const std::vector<Tensor>& outputs, const std::vector<Tensor>& expected) {
  sums_.resize(outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (expected[k].type() != DataType::kF32) continue;
    CountAgreement(outputs[k], expected[k], &difference_.rows, &difference_.agreeing);
    for (int64_t i = 0; i < outputs[k].size(); ++i) {
      const double want = expected[k].floats()[i], have = outputs[k].floats()[i];
      if (!std::isfinite(want)) continue;
      sums_[k].squares += want * want;
      sums_[k].of_difference += (have - want) * (have - want);
    }
  }
}

OutputDifference OutputSums::Difference() const {
  OutputDifference difference = difference_;
  for (const auto& [squares, of_difference] : sums_) {
    const double error = of_difference == 0 ? 0 : std::sqrt(of_difference / squares);
    difference.error =
        std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(difference.error, error);
  }
  return difference;
}

void CountAgreement(const Tensor& value, const Tensor& expected, int64_t* rows, int64_t* agreeing) {
  const Shape& shape = expected.shape();
  const bool rows_of_classes =
      shape.size() >= 2 && shape[1] > 1 &&
      std::all_of(shape.begin() + 2, shape.end(), [](int64_t size) { return size == 1; });
  if (!rows_of_classes) return;
  for (int64_t i = 0; i < shape[0]; ++i) {
    const auto largest = [&](const Tensor& of) {
      const float* const begin = of.floats() + i * shape[1];
      return std::max_element(begin, begin + shape[1]) - begin;
    };
    ++*rows;
    *agreeing += largest(value) == largest(expected);
  }
}

OutputErrors::OutputErrors(const Graph& graph, DevicePtr device, Samples samples)
    : graph_(graph),
      device_(std::move(device)),
      samples_(std::move(samples)),
      floats_(HeuristicPlan(graph, device_->target(), device_->threads())) {
  expected_ = OutputsOf(graph_, floats_);
}

std::vector<OutputErrors::Outputs> OutputErrors::OutputsOf(const Graph& graph, const Plan& plan) const {
  Executor executor(graph, plan, device_);
  std::vector<Tensor> outputs = OutputTensors(plan.ends.outputs, graph);
  std::vector<Outputs> all;
  all.reserve(samples_.size());
  for (const std::vector<Tensor>& sample : samples_) {
    const std::vector<Tensor> inputs = InputsIn(plan.ends.inputs, graph, sample);
    executor.Run(PointersTo<const Tensor*>(inputs), PointersTo<Tensor*>(outputs));
    all.push_back(Plain(outputs));
  }
  return all;
}

OutputDifference OutputErrors::Of(const Graph& graph, const Plan& plan) const {
  const std::vector<Outputs> outputs = OutputsOf(graph, plan);
  OutputSums sums;
  for (size_t i = 0; i < outputs.size(); ++i) sums.Add(outputs[i], expected_[i]);
  return sums.Difference();
}

ErrorSquares OutputErrors::OfConvs(size_t most, const std::function<void(size_t, size_t)>& progress) const {
  Executor executor(graph_, floats_, device_);
  std::vector<Tensor> inputs = InputsIn(floats_.ends.inputs, graph_, samples_.front());
  std::vector<Tensor> outputs = OutputTensors(floats_.ends.outputs, graph_);
  const auto bind = [&] {
    return executor.BindSteps(PointersTo<const Tensor*>(inputs), PointersTo<Tensor*>(outputs));
  };
  const std::vector<BoundStep> steps = bind();
  const auto run = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) executor.RunStep(i);
  };
  ErrorSquares squares;
  for (size_t at = 0; at < steps.size(); ++at) {
    if (progress) progress(at, steps.size());
    const BoundStep& step = steps[at];
    const auto* conv = step.computes ? graph_.As<ConvOp>(step.node) : nullptr;
    const ConvTemplate* conv_template =
        conv != nullptr ? Bf16TemplateOf(conv->workload(), device_->target()) : nullptr;
    if (conv_template == nullptr) continue;
    OutputSums sums;
    for (size_t sample = 0; sample < std::min(most, samples_.size()); ++sample) {
      CopyInto(InputsIn(floats_.ends.inputs, graph_, samples_[sample]), inputs);
      bind();  // brings them to a device that does not read them here
      run(0, at);
      ComputeInBf16(*conv_template, *conv, step, *device_);
      run(at + 1, steps.size());
      executor.FetchOutputs();
      sums.Add(Plain(outputs), expected_[sample]);
    }
    squares[graph_.node(step.node).name] = std::pow(sums.Difference().error, 2);
  }
  if (progress) progress(steps.size(), steps.size());
  return squares;
}

}  // namespace tilesmith
