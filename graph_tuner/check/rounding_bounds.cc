#include "graph_tuner/check/rounding_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "graph_tuner/executor/end_tensors.h"
#include "layouts/base/check.h"
#include "layouts/base/thread_team.h"
#include "ops/dense/attention.h"
#include "ops/dense/gemm.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/pool/pool.h"
#include "ops/recurrent/recurrent.h"
#include "ops/reduce/normalization.h"
#include "ops/reduce/reduce.h"
#include "templates/base/conv_error.h"

namespace tilesmith {
namespace {

// Roundings of a sum of `terms` floats, in units of eps times the sum of the terms' magnitudes: `terms` at
// worst, and hardly ever 16 * sqrt(terms), as they rarely all fall on one side. Source: Higham and Mary, "A
// New Approach to Probabilistic Rounding Error Analysis", 2019, theorem 2.4 with lambda = 32.
double SumRoundings(double terms) { return std::min(terms, 16 * std::sqrt(terms)); }

constexpr double kEps = std::numeric_limits<float>::epsilon();
constexpr double kSmallest = 1e-36;  // what a result that is not a normal float may be off

double Slope(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::kLeakyRelu:
    case ActivationKind::kHardSigmoid:
      return std::max(1.0, std::abs(double{activation.alpha}));
    case ActivationKind::kHardSwish:
    case ActivationKind::kSilu:
      return 1.5;
    default:
      return 1;
  }
}

// What computing the activation of a value of this magnitude adds, in units of eps.
double ActivationRoundings(const Activation& activation, double magnitude) {
  constexpr double kOfFunctions = 8;  // of exp, tanh and the few operations around them
  const double alpha = std::abs(double{activation.alpha}), beta = std::abs(double{activation.beta});
  switch (activation.kind) {
    case ActivationKind::kNone:
    case ActivationKind::kRelu:
    case ActivationKind::kClip:
      return 0;
    case ActivationKind::kLeakyRelu:
      return alpha * magnitude;
    default:
      return kOfFunctions * (std::max(1.0, alpha) * magnitude + beta + 1);
  }
}

float BoundOf(double roundings, double magnitude, const Activation& activation) {
  return static_cast<float>(
      kEps * (Slope(activation) * roundings * magnitude + ActivationRoundings(activation, magnitude)) +
      kSmallest);
}

// sqrt of the sum of the squares of the inputs that each output pixel of one group of one image meets.
std::vector<double> PatchNorms(const ConvWorkload& w, const float* input) {
  const int64_t plane = w.ih * w.iw;
  std::vector<double> squares(plane, 0), norms(w.oh * w.ow, 0);
  for (int64_t c = 0; c < w.ic / w.g; ++c)
    for (int64_t i = 0; i < plane; ++i) squares[i] += double{input[c * plane + i]} * input[c * plane + i];
  for (int64_t i = 0; i < w.kh; ++i) {
    for (int64_t y = 0; y < w.oh; ++y) {
      const int64_t row = y * w.sh - w.ph + i * (w.dh + 1);
      if (row < 0 || row >= w.ih) continue;
      for (int64_t j = 0; j < w.kw; ++j) {
        for (int64_t x = 0; x < w.ow; ++x) {
          const int64_t column = x * w.sw - w.pw + j * (w.dw + 1);
          if (column >= 0 && column < w.iw) norms[y * w.ow + x] += squares[row * w.iw + column];
        }
      }
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

// At least the sum of the absolute values of each output's terms.
Tensor Magnitudes(const ConvWorkload& w, const Tensor& input, const ConvOp& conv, const Tensor* residual) {
  Tensor magnitudes(w.output_shape());
  const int64_t icg = w.ic / w.g, ocg = w.oc / w.g, taps = icg * w.kh * w.kw, pixels = w.oh * w.ow;
  const float* weights = conv.weights()->floats();
  ForEachIndex(w.mb * w.g, [&](int64_t image_group) {
    const int64_t n = image_group / w.g, g = image_group % w.g;
    const std::vector<double> norms = PatchNorms(w, input.floats() + (n * w.ic + g * icg) * w.ih * w.iw);
    for (int64_t o = g * ocg; o < (g + 1) * ocg; ++o) {
      double squares = 0;
      for (int64_t k = 0; k < taps; ++k) squares += double{weights[o * taps + k]} * weights[o * taps + k];
      const double norm = std::sqrt(squares), bias = conv.bias() ? std::abs(conv.bias()->floats()[o]) : 0;
      const int64_t first = (n * w.oc + o) * pixels;
      for (int64_t p = 0; p < pixels; ++p) {
        const double added = bias + (residual ? std::abs(residual->floats()[first + p]) : 0);
        magnitudes.floats()[first + p] = static_cast<float>(norm * norms[p] + added);
      }
    }
  });
  return magnitudes;
}

Tensor Absolute(const Tensor& tensor) {
  Tensor absolute(tensor.shape());
  std::transform(tensor.floats(), tensor.floats() + tensor.size(), absolute.floats(),
                 [](float x) { return std::abs(x); });
  return absolute;
}

Tensor ScaledMagnitudes(const ScaleShiftOp& op, const Tensor& input) {
  Tensor magnitudes(input.shape());
  const int64_t channels = input.shape()[1];
  const int64_t planes = std::max<int64_t>(input.shape()[0] * channels, 1), plane = input.size() / planes;
  for (int64_t i = 0; i < input.size(); ++i) {
    const int64_t c = i / plane % channels;
    magnitudes.floats()[i] = std::abs(op.scale()[c] * input.floats()[i]) + std::abs(op.shift()[c]);
  }
  return magnitudes;
}

const Activation& ActivationInFront(const ConvStep& step) {
  static constexpr Activation kNone;
  if (const auto* conv = dynamic_cast<const ConvOp*>(step.first)) return conv->workload().post.activation;
  if (const auto* op = dynamic_cast<const ScaleShiftOp*>(step.first)) return op->activation();
  if (const auto* op = dynamic_cast<const ActivationOp*>(step.first)) return op->activation();
  return kNone;
}

// The magnitudes of what the main conv reads. Where an activation in front makes errors that do not shrink
// with its input they are at least 1, so that the errors are a multiple of them.
Tensor InputMagnitudes(const ConvStep& step, const Tensor& data) {
  if (step.first == nullptr) return Absolute(data);
  const auto* before = dynamic_cast<const ConvOp*>(step.first);
  const auto* scale_shift = dynamic_cast<const ScaleShiftOp*>(step.first);
  Tensor magnitudes = before        ? Magnitudes(before->workload(), data, *before, nullptr)
                      : scale_shift ? ScaledMagnitudes(*scale_shift, data)
                                    : Absolute(data);
  const float least = ActivationRoundings(ActivationInFront(step), 0) > 0 ? 1 : 0;
  for (int64_t i = 0; i < magnitudes.size(); ++i) {
    float& magnitude = magnitudes.floats()[i];
    magnitude = std::max({magnitude, std::abs(step.middle->floats()[i]), least});
  }
  return magnitudes;
}

double TermsOf(const ConvWorkload& w) { return static_cast<double>(w.ic / w.g * w.kh * w.kw + 2); }

// act(x) of values of these magnitudes, each the result of `roundings`.
Tensor BoundsOf(const Tensor& magnitudes, double roundings, const Activation& activation) {
  Tensor bounds(magnitudes.shape());
  const auto fill = [&](const auto& bound_of) {
    std::transform(magnitudes.floats(), magnitudes.floats() + magnitudes.size(), bounds.floats(), bound_of);
  };
  if (ActivationRoundings(activation, 1) == 0) {
    const auto factor = static_cast<float>(kEps * Slope(activation) * roundings);
    fill([factor](float magnitude) { return factor * magnitude + static_cast<float>(kSmallest); });
  } else {
    fill([&](float magnitude) { return BoundOf(roundings, magnitude, activation); });
  }
  return bounds;
}

float LargestFinite(const Tensor& tensor) {
  float largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (std::isfinite(tensor.floats()[i])) largest = std::max(largest, std::abs(tensor.floats()[i]));
  return largest;
}

// The op of the absolute values, which for sums and means is the magnitude of their terms.
Tensor OfAbsolutes(const Op& op, std::span<const Tensor* const> inputs) {
  std::vector<Tensor> absolutes;
  std::vector<const Tensor*> pointers;
  for (const Tensor* input : inputs) absolutes.push_back(Absolute(*input));
  pointers.reserve(absolutes.size());
  for (const Tensor& absolute : absolutes) pointers.push_back(&absolute);
  return op.Reference(pointers);
}

Tensor GemmBounds(const GemmOp& gemm, const Tensor& input, const Tensor& output) {
  const int64_t k = gemm.k(), n = gemm.n(), rows = n == 0 ? 0 : output.size() / n;
  const float* weights = gemm.weights()->floats();
  std::vector<double> columns(n, 0);
  for (int64_t i = 0; i < k * n; ++i) columns[i / k] += double{weights[i]} * weights[i];
  Tensor magnitudes(output.shape());
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < k; ++i) squares += double{input.floats()[r * k + i]} * input.floats()[r * k + i];
    for (int64_t j = 0; j < n; ++j) {
      const double bias = gemm.bias() ? std::abs(gemm.bias()->floats()[j]) : 0;
      magnitudes.floats()[r * n + j] = static_cast<float>(std::sqrt(squares * columns[j]) + bias);
    }
  }
  return BoundsOf(magnitudes, SumRoundings(static_cast<double>(k + 1)), gemm.activation());
}

// A factor of the output, and the same for all: of exp's argument, and of the sum.
Tensor SoftmaxBounds(const SoftmaxOp& op, const Tensor& input, const Tensor& output) {
  double count = 1;
  for (int64_t axis = op.first_axis(); axis <= op.last_axis(); ++axis)
    count *= static_cast<double>(input.shape()[axis]);
  constexpr double kOfExp = 16;
  return BoundsOf(Absolute(output), kOfExp + SumRoundings(count) + 4 * LargestFinite(input), {});
}

// The same for all elements: where sums cancel out, the result says little about the rounding of its terms.
Tensor BoundsOfLargest(const Tensor& input, const Tensor& output, double roundings) {
  Tensor magnitudes(output.shape());
  std::fill_n(magnitudes.floats(), magnitudes.size(), LargestFinite(input) + LargestFinite(output));
  return BoundsOf(magnitudes, roundings, {});
}

// Functions promise a few ulp of their result, and those whose argument is reduced first of that, too.
Tensor FunctionBounds(const Tensor& input, const Tensor& output) {
  Tensor magnitudes = Absolute(output);
  const Tensor arguments = Absolute(input);
  for (int64_t i = 0; i < magnitudes.size(); ++i)
    magnitudes.floats()[i] += std::min(arguments.floats()[i], 1.0f);
  constexpr double kOfFunction = 16;
  return BoundsOf(magnitudes, kOfFunction, {});
}

Tensor ReduceBounds(const ReduceOp& op, std::span<const Tensor* const> inputs, const Tensor& output) {
  const double terms =
      static_cast<double>(inputs[0]->size()) / std::max(static_cast<double>(output.size()), 1.0);
  const bool takes_logarithm = op.kind() == ReduceKind::kLogSum || op.kind() == ReduceKind::kLogSumExp;
  if (takes_logarithm) return BoundsOfLargest(*inputs[0], output, 16 + SumRoundings(terms));
  return BoundsOf(OfAbsolutes(op, inputs), 2 + SumRoundings(terms), {});
}

Tensor MatMulBounds(const MatMulOp& op, std::span<const Tensor* const> inputs) {
  MatMulParams params = op.params();
  params.scale = std::abs(params.scale);
  params.activation = {};
  if (params.bias) params.bias = std::make_shared<const Tensor>(Absolute(*params.bias));
  const Shape shapes[] = {inputs[0]->shape(), inputs[1]->shape()};
  const auto terms = static_cast<double>(ShapesOf(params, shapes).k);
  return BoundsOf(OfAbsolutes(MatMulOp(params), inputs), 2 + SumRoundings(terms), op.params().activation);
}

// The largest Euclidean norm of a row.
double LargestRowNorm(const Tensor& matrices) {
  const int64_t width = matrices.shape().back();
  double largest = 0;
  for (int64_t at = 0; at < matrices.size(); at += width) {
    double squares = 0;
    for (int64_t i = at; i < at + width; ++i) squares += double{matrices.floats()[i]} * matrices.floats()[i];
    largest = std::max(largest, std::sqrt(squares));
  }
  return largest;
}

// An error of a score is one of its weight, as a share of it, and at most as large a share of their sum; what
// the weights are multiplied with makes errors as any sum does.
Tensor AttentionBounds(const AttentionOp& op, std::span<const Tensor* const> inputs) {
  const AttentionParams& params = op.params();
  std::vector<Shape> shapes;
  for (const Tensor* input : inputs) shapes.push_back(input->shape());
  const AttentionShapes s = ShapesOf(params, shapes);
  if (s.width == 0 || s.keys == 0) return Tensor(op.InferShape(shapes));
  const double score = std::abs(params.scale) * LargestRowNorm(Arranged(params.q, *inputs[0])) *
                           LargestRowNorm(Arranged(params.k, *inputs[1])) +
                       (params.masked ? LargestFinite(*inputs[3]) : 0);
  const Tensor values = Absolute(*inputs[2]);
  std::vector<const Tensor*> of_absolutes(inputs.begin(), inputs.end());
  of_absolutes[2] = &values;
  constexpr double kOfExp = 16;
  const double of_score = (3 + SumRoundings(static_cast<double>(s.width))) * score + kOfExp;
  return BoundsOf(op.Reference(of_absolutes), 2 * (of_score + SumRoundings(static_cast<double>(s.keys))), {});
}

// A step's rounding is every later step's error, more or less of it as R has it: how far the same sums in
// floats, one term after the other, come from the exact ones says how far any kernel may.
Tensor RecurrentBounds(const RecurrentOp& op, std::span<const Tensor* const> inputs, const Tensor& output) {
  const Tensor in_floats = op.ReferenceInFloats(inputs);
  constexpr float kOfFunctions = 16, kSafety = 16;
  float largest = kOfFunctions * static_cast<float>(kEps) * (1 + LargestFinite(output));
  for (int64_t i = 0; i < output.size(); ++i) {
    const float difference = std::abs(output.floats()[i] - in_floats.floats()[i]);
    if (std::isfinite(difference)) largest = std::max(largest, difference);
  }
  Tensor bounds(output.shape());
  std::fill_n(bounds.floats(), bounds.size(), kSafety * largest);
  return bounds;
}

double TermsOfMean(const Op& op, const Tensor& input) {
  if (const auto* pool = dynamic_cast<const PoolOp*>(&op)) {
    return static_cast<double>(pool->window().kh * pool->window().kw);
  }
  return static_cast<double>(input.shape()[2] * input.shape()[3]);
}

bool IsMean(const Op& op) { return op.Type() == "AveragePool" || op.Type() == "GlobalAveragePool"; }

// What types of fewer bits add to the bounds of a conv.
Tensor TypedBounds(const ConvStep& step, const Tensor& magnitudes, Tensor bounds) {
  const NodeSchedule& schedule = step.schedule;
  const TypeRounding rounding =
      TypeRoundingOf(*schedule.conv_template, schedule.workload, {schedule.inputs[0], schedule.out});
  if (!rounding.any()) return bounds;
  TILESMITH_CHECK(step.output != nullptr);
  for (int64_t i = 0; i < bounds.size(); ++i) {
    bounds.floats()[i] = static_cast<float>(
        TypedBound(rounding, bounds.floats()[i], magnitudes.floats()[i], step.output->floats()[i]));
  }
  return bounds;
}

Tensor FloatOpBound(const Op& op, std::span<const Tensor* const> inputs, const Tensor& output);

}  // namespace

Tensor ConversionBound(const Tensor& tensor, DataType stored) {
  Tensor bounds(tensor.shape());
  if (tensor.type() != DataType::kF32 || stored == DataType::kF32) return bounds;
  const auto share = static_cast<float>(HalfUlp(stored));
  for (int64_t i = 0; i < bounds.size(); ++i)
    bounds.floats()[i] = share * std::abs(tensor.floats()[i]) + static_cast<float>(kSmallest);
  return bounds;
}

// Of tensors that are stored in another type the kernel reads the rounded numbers, and rounds its result.
// What the first does is told exactly by the reference of those numbers.
Tensor OpRoundingBound(const Op& op, std::span<const Tensor* const> inputs, const Tensor& output,
                       DataType stored) {
  if (output.type() != DataType::kF32 || stored == DataType::kF32) return FloatOpBound(op, inputs, output);
  std::vector<Tensor> rounded;
  std::vector<const Tensor*> pointers;
  rounded.reserve(inputs.size());
  for (const Tensor* input : inputs) {
    rounded.push_back(InLayout(InLayout(*input, Layout::Nchw(stored)), Layout::Nchw()));
    pointers.push_back(&rounded.back());
  }
  const Tensor read = op.Reference(pointers);
  Tensor bounds = FloatOpBound(op, pointers, read);
  const Tensor of_output = ConversionBound(read, stored);
  for (int64_t i = 0; i < bounds.size(); ++i) {
    const float before = bounds.floats()[i], of_inputs = std::abs(read.floats()[i] - output.floats()[i]);
    bounds.floats()[i] =
        of_inputs + before + of_output.floats()[i] + static_cast<float>(HalfUlp(stored)) * before;
  }
  return bounds;
}

Tensor ConvRoundingBound(const ConvStep& step, std::span<const Tensor* const> inputs) {
  const NodeSchedule& schedule = step.schedule;
  const ConvWorkload& w = step.conv.workload();
  const Tensor in = InputMagnitudes(step, *inputs[0]);
  Tensor magnitudes = Magnitudes(w, in, step.conv, w.post.sum ? inputs[1] : nullptr);
  double terms = TermsOf(w);
  if (const auto* before = dynamic_cast<const ConvOp*>(step.first)) terms += TermsOf(before->workload());
  if (step.first != nullptr) terms += 2 + ActivationRoundings(ActivationInFront(step), 1);
  const double factor = schedule.conv_template->ErrorFactor(schedule.workload, schedule.config);
  const double slope = step.first != nullptr ? Slope(ActivationInFront(step)) : 1;
  if (factor == 1)
    return TypedBounds(step, magnitudes,
                       BoundsOf(magnitudes, slope * SumRoundings(terms), w.post.activation));
  std::fill_n(magnitudes.floats(), magnitudes.size(),
              *std::max_element(magnitudes.floats(), magnitudes.floats() + magnitudes.size()));
  return TypedBounds(step, magnitudes, BoundsOf(magnitudes, slope * factor * terms, w.post.activation));
}

namespace {

Tensor FloatOpBound(const Op& op, std::span<const Tensor* const> inputs, const Tensor& output) {
  constexpr double kFewOperations = 2, kOfExp = 16, kOfTaps = 32;
  const auto* recurrent = dynamic_cast<const RecurrentOp*>(&op);  // whose lengths are integers
  if (recurrent != nullptr) return RecurrentBounds(*recurrent, inputs, output);
  const auto is_float = [](const Tensor* tensor) { return tensor->type() == DataType::kF32; };
  if (!is_float(&output) || !std::ranges::all_of(inputs, is_float)) return Tensor(output.shape());
  if (const auto* gemm = dynamic_cast<const GemmOp*>(&op)) return GemmBounds(*gemm, *inputs[0], output);
  if (const auto* matmul = dynamic_cast<const MatMulOp*>(&op)) return MatMulBounds(*matmul, inputs);
  if (const auto* attention = dynamic_cast<const AttentionOp*>(&op))
    return AttentionBounds(*attention, inputs);
  if (const auto* softmax = dynamic_cast<const SoftmaxOp*>(&op)) {
    if (softmax->logarithm()) return BoundsOfLargest(*inputs[0], output, kOfExp);
    return SoftmaxBounds(*softmax, *inputs[0], output);
  }
  if (dynamic_cast<const FunctionOp*>(&op) != nullptr) return FunctionBounds(*inputs[0], output);
  if (const auto* reduce = dynamic_cast<const ReduceOp*>(&op)) return ReduceBounds(*reduce, inputs, output);
  if (dynamic_cast<const NormalizationOp*>(&op) != nullptr)
    return BoundsOfLargest(*inputs[0], output, kOfTaps);
  if (const auto* scale = dynamic_cast<const ScaleShiftOp*>(&op)) {
    return BoundsOf(ScaledMagnitudes(*scale, *inputs[0]), 2, scale->activation());
  }
  if (const auto* act = dynamic_cast<const ActivationOp*>(&op)) {
    return BoundsOf(Absolute(*inputs[0]), 0, act->activation());
  }
  if (IsMean(op)) return BoundsOf(OfAbsolutes(op, inputs), 2 + SumRoundings(TermsOfMean(op, *inputs[0])), {});
  if (dynamic_cast<const SumOp*>(&op) != nullptr) {
    return BoundsOf(OfAbsolutes(op, inputs), static_cast<double>(inputs.size()), {});
  }
  if (op.Type() == "Resize") {  // a weighted mean of up to 16 pixels, some weights below zero
    Tensor magnitudes(output.shape());
    std::fill_n(magnitudes.floats(), magnitudes.size(), LargestFinite(*inputs[0]));
    return BoundsOf(magnitudes, kOfTaps, {});
  }
  return BoundsOf(Absolute(output), kFewOperations, {});
}

}  // namespace
}  // namespace tilesmith
