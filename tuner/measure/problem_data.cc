#include "tuner/measure/problem_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/transform.h"
#include "templates/base/conv_error.h"

namespace tilesmith {
namespace {

constexpr float kGuardValue = 1.2345e30f;
constexpr int kRandomAnswers = 240;  // beside the 16 corners

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t Next() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  float Unit() { return static_cast<float>(static_cast<int64_t>(Next() >> 40) - (1 << 23)) / (1 << 23); }
  int64_t Below(int64_t limit) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(limit)); }

 private:
  uint64_t state_;
};

}  // namespace

GuardedOutput::GuardedOutput(const Shape& shape, const Layout& layout)
    : shape_(shape),
      layout_(layout),
      size_(PaddedElementCount(shape, layout)),
      buffer_((size_ + 2 * kGuardFloats) * sizeof(float)) {}

OutputView GuardedOutput::view() { return {data(), BatchBytes(shape_, layout_)}; }

void GuardedOutput::ResetGuards() {
  std::fill_n(buffer_.floats(), kGuardFloats, kGuardValue);
  std::fill_n(buffer_.floats() + kGuardFloats + size_, kGuardFloats, kGuardValue);
}

bool GuardedOutput::GuardsIntact() const {
  const auto intact = [](float value) { return value == kGuardValue; };
  const float* before = buffer_.floats();
  const float* after = before + kGuardFloats + size_;
  return std::all_of(before, before + kGuardFloats, intact) &&
         std::all_of(after, after + kGuardFloats, intact);
}

ProblemData::ProblemData(const ConvWorkload& workload, uint64_t seed, const Target& cpu, int threads)
    : workload_(workload), cpu_(cpu), threads_(threads) {
  Random random(seed);
  data_ = MakeConvData(workload, [&random](Tensor& tensor) {
    std::generate_n(tensor.floats(), tensor.size(), [&random] { return random.Unit(); });
  });
  MakeAnswers(random.Next());
}

void ProblemData::MakeAnswers(uint64_t seed) {
  const ConvWorkload& w = workload_;
  const auto add = [&](const Dims4& index) {
    const ConvSample sample = ReferenceConvAt(w, data_.tensors(), index);
    answers_.push_back({index, sample.value, sample.magnitude});
    largest_magnitude_ = std::max(largest_magnitude_, sample.magnitude);
  };
  for (int corner = 0; corner < 16; ++corner) {
    add({corner & 1 ? w.mb - 1 : 0, corner & 2 ? w.oc - 1 : 0, corner & 4 ? w.oh - 1 : 0,
         corner & 8 ? w.ow - 1 : 0});
  }
  Random random(seed);
  for (int i = 0; i < kRandomAnswers; ++i) {
    add({random.Below(w.mb), random.Below(w.oc), random.Below(w.oh), random.Below(w.ow)});
  }
  double squares = 0;
  for (const Answer& answer : answers_) squares += answer.value * answer.value;
  rms_ = std::sqrt(squares / static_cast<double>(answers_.size()));
}

const Tensor& ProblemData::InLayout(std::map<Layout, Tensor>& cache, const Tensor& plain,
                                    const Layout& layout) {
  const auto found = cache.find(layout);
  if (found != cache.end()) return found->second;
  return cache.emplace(layout, Transform(plain, layout, cpu_, threads_)).first->second;
}

const Tensor& ProblemData::Input(const Layout& layout) { return InLayout(inputs_, data_.input, layout); }
const Tensor& ProblemData::Residual(const Layout& layout) {
  return InLayout(residuals_, *data_.residual, layout);
}

int64_t ProblemData::bytes() const {
  const auto of = [](const Tensor* tensor) {
    return tensor ? tensor->size() * static_cast<int64_t>(sizeof(float)) : 0;
  };
  const ConvTensors plain = data_.tensors();
  int64_t sum = of(plain.input) + of(plain.weights) + of(plain.residual) + of(plain.before_weights);
  for (const auto& [layout, tensor] : inputs_) sum += of(&tensor);
  for (const auto& [layout, tensor] : residuals_) sum += of(&tensor);
  for (const auto& [layout, output] : outputs_) sum += output.bytes();
  return sum;
}

GuardedOutput& ProblemData::Output(const Layout& layout) {
  return outputs_.try_emplace(layout, workload_.output_shape(), layout).first->second;
}

void ProblemData::Poison(const Layout& layout) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Dims4 dims = ToDims4(workload_.output_shape());
  GuardedOutput& output = Output(layout);
  output.ResetGuards();
  const int64_t padding = layout.PaddedChannels(dims.c) - dims.c;
  for (const Answer& answer : answers_) {
    output.data()[ElementOffset(dims, layout, answer.index)] = kNan;
    const Dims4 last = {answer.index.n, dims.c - 1, answer.index.h, answer.index.w};
    std::fill_n(output.data() + ElementOffset(dims, layout, last) + 1, padding, kNan);
  }
}

double ProblemData::Tolerance(const Answer& answer, double error_factor) const {
  constexpr double kPostOps = 2;  // hard_swish has slope 1.5
  const double magnitude = error_factor == 1 ? answer.magnitude : largest_magnitude_;
  return kPostOps * error_factor * RoundingBound(workload_, magnitude) + 1e-30;
}

AnswerCheck ProblemData::CheckAnswer(const Layout& layout, double error_factor) {
  const Dims4 dims = ToDims4(workload_.output_shape());
  GuardedOutput& output = Output(layout);
  const int64_t padding = layout.PaddedChannels(dims.c) - dims.c;
  AnswerCheck check;
  double largest = 0;
  for (const Answer& answer : answers_) {
    const Dims4& at = answer.index;
    const float got = output.data()[ElementOffset(dims, layout, at)];
    const double tolerance = Tolerance(answer, error_factor);
    if (!(std::abs(got - answer.value) <= tolerance)) {
      check.wrong = fmt::format("output (n={}, c={}, h={}, w={}) is {}, should be {} +- {:.2g}", at.n, at.c,
                                at.h, at.w, got, answer.value, tolerance);
      return check;
    }
    largest = std::max(largest, std::abs(got - answer.value));
    const float* tail = output.data() + ElementOffset(dims, layout, {at.n, dims.c - 1, at.h, at.w}) + 1;
    const float* wrong = std::find_if(tail, tail + padding, [](float value) { return !(value == 0); });
    if (wrong != tail + padding) {
      check.wrong = fmt::format("padding channel {} at (n={}, h={}, w={}) is {}, should be 0",
                                dims.c + (wrong - tail), at.n, at.h, at.w, *wrong);
      return check;
    }
  }
  if (!output.GuardsIntact()) check.wrong = "wrote outside its output";
  check.error = rms_ > 0 ? largest / rms_ : largest;
  return check;
}

}  // namespace tilesmith
