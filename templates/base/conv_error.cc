#include "templates/base/conv_error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/transform.h"
#include "ops/conv/conv.h"

namespace tilesmith {
namespace {

// A conv without post-ops, its data, and exact outputs.
class Probe {
 public:
  explicit Probe(const ConvWorkload& workload) : workload_(workload) {
    constexpr int kOutputs = 4096;
    workload_.post = {};
    std::mt19937_64 random(1);
    input_ = Uniform(workload_.input_shape(), random);
    weights_ = Uniform(workload_.weights_shape(), random);
    const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
    const ConvWorkload& w = workload_;
    for (int corner = 0; corner < 4; ++corner) {
      Add({w.mb - 1, w.oc - 1, corner & 1 ? w.oh - 1 : 0, corner & 2 ? w.ow - 1 : 0});
    }
    while (answers_.size() < kOutputs) Add({below(w.mb), below(w.oc), below(w.oh), below(w.ow)});
  }

  const ConvWorkload& workload() const { return workload_; }
  const Tensor& input() const { return input_; }
  const float* weights() const { return weights_.floats(); }

  ConvError ErrorOf(const Tensor& output) const {
    const Dims4 dims = ToDims4(workload_.output_shape());
    double squares = 0, largest = 0, exact_squares = 0;
    for (const Answer& answer : answers_) {
      const double got = output.floats()[ElementOffset(dims, output.layout(), answer.at)];
      const double error = std::isnan(got) ? std::numeric_limits<double>::infinity() : got - answer.value;
      squares += error * error;
      largest = std::max(largest, std::abs(error));
      exact_squares += answer.value * answer.value;
    }
    const auto count = static_cast<double>(answers_.size());
    return {std::sqrt(squares / exact_squares), largest / std::sqrt(exact_squares / count)};
  }

 private:
  struct Answer {
    Dims4 at;
    double value = 0;
  };

  static Tensor Uniform(const Shape& shape, std::mt19937_64& random) {
    Tensor tensor(shape);
    std::generate_n(tensor.floats(), tensor.size(), [&] {
      return static_cast<float>(static_cast<int64_t>(random() >> 40) - (1 << 23)) / (1 << 23);
    });
    return tensor;
  }

  void Add(const Dims4& at) {
    answers_.push_back({at, ReferenceConvAt(workload_, input_, weights_, nullptr, nullptr, at).value});
  }

  ConvWorkload workload_;
  Tensor input_, weights_;
  std::vector<Answer> answers_;
};

}  // namespace

double RoundingBound(const ConvWorkload& w, double magnitude) {
  const auto terms_of = [](const ConvWorkload& conv) {
    const int64_t terms = conv.ic / conv.g * conv.kh * conv.kw + 2;
    return static_cast<double>(terms);
  };
  double terms = terms_of(w);
  for (const ConvWorkload& first : w.before) terms += terms_of(first);
  const double slopes = w.fused() ? 2 : 1;
  return slopes * terms * std::numeric_limits<float>::epsilon() * magnitude;
}

double HalfUlp(DataType type) {
  return type == DataType::kBf16 ? 0x1p-8 : type == DataType::kF16 ? 0x1p-11 : 0;
}

TypeRounding TypeRoundingOf(const ConvTemplate& conv_template, const ConvWorkload& w,
                            const LayoutPair& layouts) {
  const double factor = HalfUlp(conv_template.FactorType()), in = HalfUlp(layouts.in.type());
  const bool rounded_again = w.fused() || layouts.in.type() != conv_template.FactorType();
  const double inputs = (1 + in) * (1 + (rounded_again ? factor : 0));
  const double residual = w.post.sum ? HalfUlp(layouts.out.type()) : 0;
  return {std::max(inputs * (1 + factor) - 1, residual), HalfUlp(layouts.out.type())};
}

double TypedBound(const TypeRounding& rounding, double float_bound, double magnitude, double value) {
  if (!rounding.any()) return float_bound;
  constexpr double kSlope = 1.5 * 1.5;
  // The terms of the float sum are larger by at most the factors' share.
  const double before = float_bound * (1 + rounding.factors) + kSlope * rounding.factors * magnitude;
  return before + rounding.output * (std::abs(value) + before);
}

std::optional<ConvError> MeasureConvError(const ConvWorkload& workload, const ConvFunction& compute) {
  const Probe probe(workload);
  const auto output = compute(probe.workload(), probe.input(), probe.weights());
  if (!output) return std::nullopt;
  return probe.ErrorOf(*output);
}

ConvError MeasureConvError(const ConvTemplate& conv_template, const ConvWorkload& workload,
                           const Config& config, const Target& cpu) {
  const auto run = [&](const ConvWorkload& w, const Tensor& plain, const float* weights) {
    const LayoutPair layouts = conv_template.Layouts(w, config);
    const auto kernel = conv_template.Build(w, config, cpu, {weights, nullptr});
    const Tensor input = Transform(plain, layouts.in, cpu, 1);
    Tensor output(w.output_shape(), layouts.out);
    const AlignedBuffer scratch(kernel->ScratchBytes(1));
    const InputView inputs[] = {input.input_view()};
    RunKernel(*kernel, {inputs, output.output_view(), scratch.data()}, 1);
    if (output.type() == DataType::kF32) return output;
    return Transform(output, Layout::Nchw(), cpu, 1);
  };
  return *MeasureConvError(workload, run);
}

}  // namespace tilesmith
