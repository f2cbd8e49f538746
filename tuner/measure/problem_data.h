// The data a worker computes on, and the answers it must get: made once per session.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layouts/tensor.h"
#include "ops/conv/conv_data.h"

namespace tilesmith {

// Memory of one output with guard floats on both sides.
class GuardedOutput {
 public:
  GuardedOutput(const Shape& shape, const Layout& layout);
  OutputView view();
  float* data() { return buffer_.floats() + kGuardFloats; }
  int64_t bytes() const { return static_cast<int64_t>(buffer_.bytes()); }
  void ResetGuards();
  bool GuardsIntact() const;

 private:
  static constexpr int64_t kGuardFloats = 1024;
  Shape shape_;
  Layout layout_;
  int64_t size_ = 0;
  AlignedBuffer buffer_;
};

struct AnswerCheck {
  std::string wrong;  // "", or what is wrong: a value, a padding channel that is not zero, a write outside
  double error = 0;   // largest difference from the exact answers, relative to their root mean square
};

// Inputs in any layout (converted once), weights, and the sampled reference answers.
class ProblemData {
 public:
  // Values are uniform in [-1, 1), a function of the seed alone.
  ProblemData(const ConvWorkload& workload, uint64_t seed, const Target& cpu, int threads);

  const Tensor& Input(const Layout& layout);
  const Tensor& Residual(const Layout& layout);  // precondition: the workload has a sum
  GuardedOutput& Output(const Layout& layout);
  ConvTensors tensors() const { return data_.tensors(); }
  int64_t bytes() const;  // of all that is held

  // Puts NaN where answers are looked at, and sets the guards.
  void Poison(const Layout& layout);
  // error_factor: ConvTemplate::ErrorFactor of what computed it.
  AnswerCheck CheckAnswer(const Layout& layout, double error_factor);

 private:
  struct Answer {
    Dims4 index;
    double value = 0;
    double magnitude = 0;  // of its terms
  };
  void MakeAnswers(uint64_t seed);
  double Tolerance(const Answer& answer, double error_factor) const;
  const Tensor& InLayout(std::map<Layout, Tensor>& cache, const Tensor& plain, const Layout& layout);

  ConvWorkload workload_;
  Target cpu_;
  int threads_;
  ConvData data_;
  std::map<Layout, Tensor> inputs_, residuals_;
  std::map<Layout, GuardedOutput> outputs_;
  std::vector<Answer> answers_;
  double rms_ = 0;  // of the answers
  double largest_magnitude_ = 0;
};

}  // namespace tilesmith
