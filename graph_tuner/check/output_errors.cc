#include "graph_tuner/check/output_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graph_tuner/check/step_memory.h"
#include "graph_tuner/executor/end_tensors.h"
#include "graph_tuner/executor/executor.h"
#include "graph_tuner/executor/heuristic_plan.h"
#include "layouts/base/thread_team.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

const ConvTemplate* Bf16TemplateOf(const ConvWorkload& workload, const Target& cpu) {
  for (const ConvTemplate* conv_template : Bf16ConvTemplates())
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
  std::vector<InputView> views;
  views.reserve(stored.size());
  for (const Tensor& tensor : stored) views.push_back(tensor.input_view());
  Tensor output(w.output_shape(), layouts.out);
  const AlignedBuffer scratch(static_cast<size_t>(kernel->ScratchBytes(device.threads())));
  RunKernel(*kernel, {views, output.output_view(), scratch.data()}, device.threads());
  return InLayout(output, Layout::Nchw());
}

std::vector<Tensor> OutputTensors(const Graph& graph, const Plan& plan) {
  std::vector<Tensor> outputs;
  for (const Graph::NodeId id : graph.outputs())
    outputs.emplace_back(graph.node(id).shape, EndLayout(graph.node(id), plan.ends.outputs));
  return outputs;
}

std::vector<Tensor> Plain(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> plain;
  plain.reserve(tensors.size());
  for (const Tensor& tensor : tensors) plain.push_back(InLayout(tensor, Layout::Nchw(tensor.type())));
  return plain;
}

}  // namespace

OutputErrors::OutputErrors(const Graph& graph, DevicePtr device, std::vector<Tensor> inputs)
    : graph_(graph),
      device_(std::move(device)),
      inputs_(std::move(inputs)),
      floats_(HeuristicPlan(graph, device_->target(), device_->threads())) {
  expected_ = OutputsOf(floats_);
}

std::vector<Tensor> OutputErrors::OutputsOf(const Plan& plan) const {
  Executor executor(graph_, plan, device_);
  const std::vector<Tensor> inputs = InputsIn(plan.ends.inputs, graph_, inputs_);
  std::vector<Tensor> outputs = OutputTensors(graph_, plan);
  executor.Run(PointersTo<const Tensor*>(inputs), PointersTo<Tensor*>(outputs));
  return Plain(outputs);
}

double OutputErrors::Of(const Plan& plan) const { return Compare(OutputsOf(plan)); }

double OutputErrors::Compare(const std::vector<Tensor>& outputs) const {
  double largest = 0;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (expected_[k].type() != DataType::kF32) continue;
    double squares = 0, of_difference = 0;
    for (int64_t i = 0; i < outputs[k].size(); ++i) {
      const double want = expected_[k].floats()[i], have = outputs[k].floats()[i];
      if (!std::isfinite(want)) continue;
      squares += want * want;
      of_difference += (have - want) * (have - want);
    }
    const double error = of_difference == 0 ? 0 : std::sqrt(of_difference / squares);
    largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
  }
  return largest;
}

ErrorSquares OutputErrors::OfConvs(const std::function<void(size_t, size_t)>& progress) const {
  Executor executor(graph_, floats_, device_);
  const std::vector<Tensor> inputs = InputsIn(floats_.ends.inputs, graph_, inputs_);
  std::vector<Tensor> outputs = OutputTensors(graph_, floats_);
  const std::vector<BoundStep> steps =
      executor.BindSteps(PointersTo<const Tensor*>(inputs), PointersTo<Tensor*>(outputs));
  const auto run = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) executor.RunStep(i);
  };
  ErrorSquares squares;
  for (size_t at = 0; at < steps.size(); ++at) {
    if (progress) progress(at, steps.size());
    const BoundStep& step = steps[at];
    const auto* conv = step.computes ? dynamic_cast<const ConvOp*>(graph_.node(step.node).op.get()) : nullptr;
    const ConvTemplate* conv_template =
        conv != nullptr ? Bf16TemplateOf(conv->workload(), device_->target()) : nullptr;
    if (conv_template == nullptr) continue;
    run(0, at);
    std::vector<Tensor> read;
    read.reserve(step.inputs.size());
    for (size_t i = 0; i < step.inputs.size(); ++i)
      read.push_back(ReadPlain(step.inputs[i], step.input_memory[i]));
    WritePlain(InBf16(*conv_template, *conv, read, *device_), step.output, step.output_memory);
    run(at + 1, steps.size());
    const double error = Compare(Plain(outputs));
    squares[graph_.node(step.node).name] = error * error;
  }
  if (progress) progress(steps.size(), steps.size());
  return squares;
}

}  // namespace tilesmith
