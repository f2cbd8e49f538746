#include "tuner/measure/problem_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layouts/base/split_mix.h"
#include "layouts/transform.h"
#include "ops/base/elements.h"

namespace tilesmith {
namespace {

constexpr std::byte kGuardValue{0x5A};
constexpr int kRandomAnswers = 240;  // beside the 16 corners

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint64_t Next() { return bits_.Next(); }
  float Unit() { return static_cast<float>(static_cast<int64_t>(Next() >> 40) - (1 << 23)) / (1 << 23); }
  int64_t Below(int64_t limit) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(limit)); }

 private:
  SplitMix64 bits_;
};

}  // namespace

GuardedOutput::GuardedOutput(const Shape& shape, const Layout& layout)
    : shape_(shape),
      layout_(layout),
      output_bytes_(PaddedBytes(shape, layout)),
      buffer_(output_bytes_ + 2 * kGuardBytes) {}

OutputView GuardedOutput::view() { return {data(), BatchBytes(shape_, layout_)}; }

void GuardedOutput::ResetGuards() {
  std::fill_n(data() - kGuardBytes, kGuardBytes, kGuardValue);
  std::fill_n(data() + output_bytes_, kGuardBytes, kGuardValue);
}

bool GuardedOutput::GuardsIntact() const {
  const auto intact = [](const std::byte* guard) {
    return std::all_of(guard, guard + kGuardBytes, [](std::byte value) { return value == kGuardValue; });
  };
  return intact(data() - kGuardBytes) && intact(data() + output_bytes_);
}

float GuardedOutput::At(int64_t element) const {
  return VisitType(layout_.type(), [&](auto tag) {
    return ConvertElement<float>(reinterpret_cast<const typename decltype(tag)::Type*>(data())[element]);
  });
}

void GuardedOutput::PutWrong(int64_t first, int64_t count, float right) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  VisitType(layout_.type(), [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const float wrong = IsByte(layout_.type()) ? right + (right > 0 ? -1 : 1) : kNan;
    std::fill_n(reinterpret_cast<T*>(data()) + first, count, ConvertElement<T>(wrong));
  });
}

ProblemData::ProblemData(const ConvWorkload& workload, uint64_t seed, const Target& cpu, int threads)
    : workload_(workload), cpu_(cpu), threads_(threads) {
  Random random(seed);
  data_ = MakeWorkloadData(workload, seed, [&random](Tensor& tensor) {
    std::generate_n(tensor.floats(), tensor.size(), [&random] { return random.Unit(); });
  });
  MakeAnswers(random.Next());
}

std::vector<Dims4> ProblemData::AnswerPlaces(uint64_t seed) const {
  const Dims4 dims = ToDims4(workload_.output_shape());
  std::vector<Dims4> places;
  places.reserve(16 + kRandomAnswers);
  for (int corner = 0; corner < 16; ++corner) {
    places.push_back({corner & 1 ? dims.n - 1 : 0, corner & 2 ? dims.c - 1 : 0, corner & 4 ? dims.h - 1 : 0,
                      corner & 8 ? dims.w - 1 : 0});
  }
  Random random(seed);
  for (int i = 0; i < kRandomAnswers; ++i) {
    places.push_back(
        {random.Below(dims.n), random.Below(dims.c), random.Below(dims.h), random.Below(dims.w)});
  }
  return places;
}

void ProblemData::MakeAnswers(uint64_t seed) {
  const std::vector<Dims4> places = AnswerPlaces(seed);
  if (workload_.bytes) {
    const Dims4 dims = ToDims4(workload_.output_shape());
    std::vector<int64_t> elements;
    elements.reserve(places.size());
    for (const Dims4& place : places) elements.push_back(ElementOffset(dims, Layout::Nchw(), place));
    const std::vector<float> values =
        ElementsAs<float>(data_.bytes.op->ReferenceAt(data_.bytes.inputs(), elements));
    for (size_t i = 0; i < places.size(); ++i) answers_.push_back({places[i], values[i], 0});
  } else {
    for (const Dims4& place : places) {
      const ConvSample sample = ReferenceConvAt(workload_, data_.floats.tensors(), place);
      answers_.push_back({place, sample.value, sample.magnitude});
      largest_magnitude_ = std::max(largest_magnitude_, sample.magnitude);
    }
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

const Tensor& ProblemData::Input(const Layout& layout) {
  return InLayout(inputs_, *data_.operands().input, layout);
}
const Tensor& ProblemData::Residual(const Layout& layout) {
  return InLayout(residuals_, *data_.operands().residual, layout);
}

int64_t ProblemData::bytes() const {
  const auto of = [](const Tensor* tensor) { return tensor ? tensor->bytes() : 0; };
  const WorkloadOperands plain = data_.operands();
  int64_t sum = of(plain.input) + of(plain.residual);
  if (workload_.bytes) {
    sum += of(data_.bytes.op->params().weights.stored.get());
  } else {
    sum += of(&data_.floats.weights) + of(data_.floats.tensors().before_weights);
  }
  for (const auto& [layout, tensor] : inputs_) sum += of(&tensor);
  for (const auto& [layout, tensor] : residuals_) sum += of(&tensor);
  for (const auto& [layout, output] : outputs_) sum += output.bytes();
  return sum;
}

GuardedOutput& ProblemData::Output(const Layout& layout) {
  return outputs_.try_emplace(layout, workload_.output_shape(), layout).first->second;
}

void ProblemData::Poison(const Layout& layout) {
  const Dims4 dims = ToDims4(workload_.output_shape());
  GuardedOutput& output = Output(layout);
  output.ResetGuards();
  const int64_t padding = layout.PaddedChannels(dims.c) - dims.c;
  for (const Answer& answer : answers_) {
    output.PutWrong(ElementOffset(dims, layout, answer.index), 1, static_cast<float>(answer.value));
    const Dims4 last = {answer.index.n, dims.c - 1, answer.index.h, answer.index.w};
    output.PutWrong(ElementOffset(dims, layout, last) + 1, padding, 0);
  }
}

double ProblemData::Tolerance(const Answer& answer, const Allowed& allowed) const {
  if (workload_.bytes) return 0;
  constexpr double kPostOps = 2;  // hard_swish has slope 1.5
  const double magnitude = allowed.error_factor == 1 ? answer.magnitude : largest_magnitude_;
  const double floats = kPostOps * allowed.error_factor * RoundingBound(workload_, magnitude);
  return TypedBound(allowed.rounding, floats, magnitude, answer.value) + 1e-30;
}

AnswerCheck ProblemData::CheckAnswer(const Layout& layout, const Allowed& allowed) {
  const Dims4 dims = ToDims4(workload_.output_shape());
  GuardedOutput& output = Output(layout);
  const int64_t padding = layout.PaddedChannels(dims.c) - dims.c;
  AnswerCheck check;
  double largest = 0;
  for (const Answer& answer : answers_) {
    const Dims4& at = answer.index;
    const float got = output.At(ElementOffset(dims, layout, at));
    const double tolerance = Tolerance(answer, allowed);
    if (!(std::abs(got - answer.value) <= tolerance)) {
      check.wrong = fmt::format("output (n={}, c={}, h={}, w={}) is {}, should be {} +- {:.2g}", at.n, at.c,
                                at.h, at.w, got, answer.value, tolerance);
      return check;
    }
    largest = std::max(largest, std::abs(got - answer.value));
    const int64_t tail = ElementOffset(dims, layout, {at.n, dims.c - 1, at.h, at.w}) + 1;
    for (int64_t i = 0; i < padding; ++i) {
      const float value = output.At(tail + i);
      if (value == 0) continue;
      check.wrong = fmt::format("padding channel {} at (n={}, h={}, w={}) is {}, should be 0", dims.c + i,
                                at.n, at.h, at.w, value);
      return check;
    }
  }
  if (!output.GuardsIntact()) check.wrong = "wrote outside its output";
  check.error = rms_ > 0 ? largest / rms_ : largest;
  return check;
}

}  // namespace tilesmith
