// The kernels that cut, shuffle and resize images, against their op's Reference.
#include "ops/movement/depth_to_space.h"
#include "ops/movement/indexing.h"
#include "ops/resize/resize.h"
#include "ops/sampling/grid_sample.h"
#include "tests/ops/kernel_check.h"

namespace tilesmith {
namespace {

std::shared_ptr<const SliceOp> Slice(std::vector<SliceRange> ranges) {
  return std::make_shared<SliceOp>(std::move(ranges));
}

TEST(ImageKernels, Slice) {
  constexpr int64_t kEnd = INT64_MAX;
  ForEachChannelCount([&](int64_t n, int64_t c) {
    const Shape shape{n, c, 6, 7};
    Check({Slice({{2, 0, kEnd, 2}, {3, 1, kEnd, 2}}), {shape}});
    Check({Slice({{2, -1, INT64_MIN, -1}, {3, 5, 0, -2}}), {shape}});
    Check({Slice({{3, 2, 6, 1}}), {shape}});
    Check({Slice({{1, 0, 5, 1}}), {shape}});
    Check({Slice({{1, c / 2, kEnd, 1}}), {shape}});
    Check({Slice({{1, -1, INT64_MIN, -3}, {0, n - 1, kEnd, kEnd}}), {shape}});
    Check({Slice({{1, 8, 24, 1}, {2, 3, 4, INT64_MAX}}), {{n, c + 31, 4, 5}}});
  });
  Check({Slice({{0, 0, kEnd, 2}, {1, 1, 6, 2}}), {{3, 7}}});
  Check({Slice({{0, 1, 3, 1}}), {{4}}});
  for (const int64_t first : {0, 1, 3}) {
    Check({Slice({{2, first, kEnd, 1}}), {{2, 300, 5}}});
    Check({Slice({{3, first, 4, 1}, {0, 1, 2, 1}}), {{2, 3, 4, 5}}});
  }
  Check({Slice({{2, 1, 1, 1}}), {{1, 7, 3}}});
  Check({Slice({{4, 0, kEnd, 2}, {1, 1, 2, 1}}), {{2, 3, 2, 2, 5}}});
  ExpectRunsEverywhere(*Slice({{1, 0, 5, 1}}), {{1, 9, 3, 3}});
  EXPECT_FALSE(Slice({{1, 0, 1, 1}})->RunsIn(Layout::Nhwc(), std::vector<Shape>{{2, 3, 2, 2, 5}}));
}

// Most places lie outside: coordinates reach from -4 to 4.
TEST(ImageKernels, GridSample) {
  for (const SamplePadding padding :
       {SamplePadding::kZeros, SamplePadding::kBorder, SamplePadding::kReflection}) {
    for (const bool align_corners : {false, true}) {
      const auto op = std::make_shared<GridSampleOp>(SampleMode::kLinear, padding, align_corners);
      for (const int64_t channels : {1, 3, 17}) {
        Check({op, {{2, channels, 5, 7}, {2, 9, 17, 2}}, 4 * kUlp});
        Check({op, {{1, channels, 1, 4}, {1, 1, 3, 2}}, 4 * kUlp});
      }
      Check({op, {{3, 2, 6, 1}, {3, 70, 71, 2}}, 4 * kUlp, false, 11});
    }
  }
}

TEST(ImageKernels, DepthToSpace) {
  for (const DepthOrder order : {DepthOrder::kDcr, DepthOrder::kCrd}) {
    const DepthToSpaceParams cases[] = {
        {.bh = 2, .bw = 2, .order = order},
        {.bh = 1, .bw = 3, .order = order},
        {.bh = 3, .bw = 1, .order = order},
        {.bh = 2, .bw = 3, .order = order, .top = 1, .left = 2, .bottom = 1, .right = 0},
        {.bh = 3, .bw = 2, .order = order, .top = 4, .left = 0, .bottom = 5, .right = 3},
        {.bh = 2, .bw = 2, .order = order, .top = 0, .left = 5, .bottom = 0, .right = 4},
    };
    for (const DepthToSpaceParams& params : cases) {
      const auto op = std::make_shared<DepthToSpaceOp>(params);
      ForEachChannelCount([&](int64_t n, int64_t c) { Check({op, {{n, c * params.bh * params.bw, 4, 5}}}); });
      ExpectRunsEverywhere(*op, {{1, 9 * params.bh * params.bw, 4, 5}});
    }
  }
}

ResizeParams Scaled(const Shape& shape, float by_height, float by_width) {
  ResizeParams params;
  params.input = shape;
  params.scales = {1, 1, by_height, by_width};
  for (size_t axis = 0; axis < 4; ++axis) {
    params.output.push_back(static_cast<int64_t>(static_cast<float>(shape[axis]) * params.scales[axis]));
  }
  return params;
}

constexpr ResizeCoordinates kCoordinates[] = {
    ResizeCoordinates::kAsymmetric, ResizeCoordinates::kHalfPixel, ResizeCoordinates::kPytorchHalfPixel,
    ResizeCoordinates::kAlignCorners, ResizeCoordinates::kTfHalfPixelForNn};

TEST(ImageKernels, ResizeNearest) {
  ForEachChannelCount([](int64_t n, int64_t c) {
    const Shape shape{n, c, 3, 5};
    for (const ResizeCoordinates coordinates : kCoordinates) {
      for (const auto& [by_height, by_width] :
           {std::pair(2.0f, 2.0f), std::pair(4.0f, 3.0f), std::pair(1.0f, 8.0f), std::pair(2.5f, 1.3f),
            std::pair(0.5f, 0.7f), std::pair(3.0f, 0.4f)}) {
        ResizeParams params = Scaled(shape, by_height, by_width);
        params.coordinates = coordinates;
        Check({std::make_shared<ResizeOp>(params), {shape}});
      }
    }
  });
}

TEST(ImageKernels, ResizeLinear) {
  ForEachChannelCount([](int64_t n, int64_t c) {
    const Shape shape{n, c, 3, 5};
    for (const ResizeCoordinates coordinates : kCoordinates) {
      for (const auto& [by_height, by_width] :
           {std::pair(2.0f, 2.0f), std::pair(1.0f, 3.4f), std::pair(0.7f, 2.0f), std::pair(0.4f, 0.2f)}) {
        ResizeParams params = Scaled(shape, by_height, by_width);
        params.mode = ResizeMode::kLinear;
        params.coordinates = coordinates;
        // Three interpolations of values below 4, each of three roundings.
        Check({std::make_shared<ResizeOp>(params), {shape}, 36 * kUlp});
      }
    }
  });
}

TEST(ImageKernels, ResizeRunsPlainWhereMoreThanImagesChange) {
  ResizeParams params;
  params.mode = ResizeMode::kLinear;
  params.input = {2, 3, 4, 2}, params.output = {2, 6, 4, 2}, params.scales = {1, 2, 1, 1};
  const auto channels = std::make_shared<ResizeOp>(params);
  EXPECT_FALSE(channels->RunsIn(Layout::Nhwc(), std::vector<Shape>{params.input}));
  EXPECT_FALSE(channels->HasFastKernel());
  Check({channels, {params.input}});
  params.input = {2, 3, 5}, params.output = {2, 3, 10}, params.scales = {1, 1, 2};
  Check({std::make_shared<ResizeOp>(params), {params.input}});
  const ResizeOp images(Scaled({1, 9, 3, 3}, 2, 2));
  EXPECT_TRUE(images.HasFastKernel());
  ExpectRunsEverywhere(images, {{1, 9, 3, 3}});
}

}  // namespace
}  // namespace tilesmith
