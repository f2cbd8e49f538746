// The CUDA templates of bf16 and of bytes against the references, their kernels compiled by g++ and emulated:
// random workloads and configs, in guarded memory, outputs NaN beforehand. Of bytes, and of small integers in
// bf16, results must be exact; of other numbers within their bounds. TILESMITH_CUDA_CASES=N makes it N cases
// each.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "layouts/transform.h"
#include "ops/conv/conv.h"
#include "templates/base/conv_error.h"
#include "templates/base/workload_data.h"
#include "templates/cuda/program.h"
#include "templates/cuda_gemm/config.h"
#include "tests/support/cuda/cuda_targets.h"
#include "tests/support/cuda/emulated_programs.h"
#include "tests/support/guarded_images.h"
#include "tests/support/random.h"
#include "tests/support/random_config.h"
#include "tests/support/random_workload.h"

namespace tilesmith {
namespace emulated_types {
namespace {

const ConvTemplate& Bf16() { return CudaTensorBf16Template(); }
const ConvTemplate& Int8() { return CudaTensorInt8Template(); }

enum class Numbers { kIntegers, kReals, kBytes };

struct Case {
  const ConvTemplate* conv_template = nullptr;
  ConvWorkload workload;
  Config config;
  Target target;
  Numbers numbers = Numbers::kIntegers;
  uint64_t seed = 0;
  WorkloadData data;
  std::unique_ptr<ConvKernel> kernel;

  LayoutPair layouts() const { return conv_template->Layouts(workload, config); }
  const CudaProgram& program() const { return dynamic_cast<const CudaConv&>(*kernel).program(); }
  std::string Text() const {
    return fmt::format("{} {} {} compute {} seed {}", conv_template->Name(), WorkloadToString(workload),
                       config.ToString(), target.compute, seed);
  }
};

int Cases() { return CaseCount("TILESMITH_CUDA_CASES", 36); }

ConvWorkload DrawWorkload(Numbers numbers, TestRandom& random) {
  ConvWorkload w = RandomWorkload(random);
  if (numbers != Numbers::kBytes) return w;
  // Channels that make words, of groups of whole tiles or not.
  const int64_t g = random.Integer(1, 2);
  w.g = g, w.ic = g * 4 * random.Integer(1, 12), w.oc = g * random.Integer(8, 40);
  const auto any = [&] { return random.Integer(0, 1) == 0 ? DataType::kU8 : DataType::kI8; };
  w.post.activation = {};
  const bool real = !w.post.sum && random.Integer(0, 3) == 0;
  w.bytes = {any(), DataType::kI8, real ? DataType::kF32 : any()};
  return w;
}

bool IsValid(const ConvWorkload& w) {
  constexpr double kMaxFlops = 4e6;
  try {
    ValidateWorkload(w);
    return w.flops() <= kMaxFlops && w.ic / w.g * w.kh * w.kw <= 1200;
  } catch (const Error&) {
    return false;
  }
}

std::optional<Case> MakeCase(Numbers numbers, uint64_t seed) {
  constexpr int kMaxTries = 4000;
  TestRandom random(seed);
  Case c;
  c.conv_template = numbers == Numbers::kBytes ? &Int8() : &Bf16();
  c.numbers = numbers;
  c.seed = seed;
  c.target = CudaTargetForTests(seed % 2 == 0 ? 80 : 90);
  bool found = false;
  for (int i = 0; i < kMaxTries && !found; ++i) {
    c.workload = DrawWorkload(numbers, random);
    found = IsValid(c.workload) && c.conv_template->Supports(c.workload, c.target).ok;
  }
  if (!found) return std::nullopt;
  const ConfigSpace space = c.conv_template->Space(c.workload, c.target);
  c.config = c.conv_template->Default(c.workload, c.target);
  EXPECT_EQ(space.WhyInvalid(c.config), "") << c.Text();
  if (seed % 8 != 0) c.config = RandomValidConfig(space, random, 20000).value_or(c.config);
  c.data = MakeWorkloadData(c.workload, seed, [&](Tensor& tensor) {
    const std::span<float> values(tensor.floats(), static_cast<size_t>(tensor.size()));
    numbers == Numbers::kIntegers ? FillIntegers(values, ++seed) : FillUniform(values, ++seed);
  });
  c.kernel = c.conv_template->Build(c.workload, c.config, c.target, c.data.operands().weights);
  return c;
}

// What a case computes, in its output's layout, padding included.
Tensor Compute(const Case& c, size_t index, const EmulatedPrograms& programs) {
  const ConvWorkload& w = c.workload;
  TestRandom random(c.seed);
  const LayoutPair layouts = c.layouts();
  const WorkloadOperands operands = c.data.operands();
  const int64_t gap = random.Integer(0, 1) * 128;
  const Guard guard = random.Integer(0, 1) == 0 ? Guard::kAfter : Guard::kBefore;
  GuardedImages source(w.input_shape(), layouts.in, gap, guard);
  source.Fill(TransformGeneric(*operands.input, layouts.in));
  source.MakeReadOnly();
  GuardedImages sum(w.output_shape(), layouts.out, gap, guard),
      fresh(w.output_shape(), layouts.out, gap, guard);
  if (operands.residual != nullptr) sum.Fill(TransformGeneric(*operands.residual, layouts.out));
  GuardedImages& target = operands.residual != nullptr && random.Integer(0, 1) == 0 ? sum : fresh;

  const CudaProgram& program = c.program();
  const auto size = static_cast<int64_t>(program.weights.size());
  GuardedTensor weights(size, size % 4 == 0 ? Guard::kAfter : Guard::kBefore);
  std::copy(program.weights.begin(), program.weights.end(), weights.data());
  weights.MakeReadOnly();
  GuardedTensor scratch(RoundUp(program.scratch_bytes, 64) / kFloatBytes + 16);
  const InputView inputs[] = {source.input(), sum.input()};
  programs.Run(index, {{inputs, operands.residual != nullptr ? 2U : 1U}, target.output(), scratch.data()},
               weights.data());
  EXPECT_TRUE(target.GapsIntact()) << "wrote outside the images";
  Tensor got(w.output_shape(), layouts.out);
  target.ReadInto(got);
  return got;
}

void ExpectSameBytes(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.bytes(), wanted.bytes());
  const auto differ = std::mismatch(got.raw(), got.raw() + got.bytes(), wanted.raw());
  EXPECT_EQ(differ.first - got.raw(), got.bytes()) << "the first byte that is wrong";
}

// Sums of integers are exact, and bf16 holds these.
void CheckIntegers(const Case& c, const Tensor& got) {
  const Layout floats = got.layout().WithType(DataType::kF32);
  const Tensor exact = TransformGeneric(ReferenceConv(c.workload, c.data.floats.tensors()), floats);
  const Tensor wanted = TransformGeneric(TransformGeneric(exact, got.layout()), floats);
  const Tensor have = TransformGeneric(got, floats);
  const ActivationKind kind = c.workload.post.activation.kind;
  const bool rounds = kind == ActivationKind::kHardSwish || kind == ActivationKind::kHardSigmoid;
  const float step = got.type() == DataType::kBf16 ? 0x1p-7f : 4e-7f;
  for (int64_t i = 0; i < exact.padded_size(); ++i) {
    const float want = wanted.floats()[i];
    ASSERT_NEAR(want, have.floats()[i], rounds ? step * std::abs(want) : 0) << "offset " << i;
  }
}

// Each output within its own bound; the largest share of it that an error had.
double CheckReals(const Case& c, const Tensor& got) {
  const ConvWorkload& w = c.workload;
  const Tensor plain = TransformGeneric(got, Layout::Nchw());
  const TypeRounding rounding = TypeRoundingOf(*c.conv_template, w, c.layouts());
  const Dims4 dims = ToDims4(w.output_shape());
  TestRandom random(c.seed);
  double largest = 0;
  for (int i = 0; i < 60; ++i) {
    const Dims4 at = {random.Integer(0, dims.n - 1), random.Integer(0, dims.c - 1),
                      random.Integer(0, dims.h - 1), random.Integer(0, dims.w - 1)};
    const ConvSample sample = ReferenceConvAt(w, c.data.floats.tensors(), at);
    constexpr double kPostOps = 2;
    const double floats =
        kPostOps * c.conv_template->ErrorFactor(w, c.config) * RoundingBound(w, sample.magnitude);
    const double bound = TypedBound(rounding, floats, sample.magnitude, sample.value) + 1e-30;
    const double error = std::abs(plain.floats()[ElementOffset(dims, Layout::Nchw(), at)] - sample.value);
    EXPECT_LE(error, bound);
    largest = std::max(largest, error / bound);
  }
  return largest;
}

std::string NameOf(Numbers numbers) {
  return numbers == Numbers::kBytes ? "bytes" : numbers == Numbers::kReals ? "bf16_reals" : "bf16_integers";
}

class EmulatedTypes : public testing::TestWithParam<Numbers> {};

TEST_P(EmulatedTypes, RandomWorkloadsAndConfigs) {
  constexpr int kTogether = 36;  // in one call of the compiler
  const int cases = Cases();
  int checked = 0;
  double largest = 0;
  for (int first = 0; first < cases && !HasFatalFailure(); first += kTogether) {
    std::vector<Case> batch;
    for (int i = first; i < std::min(cases, first + kTogether); ++i)
      if (auto c = MakeCase(GetParam(), static_cast<uint64_t>(i) * 13 + 5)) batch.push_back(*std::move(c));
    std::vector<const CudaProgram*> programs;
    for (const Case& c : batch) programs.push_back(&c.program());
    const EmulatedPrograms emulated(programs);
    for (size_t i = 0; i < batch.size() && !HasFailure(); ++i, ++checked) {
      const Case& c = batch[i];
      SCOPED_TRACE(c.Text());
      const Tensor got = Compute(c, i, emulated);
      if (c.numbers == Numbers::kIntegers) CheckIntegers(c, got);
      if (c.numbers == Numbers::kReals) largest = std::max(largest, CheckReals(c, got));
      if (c.numbers == Numbers::kBytes)
        ExpectSameBytes(got,
                        TransformGeneric(c.data.bytes.op->Reference(c.data.bytes.inputs()), got.layout()));
    }
  }
  EXPECT_GT(checked, cases * 9 / 10);
  if (GetParam() == Numbers::kReals) {
    EXPECT_GT(largest, 0.05) << "the bound is idle";
  }
}

INSTANTIATE_TEST_SUITE_P(Numbers, EmulatedTypes,
                         testing::Values(Numbers::kIntegers, Numbers::kReals, Numbers::kBytes),
                         [](const auto& info) { return NameOf(info.param); });

// Kernels with a fault in them are found: operands of a lane exchanged, a product that nobody waits for,
// padding that is zero where it must be the zero point, a half of a word too far.
TEST(TypedCudaTemplates, FaultsInKernelsAreFound) {
  const std::vector<std::array<std::string, 3>> faults = {
      {"", "lane_row() + h % 2 * 8, column = k + lane_column() + h / 2 * 4",
       "lane_row() + h / 2 * 8, column = k + lane_column() + h % 2 * 4"},
      {"", "ts_wait<STAGES - 2>();", ""},
      {"", "__syncthreads();", ""},
      {"bytes", "to[i] = own.nothing;", "to[i] = 0;"},
      {"bytes", "rintf(", "("},
      {"bf16", "ts_bf16_pair(at(2 * word), at(2 * word + 1))",
       "ts_bf16_pair(at(2 * word + 1), at(2 * word))"}};
  for (const auto& [kind, right, wrong] : faults) {
    for (const bool bytes : {false, true}) {
      if (kind == (bytes ? "bf16" : "bytes")) continue;
      SCOPED_TRACE(fmt::format("{} -> {}, {}", right, wrong, bytes ? "bytes" : "bf16"));
      Case c;
      c.conv_template = bytes ? &Int8() : &Bf16();
      c.workload = ParseWorkload(bytes ? "ic32ih5oc16kh3ph1:u8:i8:u8" : "ic32ih5oc16kh3ph1");
      c.target = CudaTargetForTests(80);
      c.config = c.conv_template->Default(c.workload, c.target);
      if (kind == "bf16") c.config.Set("in_type", static_cast<int64_t>(DataType::kF32));
      c.config.Set("tile_f", 16), c.config.Set("tile_x", 32), c.config.Set("split_k", 1);
      c.config.Set("part_f", 16), c.config.Set("part_x", 16);
      c.data = MakeWorkloadData(c.workload, 1, [](Tensor& tensor) {
        FillIntegers({tensor.floats(), static_cast<size_t>(tensor.size())}, 1);
      });
      const auto built = c.conv_template->Build(c.workload, c.config, c.target, c.data.operands().weights);
      CudaProgram program = dynamic_cast<const CudaConv&>(*built).program();
      size_t at = program.text.find(right);
      ASSERT_NE(at, std::string::npos);
      for (; at != std::string::npos; at = program.text.find(right, at + wrong.size()))
        program.text.replace(at, right.size(), wrong);
      c.kernel = std::make_unique<CudaConv>(std::move(program));
      const Tensor got = Compute(c, 0, EmulatedPrograms({&c.program()}));
      const Tensor reference = bytes ? c.data.bytes.op->Reference(c.data.bytes.inputs())
                                     : ReferenceConv(c.workload, c.data.floats.tensors());
      const Tensor wanted = TransformGeneric(reference, got.layout());
      EXPECT_FALSE(std::equal(got.raw(), got.raw() + got.bytes(), wanted.raw()));
    }
  }
}

TEST(TypedCudaTemplates, AreForGpusOnly) {
  using testing::HasSubstr;
  const Target gpu = CudaTargetForTests(80);
  const ConvWorkload floats = ParseWorkload("ic64ih14oc64kh3ph1"),
                     bytes = ParseWorkload("ic64ih14oc64kh3ph1:u8:i8:u8");
  for (const ConvTemplate* one : {&Bf16(), &Int8()}) {
    EXPECT_EQ(KnownConvTemplate(one->Name()), one);
    EXPECT_FALSE(one->Supports(one == &Bf16() ? floats : bytes, Target()).ok);
  }
  EXPECT_EQ(Bf16().FactorType(), DataType::kBf16);
  EXPECT_THAT(ConvTemplatesFor(gpu, bytes), testing::ElementsAre(&Int8()));
  EXPECT_THAT(Int8().Supports(ParseWorkload("ic64ih14oc64kh3ph1:u8:u8:u8"), gpu).reason, HasSubstr("signed"));
  EXPECT_THAT(Int8().Supports(ParseWorkload("ic3ih14oc64kh3ph1:u8:i8:u8"), gpu).reason,
              HasSubstr("3 channels"));
  // Three channels make no pair; as floats they are read one by one.
  const ConvWorkload image = ParseWorkload("ic3ih14oc64kh3ph1");
  ASSERT_TRUE(Bf16().Supports(image, gpu).ok);
  Config config = Bf16().Default(image, gpu);
  EXPECT_EQ(Bf16().Layouts(image, config), (LayoutPair{Layout::Nchw(), Layout::Nhwc(DataType::kBf16)}));
  config.Set("in_type", static_cast<int64_t>(DataType::kBf16));
  EXPECT_THAT(Bf16().Space(image, gpu).WhyInvalid(config), HasSubstr("no word"));
}

}  // namespace
}  // namespace emulated_types
}  // namespace tilesmith
