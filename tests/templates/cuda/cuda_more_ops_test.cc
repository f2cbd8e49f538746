// The CUDA device on a fake driver: tensors that are no floats, choices by indices, and attention with masks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "layouts/transform.h"
#include "ops/dense/attention.h"
#include "ops/elementwise/activations.h"
#include "ops/elementwise/batch_norm.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/functions.h"
#include "ops/movement/concat.h"
#include "ops/movement/indexing.h"
#include "ops/movement/pad.h"
#include "ops/movement/transpose.h"
#include "ops/pool/pool.h"
#include "ops/quantize/quantized_data.h"
#include "ops/reduce/normalization.h"
#include "ops/resize/resize.h"
#include "tests/support/cuda/device_run.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace cuda_more_ops {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor Filled(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  FillUniform({tensor.floats(), static_cast<size_t>(tensor.size())}, seed);
  return tensor;
}

std::vector<const Tensor*> PointersTo(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

// What an op of floats computes on the device, in plain order, held to its reference.
void ExpectRight(const Device& device, const Op& op, const std::vector<Tensor>& inputs, double tolerance) {
  const Tensor wanted = op.Reference(PointersTo(inputs));
  KernelRequest request{{}, wanted.shape(), Layout::Nchw(), device.target()};
  for (const Tensor& input : inputs) {
    request.inputs.push_back(input.shape());
    request.input_types.push_back(input.type());
  }
  const auto kernel = device.BuildOp(op, request);
  EXPECT_FALSE(device.RunsInProcess(*kernel));
  const Tensor got = RunThere(device, *kernel, inputs, Tensor(wanted.shape()));
  for (int64_t i = 0; i < wanted.size(); ++i) {
    const float want = wanted.floats()[i];
    if (std::isnan(want) && std::isnan(got.floats()[i])) continue;
    ASSERT_NEAR(got.floats()[i], want, tolerance * std::max(1.0f, std::abs(want))) << "at " << i;
  }
}

// As floats, rounded where they are stored.
TEST(CudaBf16, OpsDoWhatTheyDoOfFloats) {
  const DevicePtr device = OpenFakeGpu();
  const Shape image = {2, 6, 7, 5};
  const PoolWindow window{
      .kind = PoolKind::kAverage, .kh = 3, .kw = 2, .sh = 2, .sw = 1, .top = 1, .left = 1, .bottom = 1};
  PoolWindow largest = window;
  largest.kind = PoolKind::kMax;
  ResizeParams twice;
  twice.mode = ResizeMode::kLinear, twice.scales = {1, 1, 2, 2};
  twice.input = image, twice.output = {2, 6, 14, 10};
  const std::pair<OpPtr, std::vector<Shape>> cases[] = {
      {std::make_shared<PoolOp>(window), {image}},
      {std::make_shared<PoolOp>(largest), {image}},
      {std::make_shared<GlobalPoolOp>(PoolKind::kAverage), {image}},
      {std::make_shared<ConcatOp>(1), {{2, 3, 4, 3}, {2, 8, 4, 3}, {2, 2, 4, 3}}},
      {std::make_shared<ActivationOp>(Activation{ActivationKind::kSilu}), {image}},
      {std::make_shared<ScaleShiftOp>(std::vector<float>{1, 2, 3, 4, 5, 6}, std::vector<float>(6, 0.5f),
                                      Activation{ActivationKind::kRelu}),
       {image}},
      {std::make_shared<BinaryOp>(BinaryKind::kAdd), {image, image}},
      {std::make_shared<BinaryOp>(BinaryKind::kMul), {image, {2, 6, 1, 1}}},
      {std::make_shared<FunctionOp>(Function{FunctionKind::kGelu}), {image}},
      {std::make_shared<ResizeOp>(twice), {image}},
      {std::make_shared<SliceOp>(std::vector<SliceRange>{{1, 1, 5, 2}, {3, 4, 0, -1}}), {image}},
      {std::make_shared<TransposeOp>(std::vector<int64_t>{0, 2, 3, 1}), {image}}};
  for (const auto& [op, shapes] : cases) {
    std::vector<Tensor> rounded;
    for (const Shape& shape : shapes)
      rounded.push_back(
          TransformGeneric(TransformGeneric(Filled(shape, rounded.size() + 1), Layout::Nchw(DataType::kBf16)),
                           Layout::Nchw()));
    const Tensor wanted = op->Reference(PointersTo(rounded));
    for (const Layout& order : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(4)}) {
      if (!op->RunsIn(order, shapes)) continue;
      const Layout layout = order.WithType(DataType::kBf16);
      SCOPED_TRACE(fmt::format("{} {}", op->Type(), layout.ToString()));
      const auto kernel = device->BuildOp(*op, {shapes, wanted.shape(), layout, device->target()});
      const bool walked = op->Type() == "Slice" || op->Type() == "Gelu";
      const bool walked_in_blocks = walked && order == Layout::Blocked(4);
      EXPECT_EQ(device->RunsInProcess(*kernel), walked_in_blocks);
      std::vector<Tensor> inputs;
      for (const Tensor& input : rounded) inputs.push_back(TransformGeneric(input, layout));
      const Tensor got = TransformGeneric(RunThere(*device, *kernel, inputs, Tensor(wanted.shape(), layout)),
                                          Layout::Nchw());
      for (int64_t i = 0; i < wanted.size(); ++i) {
        const float want = wanted.floats()[i];
        ASSERT_NEAR(got.floats()[i], want, 0x1p-8f * std::abs(want) + 1e-7) << "at " << i;
      }
    }
  }
}

TEST(CudaBf16, TransformsConvert) {
  const DevicePtr device = OpenFakeGpu();
  Tensor plain = Filled({2, 7, 3, 5}, 1);
  plain.floats()[3] = kNan, plain.floats()[4] = -kInfinity, plain.floats()[5] = 0x1.01p0f;  // a tie
  std::vector<Layout> layouts;
  for (const DataType type : {DataType::kF32, DataType::kBf16})
    for (const Layout& order : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(4)})
      layouts.push_back(order.WithType(type));
  for (const Layout& from : layouts) {
    const Tensor input = TransformGeneric(plain, from);
    for (const Layout& to : layouts) {
      if (from == to) continue;
      SCOPED_TRACE(from.ToString() + " " + to.ToString());
      const auto kernel = device->BuildTransform(plain.shape(), from, to);
      EXPECT_FALSE(device->RunsInProcess(*kernel));
      std::vector<Tensor> inputs;
      inputs.push_back(input);
      const Tensor got = RunThere(*device, *kernel, inputs, Tensor(plain.shape(), to));
      const Tensor wanted = TransformGeneric(input, to);
      EXPECT_TRUE(std::equal(got.raw(), got.raw() + got.bytes(), wanted.raw()));
    }
  }
}

TEST(CudaBytes, ChangeTheirLayout) {
  const DevicePtr device = OpenFakeGpu();
  for (const DataType type : {DataType::kU8, DataType::kI8}) {
    Tensor plain({2, 7, 3, 5}, Layout::Nchw(type));
    for (int64_t i = 0; i < plain.size(); ++i) plain.raw()[i] = static_cast<std::byte>(i * 7);
    const Layout to = Layout::Nhwc(type);
    const auto kernel = device->BuildTransform(plain.shape(), plain.layout(), to);
    EXPECT_FALSE(device->RunsInProcess(*kernel));
    const Tensor wanted = TransformGeneric(plain, to);
    std::vector<Tensor> inputs;
    inputs.push_back(std::move(plain));
    const Tensor got = RunThere(*device, *kernel, inputs, Tensor(wanted.shape(), to));
    EXPECT_TRUE(std::equal(got.raw(), got.raw() + got.bytes(), wanted.raw()));
  }
}

// Untuned convolutions run on the device, too, where a template has them; the others in the process.
TEST(CudaBytes, ConvolutionsAreKernels) {
  const DevicePtr device = OpenFakeGpu();
  for (const char* text :
       {"mb2ic8ih5oc12kh3ph1+bias+sum:u8:i8:u8", "ic8ih5oc9kh1:i8:i8:f32", "ic8ih5oc12kh3ph1:u8:u8:u8"}) {
    const ConvWorkload w = ParseWorkload(text);
    const QuantizedData data = MakeQuantizedData(w, 1);
    const Tensor wanted = TransformGeneric(data.op->Reference(data.inputs()), Layout::Nhwc(w.output_type()));
    KernelRequest request{{}, wanted.shape(), wanted.layout(), device->target()};
    std::vector<Tensor> inputs;
    for (const Tensor* input : data.inputs()) {
      request.inputs.push_back(input->shape());
      request.input_types.push_back(input->type());
      inputs.push_back(TransformGeneric(*input, Layout::Nhwc(input->type())));
    }
    SCOPED_TRACE(text);
    const auto kernel = device->BuildOp(*data.op, request);
    EXPECT_EQ(device->RunsInProcess(*kernel), w.bytes->weights == DataType::kU8);
    const Tensor got = RunThere(*device, *kernel, inputs, Tensor(wanted.shape(), wanted.layout()));
    EXPECT_TRUE(std::equal(got.raw(), got.raw() + got.bytes(), wanted.raw()));
  }
}

TEST(CudaGather, ChoosesAlongEveryAxis) {
  const DevicePtr device = OpenFakeGpu();
  const std::pair<Shape, Shape> shapes[] = {{{5, 4}, {2, 3}}, {{2, 5, 3}, {2, 2}}, {{3, 2, 5}, {4}},
                                            {{5}, {}},        {{2, 3, 5, 2}, {1}}, {{1, 5}, {6}}};
  uint64_t seed = 0;
  for (const DataType type : {DataType::kI64, DataType::kI32}) {
    for (const auto& [data, chosen] : shapes) {
      for (int64_t axis = 0; axis < std::ssize(data); ++axis) {
        SCOPED_TRACE(fmt::format("{} by {} along {}", ShapeToString(data), ShapeToString(chosen), axis));
        TestRandom random(++seed);
        const int64_t size = data[static_cast<size_t>(axis)];
        Tensor indices(chosen, Layout::Nchw(type));
        for (int64_t i = 0; i < indices.size(); ++i) {
          const int64_t index = random.Integer(-size, size - 1);
          if (type == DataType::kI64) indices.data<int64_t>()[i] = index;
          if (type == DataType::kI32) indices.data<int32_t>()[i] = static_cast<int32_t>(index);
        }
        std::vector<Tensor> inputs;
        inputs.push_back(Filled(data, seed));
        inputs.push_back(std::move(indices));
        ExpectRight(*device, GatherOp(axis), inputs, 0);
      }
    }
  }
}

// The process's cores refuse it; here nobody can.
TEST(CudaGather, OutsideIsNan) {
  const DevicePtr device = OpenFakeGpu();
  const Shape data = {3, 2}, chosen = {2};
  const auto kernel = device->BuildOp(
      GatherOp(0),
      {{data, chosen}, {2, 2}, Layout::Nchw(), device->target(), {DataType::kF32, DataType::kI64}});
  std::vector<Tensor> inputs;
  inputs.push_back(Filled(data, 1));
  inputs.emplace_back(chosen, Layout::Nchw(DataType::kI64));
  inputs[1].data<int64_t>()[0] = 3, inputs[1].data<int64_t>()[1] = -3;
  const Tensor got = RunThere(*device, *kernel, inputs, Tensor({2, 2}));
  EXPECT_TRUE(std::isnan(got.floats()[0]) && std::isnan(got.floats()[1]));
  EXPECT_EQ(got.floats()[2], inputs[0].floats()[0]);
}

TEST(CudaLrn, DoesWhatItsReferenceDoes) {
  const DevicePtr device = OpenFakeGpu();
  for (const LrnParameters& parameters :
       {LrnParameters{.size = 5, .alpha = 1e-1, .beta = 0.75, .bias = 2}, LrnParameters{.size = 4},
        LrnParameters{.size = 1, .alpha = 2}, LrnParameters{.size = 40, .alpha = 1, .beta = 0.5}}) {
    for (const Shape& shape : {Shape{2, 9, 3, 5}, Shape{3, 2}, Shape{2, 7, 2, 2, 3}}) {
      std::vector<Tensor> inputs;
      inputs.push_back(Filled(shape, 1));
      ExpectRight(*device, LrnOp(parameters), inputs, 1e-6);
    }
  }
}

// Heads side by side, as in a transformer, with masks of every shape that broadcasts, and behind a diagonal.
TEST(CudaAttention, WithMasks) {
  const DevicePtr device = OpenFakeGpu();
  AttentionParams plain{.q = {.view = {2, 7, 3, 4}, .perm = {0, 2, 1, 3}},
                        .k = {.view = {2, 9, 3, 4}, .perm = {0, 2, 1, 3}},
                        .v = {.view = {2, 9, 3, 5}, .perm = {0, 2, 1, 3}},
                        .out_perm = {0, 2, 1, 3},
                        .out_shape = {2, 7, 15},
                        .scale = 0.5f};
  const auto inputs = [](const Shape& mask) {
    std::vector<Tensor> tensors;
    for (const Shape& shape : {Shape{2, 7, 12}, Shape{2, 9, 12}, Shape{2, 9, 15}, mask})
      if (!shape.empty()) tensors.push_back(Filled(shape, tensors.size() + 1));
    return tensors;
  };
  for (const Shape& mask : {Shape{2, 3, 7, 9}, Shape{2, 1, 1, 9}, Shape{1, 1, 7, 9}, Shape{7, 9},
                            Shape{2, 1, 7, 1}, Shape{3, 1, 9}}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(ShapeToString(mask) + (causal ? " causal" : ""));
      AttentionParams params = plain;
      params.masked = true;
      params.causal = causal;
      std::vector<Tensor> tensors = inputs(mask);
      tensors[3].floats()[tensors[3].size() - 1] = -kInfinity;
      ExpectRight(*device, AttentionOp(params), tensors, 1e-5);
    }
  }
  plain.causal = true;
  ExpectRight(*device, AttentionOp(plain), inputs({}), 1e-5);
}

}  // namespace
}  // namespace cuda_more_ops
}  // namespace tilesmith
