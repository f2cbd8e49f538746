// Every CUDA template against the reference, its kernels compiled by g++ and emulated: random workloads and
// configs, in guarded memory, outputs NaN beforehand. Integer data whose results must be exact where the
// template sums plainly; elsewhere within its bound, of data with all bits of the mantissa.
// TILESMITH_CUDA_CASES=N makes it N cases a template.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/base/conv_error.h"
#include "templates/cuda/program.h"
#include "tests/support/cuda/cuda_targets.h"
#include "tests/support/cuda/emulated_programs.h"
#include "tests/support/guarded_tensor.h"
#include "tests/support/random.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"

namespace tilesmith {
namespace emulated_conv {
namespace {

struct Case {
  const ConvTemplate* conv_template = nullptr;
  ConvWorkload workload;
  Config config;
  Target target;
  uint64_t seed = 0;
  std::unique_ptr<ConvKernel> kernel;
  ConvData data;

  const CudaProgram& program() const { return dynamic_cast<const CudaConv&>(*kernel).program(); }
  double error_factor() const { return conv_template->ErrorFactor(workload, config); }
  std::string Text() const {
    return fmt::format("{} {} {} compute {} seed {}", conv_template->Name(), WorkloadToString(workload),
                       config.ToString(), target.compute, seed);
  }
};

int Cases() { return CaseCount("TILESMITH_CUDA_CASES", 24); }

// Small enough for an emulation.
bool FindWorkload(TestRandom& random, Case& c) {
  constexpr int kMaxTries = 4000;
  constexpr double kMaxFlops = 4e6;
  constexpr int64_t kMaxDepth = 1200;
  for (int i = 0; i < kMaxTries; ++i) {
    c.workload = RandomWorkload(random);
    const ConvWorkload& w = c.workload;
    if (w.flops() > kMaxFlops || w.ic / w.g * w.kh * w.kw > kMaxDepth) continue;
    if (c.conv_template->Supports(w, c.target).ok) return true;
  }
  return false;
}

bool MakeCase(Case& c) {
  TestRandom random(c.seed);
  c.target = CudaTargetForTests(c.seed % 2 == 0 ? 80 : 90, c.seed % 4 < 2);
  if (!FindWorkload(random, c)) return false;
  const ConfigSpace space = c.conv_template->Space(c.workload, c.target);
  c.config = c.conv_template->Default(c.workload, c.target);
  EXPECT_EQ(space.WhyInvalid(c.config), "") << c.Text();
  if (c.seed % 8 != 0) c.config = RandomValidConfig(space, random, 20000).value_or(c.config);
  const bool exact = c.error_factor() == 1;
  uint64_t seed = c.seed;
  c.data = MakeConvData(c.workload, [&](Tensor& tensor) {
    const std::span<float> values(tensor.floats(), static_cast<size_t>(tensor.size()));
    exact ? FillIntegers(values, ++seed) : FillUniform(values, ++seed);
  });
  c.kernel = c.conv_template->Build(c.workload, c.config, c.target, WeightsOf(c.data.tensors()));
  return true;
}

// Between unreadable pages, images `gap` floats further apart than they need to be.
std::unique_ptr<GuardedTensor> Guarded(const Tensor& tensor, int64_t gap, Guard guard) {
  const int64_t image = BatchStride(tensor.shape(), tensor.layout()), images = tensor.shape()[0];
  auto copy = std::make_unique<GuardedTensor>(images * image + (images - 1) * gap, guard);
  for (int64_t n = 0; n < images; ++n)
    std::copy_n(tensor.floats() + n * image, image, copy->data() + n * (image + gap));
  return copy;
}

// By template: 0 where sums are plain, of integers.
double AllowedError(const Case& c) {
  if (c.error_factor() == 1) return 0;
  ConvWorkload plain = c.workload;
  plain.post = {};
  const auto magnitudes = [](Tensor tensor) {
    std::transform(tensor.floats(), tensor.floats() + tensor.size(), tensor.floats(),
                   [](float value) { return std::abs(value); });
    return tensor;
  };
  const Tensor sums =
      ReferenceConv(plain, magnitudes(c.data.input), magnitudes(c.data.weights), nullptr, nullptr);
  const float largest = *std::max_element(sums.floats(), sums.floats() + sums.size());
  constexpr double kPostOps = 2, kBiasAndResidual = 2;  // hard_swish has slope 1.5
  return kPostOps * c.error_factor() * RoundingBound(plain, largest + kBiasAndResidual);
}

void Check(const Case& c, size_t index, const EmulatedPrograms& programs) {
  SCOPED_TRACE(c.Text());
  const ConvWorkload& w = c.workload;
  TestRandom random(c.seed);
  const LayoutPair layouts = c.conv_template->Layouts(w, c.config);
  const int64_t gap = random.Integer(0, 1) * 32;
  const Guard guard = random.Integer(0, 1) == 0 ? Guard::kAfter : Guard::kBefore;
  auto source = Guarded(TransformGeneric(c.data.input, layouts.in), gap, guard);
  source->MakeReadOnly();
  const Tensor wanted = TransformGeneric(ReferenceConv(w, c.data.tensors()), layouts.out);
  auto sum = Guarded(w.post.sum ? TransformGeneric(*c.data.residual, layouts.out) : wanted, gap, guard);
  const int64_t image = BatchStride(wanted.shape(), layouts.out);
  GuardedTensor fresh(w.mb * image + (w.mb - 1) * gap, guard);
  GuardedTensor& target = w.post.sum && random.Integer(0, 1) == 0 ? *sum : fresh;

  const CudaProgram& program = c.program();
  const auto size = static_cast<int64_t>(program.weights.size());
  GuardedTensor weights(size, size % 4 == 0 ? Guard::kAfter : Guard::kBefore);
  std::copy(program.weights.begin(), program.weights.end(), weights.data());
  weights.MakeReadOnly();
  GuardedTensor scratch(RoundUp(program.scratch_bytes, 64) / kFloatBytes + 16);
  const InputView inputs[] = {source->input_view(BatchStride(w.input_shape(), layouts.in) + gap),
                              sum->input_view(image + gap)};
  programs.Run(index, {{inputs, w.post.sum ? 2U : 1U}, target.output_view(image + gap), scratch.data()},
               weights.data());

  const double allowed = AllowedError(c);
  for (int64_t n = 0; n < w.mb; ++n) {
    for (int64_t i = 0; i < image; ++i) {
      const float want = wanted.floats()[n * image + i], have = target[n * (image + gap) + i];
      ASSERT_NEAR(want, have, 4e-7 * std::abs(want) + allowed) << "image " << n << " offset " << i;
    }
    for (int64_t i = image; i < image + gap && n + 1 < w.mb; ++i)
      ASSERT_TRUE(std::isnan(target[n * (image + gap) + i])) << "wrote between images";
  }
  EXPECT_TRUE(target.SlackIntact());
}

class EmulatedConv : public testing::TestWithParam<const ConvTemplate*> {};

TEST_P(EmulatedConv, RandomWorkloadsAndConfigs) {
  constexpr int kTogether = 24;  // in one call of the compiler
  const int cases = Cases();
  int checked = 0;
  for (int first = 0; first < cases && !HasFatalFailure(); first += kTogether) {
    std::vector<Case> batch;
    for (int i = first; i < std::min(cases, first + kTogether); ++i) {
      Case c;
      c.conv_template = GetParam();
      c.seed = static_cast<uint64_t>(i) * 17 + 3;
      if (MakeCase(c)) batch.push_back(std::move(c));
    }
    std::vector<const CudaProgram*> programs;
    for (const Case& c : batch) programs.push_back(&c.program());
    const EmulatedPrograms emulated(programs);
    for (size_t i = 0; i < batch.size() && !HasFatalFailure(); ++i, ++checked) Check(batch[i], i, emulated);
  }
  EXPECT_GT(checked, cases * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Templates, EmulatedConv, testing::ValuesIn(ConvTemplates(kCudaDevice)),
                         [](const auto& info) { return std::string(info.param->Name()); });

}  // namespace
}  // namespace emulated_conv
}  // namespace tilesmith
