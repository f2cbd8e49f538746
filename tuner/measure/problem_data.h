// The data a worker computes on, and the answers it must get: made once per session.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "layouts/tensor.h"
#include "templates/base/conv_error.h"
#include "templates/base/workload_data.h"

namespace tilesmith {

// Memory of one output, in the type of its layout, with guards on both sides.
class GuardedOutput {
 public:
  static constexpr int64_t kGuardBytes = 4096;

  GuardedOutput(const Shape& shape, const Layout& layout);
  OutputView view();
  // All of it, guards included; the output begins `kGuardBytes` into it.
  std::span<std::byte> memory() const { return {data() - kGuardBytes, buffer_.bytes()}; }
  // An element as a float. Preconditions of this and the next: the type is f32, bf16, u8 or i8.
  float At(int64_t element) const;
  // Something else than `right` in these elements: NaNs, where the type has them.
  void PutWrong(int64_t first, int64_t count, float right);
  int64_t bytes() const { return static_cast<int64_t>(buffer_.bytes()); }
  void ResetGuards();
  bool GuardsIntact() const;

 private:
  std::byte* data() const { return static_cast<std::byte*>(buffer_.data()) + kGuardBytes; }

  Shape shape_;
  Layout layout_;
  int64_t output_bytes_ = 0;
  AlignedBuffer buffer_;
};

struct AnswerCheck {
  std::string wrong;  // "", or what is wrong: a value, a padding channel that is not zero, a write outside
  double error = 0;   // largest difference from the exact answers, relative to their root mean square
};

// Inputs in any layout (converted once), weights, and the sampled reference answers.
class ProblemData {
 public:
  // Values are uniform in [-1, 1), or any bytes, a function of the seed alone.
  ProblemData(const ConvWorkload& workload, uint64_t seed, const Target& cpu, int threads);

  const Tensor& Input(const Layout& layout);
  const Tensor& Residual(const Layout& layout);  // precondition: the workload has a sum
  // Precondition: the workload is a product.
  const Tensor& RightSide() const { return *data_.operands().right_side; }
  GuardedOutput& Output(const Layout& layout);
  ConvWeights weights() const { return data_.operands().weights; }
  int64_t bytes() const;  // of all that is held

  // Puts NaN where answers are looked at, and sets the guards.
  void Poison(const Layout& layout);
  // What computed it: ConvTemplate::ErrorFactor, and how types round (TypeRoundingOf, conv_error.h). Bytes,
  // and reals computed of them, are to be exactly right.
  struct Allowed {
    double error_factor = 1;
    TypeRounding rounding = {};
  };
  AnswerCheck CheckAnswer(const Layout& layout, const Allowed& allowed);

 private:
  struct Answer {
    Dims4 index;
    double value = 0;
    double magnitude = 0;  // of its terms
  };
  void MakeAnswers(uint64_t seed);
  std::vector<Dims4> AnswerPlaces(uint64_t seed) const;
  double Tolerance(const Answer& answer, const Allowed& allowed) const;
  const Tensor& InLayout(std::map<Layout, Tensor>& cache, const Tensor& plain, const Layout& layout);

  ConvWorkload workload_;
  Target cpu_;
  int threads_;
  WorkloadData data_;
  std::map<Layout, Tensor> inputs_, residuals_;
  std::map<Layout, GuardedOutput> outputs_;
  std::vector<Answer> answers_;
  double rms_ = 0;  // of the answers
  double largest_magnitude_ = 0;
};

}  // namespace tilesmith
