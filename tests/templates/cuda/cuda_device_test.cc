// The CUDA device on a fake driver: its ops against their references in every layout, memory, streams,
// timing, and what is compiled.
#include "templates/cuda_device/cuda_device.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "layouts/transform.h"
#include "ops/dense/attention.h"
#include "ops/dense/matmul.h"
#include "ops/dense/softmax.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/pool/pool.h"
#include "ops/reduce/normalization.h"
#include "ops/reduce/reduce.h"
#include "ops/resize/resize.h"
#include "templates/cuda_device/modules.h"
#include "tests/support/cuda/device_run.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace cuda_device_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct OpCase {
  std::string name;
  OpPtr op;
  std::vector<Shape> inputs;
  bool of_any_layout = false;
};

PoolWindow Window(PoolKind kind, bool ceil, bool include_pad) {
  return {.kind = kind,
          .kh = 3,
          .kw = 2,
          .sh = 2,
          .sw = 1,
          .dh = 1,
          .dw = 2,
          .top = 1,
          .left = 2,
          .bottom = 2,
          .right = 1,
          .ceil_mode = ceil,
          .count_include_pad = include_pad};
}

std::vector<OpCase> Cases() {
  const Shape image = {2, 6, 7, 5};
  const auto activation = [](ActivationKind kind, float alpha = 0, float beta = 0) {
    return std::make_shared<ActivationOp>(Activation{kind, alpha, beta});
  };
  const auto binary = [](BinaryKind kind) { return std::make_shared<BinaryOp>(kind); };
  std::vector<OpCase> cases = {
      {"max_pool", std::make_shared<PoolOp>(Window(PoolKind::kMax, true, false)), {image}},
      {"mean_pool", std::make_shared<PoolOp>(Window(PoolKind::kAverage, true, false)), {image}},
      {"mean_with_padding", std::make_shared<PoolOp>(Window(PoolKind::kAverage, true, true)), {image}},
      {"global_mean", std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {image}},
      {"global_max", std::make_shared<GlobalPoolOp>(PoolKind::kMax, false), {image}},
      {"clip", activation(ActivationKind::kClip, -0.2f, 0.3f), {image}},
      {"sigmoid", activation(ActivationKind::kSigmoid), {image}},
      {"scale",
       std::make_shared<ScaleShiftOp>(std::vector<float>{1, -2, 3, 0.5f, 0, 7},
                                      std::vector<float>{0, 1, -1, 2, 0.25f, 3},
                                      Activation{ActivationKind::kLeakyRelu, 0.1f, 0}),
       {image}},
      {"add", binary(BinaryKind::kAdd), {image, image}},
      {"subtract_channels", binary(BinaryKind::kSub), {{2, 6, 1, 1}, image}},
      {"multiply_plane", binary(BinaryKind::kMul), {image, {1, 1, 7, 5}}},
      {"divide_both", binary(BinaryKind::kDiv), {{1, 6, 7, 1}, {2, 6, 1, 5}}},
      {"min", binary(BinaryKind::kMin), {image, {2, 1, 1, 1}}},
      {"max", binary(BinaryKind::kMax), {image, image}},
      {"prelu", binary(BinaryKind::kPRelu), {image, {1, 6, 1, 1}}},
      {"concat", std::make_shared<ConcatOp>(1), {{2, 3, 4, 3}, {2, 8, 4, 3}, {2, 2, 4, 3}}},
      {"concat_of_rows", std::make_shared<ConcatOp>(2), {{2, 3, 4, 3}, {2, 3, 1, 3}}},
      {"concat_of_images", std::make_shared<ConcatOp>(0), {{2, 3, 4}, {1, 3, 4}, {3, 3, 4}}},
      {"lrn", std::make_shared<LrnOp>(LrnParameters{.size = 3}), {image}},
      {"transpose", std::make_shared<TransposeOp>(std::vector<int64_t>{2, 0, 3, 1}), {image}},
      {"transpose_of_five",
       std::make_shared<TransposeOp>(std::vector<int64_t>{0, 3, 2, 4, 1}),
       {{2, 2, 3, 2, 4}}},
      {"slice",
       std::make_shared<SliceOp>(std::vector<SliceRange>{{0, 1, 2, 1}, {1, 4, 0, -2}, {3, 1, 5, 2}}),
       {image}},
      {"pad",
       std::make_shared<PadOp>(PadMode::kConstant, std::vector<int64_t>{1, 0, 2, -1},
                               std::vector<int64_t>{0, 2, 1, 3}, 0.25f),
       {image}},
      {"mirror",
       std::make_shared<PadOp>(PadMode::kReflect, std::vector<int64_t>{0, 0, 3, 1},
                               std::vector<int64_t>{0, 0, 2, 4}),
       {image}},
      {"edge",
       std::make_shared<PadOp>(PadMode::kEdge, std::vector<int64_t>{0, 1, 2, 0},
                               std::vector<int64_t>{0, 0, 1, 3}),
       {image}},
      {"expand", std::make_shared<ExpandOp>(Shape{3, 2, 4, 5}), {{2, 1, 5}}},
      {"add_of_fewer_axes", binary(BinaryKind::kAdd), {{2, 3, 4, 5}, {4, 1}}},
      {"subtract_from_a_row", binary(BinaryKind::kSub), {{5}, {2, 3, 4, 5}}},
      {"multiply_volumes", binary(BinaryKind::kMul), {{2, 3, 1, 2, 5}, {2, 1, 4, 2, 5}}},
      {"softmax", std::make_shared<SoftmaxOp>(1, 1), {image}},
      {"log_softmax", std::make_shared<SoftmaxOp>(1, 2, true), {{3, 40, 30}}},
      {"softmax_of_images", std::make_shared<SoftmaxOp>(0, 0), {{3, 4}}},
      {"layer_norm",
       std::make_shared<NormalizationOp>("LayerNormalization",
                                         Normalization{.epsilon = 1e-5f,
                                                       .axes = {2},
                                                       .scale = std::vector<float>(70, 2),
                                                       .shift = std::vector<float>(70, 0.5f),
                                                       .by_element = true}),
       {{2, 5, 70}}},
      {"group_norm",
       std::make_shared<NormalizationOp>("GroupNormalization", Normalization{.spread = Spread::kDeviation,
                                                                             .epsilon = 1e-3f,
                                                                             .axes = {2, 3, 4},
                                                                             .groups = 3,
                                                                             .scale = {1, 2, 3, 4, 5, 6},
                                                                             .shift = {0, 1, 0, 1, 0, 1}}),
       {image}},
      {"rms_norm",
       std::make_shared<NormalizationOp>(
           "RMSNormalization",
           Normalization{.spread = Spread::kMeanSquare, .axes = {1}, .scale = {}, .shift = {}}),
       {{3, 300}}},
      {"resize",
       std::make_shared<ResizeOp>(ResizeParams{.mode = ResizeMode::kLinear,
                                               .coordinates = ResizeCoordinates::kHalfPixel,
                                               .input = image,
                                               .output = {2, 6, 11, 9},
                                               .scales = {1, 1, 11.0f / 7, 9.0f / 5},
                                               .begin = {},
                                               .end = {}}),
       {image}},
      {"enlarge",
       std::make_shared<ResizeOp>(ResizeParams{
           .input = image, .output = {2, 6, 14, 10}, .scales = {1, 1, 2, 2}, .begin = {}, .end = {}}),
       {image}},
      {"matmul", std::make_shared<MatMulOp>(MatMulParams{.scale = 0.5f}), {{2, 3, 70, 20}, {3, 20, 65}}},
      {"matmul_of_heads",
       std::make_shared<MatMulOp>(MatMulParams{.a = {.view = {2, 7, 3, 4}, .perm = {0, 2, 1, 3}},
                                               .b = {.view = {2, 9, 3, 4}, .perm = {0, 2, 3, 1}}}),
       {{2, 7, 12}, {2, 9, 12}}},
      {"attention",
       std::make_shared<AttentionOp>(AttentionParams{.q = {.view = {2, 7, 3, 4}, .perm = {0, 2, 1, 3}},
                                                     .k = {.view = {2, 9, 3, 4}, .perm = {0, 2, 1, 3}},
                                                     .v = {.view = {2, 9, 3, 5}, .perm = {0, 2, 1, 3}},
                                                     .out_perm = {0, 2, 1, 3},
                                                     .out_shape = {2, 7, 15},
                                                     .scale = 0.5f}),
       {{2, 7, 12}, {2, 9, 12}, {2, 9, 15}}},
      {"sequence", activation(ActivationKind::kRelu), {{3, 4, 5}}},
      {"volume", activation(ActivationKind::kTanh), {{2, 2, 3, 2, 2}}},
      {"scalar", activation(ActivationKind::kHardSwish), {{}}}};
  for (OpCase& c : cases) {
    const auto is = [&](auto... names) { return ((c.name == names) || ...); };
    c.of_any_layout = is("max_pool", "mean_pool", "global_mean", "global_max", "clip", "sigmoid", "scale",
                         "add", "subtract_channels", "multiply_plane", "prelu", "concat", "resize", "slice");
  }
  for (const ReduceKind kind :
       {ReduceKind::kMean, ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kProduct,
        ReduceKind::kL1, ReduceKind::kL2, ReduceKind::kSumSquare, ReduceKind::kLogSumExp}) {
    cases.push_back({"reduce", std::make_shared<ReduceOp>(kind, std::vector<int64_t>{1, 3}, true), {image}});
    cases.push_back(
        {"reduce_all", std::make_shared<ReduceOp>(kind, std::vector<int64_t>{0, 1}, false), {{2, 37}}});
  }
  for (const FunctionKind kind : {FunctionKind::kGelu, FunctionKind::kGeluTanh, FunctionKind::kErf,
                                  FunctionKind::kElu, FunctionKind::kSoftplus, FunctionKind::kMish,
                                  FunctionKind::kAbs, FunctionKind::kNeg, FunctionKind::kSelu})
    cases.push_back({"function", std::make_shared<FunctionOp>(Function{kind, 1.5f, 1.1f}), {image}});
  return cases;
}

void ExpectNear(const Tensor& got, const Tensor& wanted, const Layout& layout, double tolerance) {
  const Tensor laid_out = layout.is_nchw() ? wanted : TransformGeneric(wanted, layout);
  for (int64_t i = 0; i < laid_out.bytes() / int64_t{sizeof(float)}; ++i) {
    const float want = laid_out.floats()[i];
    if (std::isnan(want) && std::isnan(got.floats()[i])) continue;
    ASSERT_NEAR(got.floats()[i], want, tolerance * std::max(1.0f, std::abs(want))) << "at " << i;
  }
}

Tensor Filled(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, seed);
  return tensor;
}

TEST(CudaDevice, OpsDoWhatReferencesDoInEveryLayout) {
  const DevicePtr device = OpenFakeGpu();
  for (const OpCase& c : Cases()) {
    std::vector<Tensor> plain;
    std::vector<const Tensor*> pointers;
    for (const Shape& shape : c.inputs) plain.push_back(Filled(shape, plain.size() + 1));
    for (const Tensor& input : plain) pointers.push_back(&input);
    const Tensor wanted = c.op->Reference(pointers);
    int layouts = 0;
    for (const Layout& layout : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(4), Layout::Blocked(16)}) {
      if (!c.op->RunsIn(layout, c.inputs)) continue;
      SCOPED_TRACE(c.name + " " + layout.ToString());
      ++layouts;
      std::vector<Tensor> inputs;
      for (const Tensor& input : plain)
        inputs.push_back(layout.is_nchw() ? input : TransformGeneric(input, layout));
      const auto kernel = device->BuildOp(*c.op, {c.inputs, wanted.shape(), layout, device->target()});
      const bool padded = layout.PaddedChannels(6) != 6;  // nothing but NHWC is walked over besides NCHW
      const bool walked = c.name == "slice" || c.name == "function";
      EXPECT_EQ(device->RunsInProcess(*kernel), walked && padded);
      ExpectNear(RunThere(*device, *kernel, inputs, Tensor(wanted.shape(), layout)), wanted, layout, 3e-6);
    }
    EXPECT_GE(layouts, c.of_any_layout ? 4 : 1) << c.name;
  }
}

TEST(CudaDevice, TransformsAndCopies) {
  const DevicePtr device = OpenFakeGpu();
  const std::vector<Layout> layouts = {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(4),
                                       Layout::Blocked(16)};
  const Tensor plain = Filled({2, 7, 3, 5}, 1);
  for (const Layout& from : layouts) {
    const Tensor input = from.is_nchw() ? plain : TransformGeneric(plain, from);
    for (const Layout& to : layouts) {
      SCOPED_TRACE(from.ToString() + " " + to.ToString());
      const auto kernel = from == to ? device->BuildCopy(2, BatchBytes(plain.shape(), to))
                                     : device->BuildTransform(plain.shape(), from, to);
      EXPECT_FALSE(device->RunsInProcess(*kernel));
      std::vector<Tensor> inputs;
      inputs.push_back(input);
      ExpectNear(RunThere(*device, *kernel, inputs, Tensor(plain.shape(), to)), plain, to, 0);
    }
  }
  EXPECT_GT(device->TimeTransform({1, 4, 3, 3}, Layout::Nchw(), Layout::Nhwc()), 0);
}

TEST(CudaDevice, KeepsNansAsReferencesDo) {
  const DevicePtr device = OpenFakeGpu();
  std::vector<Tensor> inputs;
  inputs.push_back(Filled({1, 1, 2, 2}, 1));
  inputs.push_back(Filled({1, 1, 2, 2}, 2));
  inputs[0].floats()[1] = kNan;
  inputs[1].floats()[2] = kNan;
  for (const BinaryKind kind : {BinaryKind::kMin, BinaryKind::kMax}) {
    const BinaryOp op(kind);
    const auto kernel = device->BuildOp(
        op, {{inputs[0].shape(), inputs[1].shape()}, inputs[0].shape(), Layout::Nchw(), device->target()});
    const Tensor result = RunThere(*device, *kernel, inputs, Tensor(inputs[0].shape()));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(result.floats()[i]), i == 1 || i == 2) << i;
  }
}

// A graph is what runs again, and notices that its tensors are others.
TEST(CudaDevice, StreamsRunProgramsAsGraphs) {
  const DevicePtr device = OpenFakeGpu();
  const Shape shape = {1, 2, 2, 2};
  const ScaleShiftOp twice({2, 2}, {0, 1});
  const auto kernel = device->BuildOp(twice, {{shape}, shape, Layout::Nchw(), device->target()});
  const Tensor ones = [&] {
    Tensor tensor(shape);
    std::fill_n(tensor.floats(), tensor.size(), 1.0f);
    return tensor;
  }();
  const There a(*device, ones, 0), b(*device, ones, 0), c(*device, ones, 0);
  const auto launch = [&](const There& from, const There& to) {
    return Launch{
        .kernel = kernel.get(), .inputs = {{from.At(0), from.stride}}, .output = {to.At(0), to.stride}};
  };
  const auto stream = device->NewStream(nullptr);
  const auto last_of = [&](const There& there) {
    Tensor result(shape);
    device->Download(there.At(0), result.floats(), static_cast<size_t>(there.bytes));
    return result.floats()[7];
  };
  std::vector<Launch> program = {launch(a, b), launch(b, c)};
  for (int i = 0; i < 2; ++i) stream->Run(program, {});
  EXPECT_EQ(last_of(c), 7);  // 2 (2 * 1 + 1) + 1
  program = {launch(c, b), launch(b, a)};
  stream->Run(program, {});
  EXPECT_EQ(last_of(a), 31);
  std::vector<double> seconds(2);
  stream->Run(program, seconds);
  EXPECT_GT(seconds[0], 0);
  EXPECT_GT(seconds[1], 0);
  StopFlag stop = true;
  EXPECT_THROW(device->NewStream(&stop)->Run(program, {}), Error);
}

TEST(CudaDevice, TimesWarmAndCold) {
  const DevicePtr device = OpenFakeGpu();
  const Tensor input = Filled({1, 4, 3, 3}, 1);
  const auto kernel = device->BuildTransform(input.shape(), Layout::Nchw(), Layout::Nhwc());
  const There from(*device, input, 0), to(*device, input, 0);
  const InputView view = {from.At(0), from.stride};
  const KernelArgs args = {{&view, 1}, {to.At(0), to.stride}, nullptr};
  EXPECT_GT(device->Time(*kernel, args), 0);
  device->Evict({});
  EXPECT_GT(device->Time(*kernel, args), 0);
  EXPECT_EQ(device->target().device, kCudaDevice);
  EXPECT_EQ(device->target().compute, 80);
  EXPECT_FALSE(device->ReadsHostMemory());
}

// What is timed is the kernel that was given, also where one was before that is gone.
TEST(CudaDevice, TimesNoKernelThatIsGone) {
  const DevicePtr device = OpenFakeGpu();
  const Shape shape = {1, 2, 2, 2};
  const There from(*device, Filled(shape, 1), 0), to(*device, Filled(shape, 2), 0);
  const InputView view = {from.At(0), from.stride};
  for (int i = 0; i < 8; ++i) {
    const ScaleShiftOp zero({0, 0}, {static_cast<float>(i), static_cast<float>(i)});
    const auto kernel = device->BuildOp(zero, {{shape}, shape, Layout::Nchw(), device->target()});
    device->Time(*kernel, {{&view, 1}, {to.At(0), to.stride}, nullptr});
    Tensor result(shape);
    device->Download(to.At(0), result.floats(), static_cast<size_t>(to.bytes));
    EXPECT_EQ(result.floats()[3], i);
  }
}

TEST(CudaDevice, FreshMemoryIsZeroAndTooMuchIsAnError) {
  const DevicePtr device = OpenFakeGpu();
  std::vector<char> bytes(100, 1);
  const DeviceMemory memory = device->Allocate(bytes.size());
  device->Download(memory.data.get(), bytes.data(), bytes.size());
  EXPECT_THAT(bytes, testing::Each(0));
  const size_t much = size_t{1} << 40;
  try {
    device->Allocate(much);
    ADD_FAILURE() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(much)));
  }
}

TEST(CudaDevice, TellsWhatDoesNotCompile) {
  OpenFakeGpu();
  try {
    cuda::CompiledModule(cuda::OpenContext(), "no program", "my kernel tile_f=3");
    ADD_FAILURE() << "compiled";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("my kernel tile_f=3"));
    EXPECT_THAT(error.what(), testing::HasSubstr("does not name a type"));
  }
}

TEST(CudaDevice, IsOnlyTheGpuThatItWasAskedFor) {
  OpenFakeGpu();
  Target other = DetectTarget(kCudaDevice);
  other.model = "Another GPU";
  try {
    OpenDevice(other, 1);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Another GPU"));
  }
}

}  // namespace
}  // namespace cuda_device_test
}  // namespace tilesmith
