// Suppression of boxes and alignment of regions, as networks' tails run them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/base/op.h"
#include "ops/sampling/roi_align.h"
#include "ops/selection/dependent.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {
namespace {

float IntersectionOverUnion(const float* a, const float* b) {
  const float top = std::max(std::min(a[0], a[2]), std::min(b[0], b[2]));
  const float left = std::max(std::min(a[1], a[3]), std::min(b[1], b[3]));
  const float bottom = std::min(std::max(a[0], a[2]), std::max(b[0], b[2]));
  const float right = std::min(std::max(a[1], a[3]), std::max(b[1], b[3]));
  const auto area = [](const float* box) { return std::abs(box[2] - box[0]) * std::abs(box[3] - box[1]); };
  const float height = bottom - top, width = right - left;
  if (!(height > 0) || !(width > 0)) return 0;
  const float both = height * width;
  return both / (area(a) + area(b) - both);
}

// By the definition: best first, what overlaps a better one that stays is left out.
std::vector<int64_t> Suppressed(const Tensor& boxes, const float* scores, float threshold, int64_t most) {
  std::vector<int64_t> order(static_cast<size_t>(boxes.shape()[1])), kept;
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  for (const int64_t i : order) {
    const bool overlaps = std::ranges::any_of(kept, [&](int64_t k) {
      return IntersectionOverUnion(boxes.floats() + 4 * k, boxes.floats() + 4 * i) > threshold;
    });
    if (!overlaps && std::ssize(kept) < most) kept.push_back(i);
  }
  return kept;
}

TEST(NonMaxSuppression, KeepsTheSameBoxesOnEveryCpu) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const int64_t count = random.Integer(0, 200), classes = random.Integer(1, 3);
    Tensor boxes(Shape{1, count, 4}), scores(Shape{1, classes, count});
    // Corners on a grid: boxes without an area, alike, that touch, and ratios that are the threshold itself.
    for (int64_t i = 0; i < boxes.size(); ++i) boxes.floats()[i] = static_cast<float>(random.Integer(0, 12));
    for (int64_t i = 0; i < scores.size(); ++i)
      scores.floats()[i] = static_cast<float>(random.Integer(0, 30));
    const NmsParams params{.max_boxes = random.Integer(1, 100),
                           .iou_threshold = random.Pick(std::vector{0.0f, 0.25f, 0.5f})};
    std::vector<int64_t> want;
    for (int64_t c = 0; c < classes; ++c) {
      for (const int64_t i :
           Suppressed(boxes, scores.floats() + c * count, params.iou_threshold, params.max_boxes))
        want.insert(want.end(), {0, c, i});
    }
    for (const Target& cpu : TestCpus()) {
      const Tensor got = NonMaxSuppression(boxes, scores, params, cpu.isa);
      ASSERT_EQ(std::vector(got.ints(), got.ints() + got.size()), want) << IsaName(cpu.isa);
    }
  }
}

TEST(NonMaxSuppression, BoxesThatAreNotNumbersOverlapNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor boxes(Shape{1, 3, 4}), scores(Shape{1, 1, 3});
  std::ranges::copy(std::vector<float>{0, 0, 4, 4, nan, 0, 4, 4, 0, 0, 4, 4}, boxes.floats());
  std::ranges::copy(std::vector<float>{3, 2, 1}, scores.floats());
  for (const Target& cpu : TestCpus()) {
    const Tensor kept = NonMaxSuppression(boxes, scores, {.max_boxes = 3, .iou_threshold = 0.5f}, cpu.isa);
    EXPECT_EQ(kept.shape(), (Shape{2, 3}));
    EXPECT_EQ(kept.ints()[5], 1);
  }
}

TEST(RoiAlign, TheKernelDoesWhatTheReferenceDoes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const RoiAlignParams params{.max = random.Integer(0, 3) == 0,
                                .half_pixel = random.Integer(0, 1) == 1,
                                .height = random.Integer(1, 7),
                                .width = random.Integer(1, 7),
                                .samples = random.Integer(0, 3),
                                .scale = random.Pick(std::vector{1.0f, 0.25f})};
    const int64_t images = random.Integer(1, 2), regions = random.Integer(0, 9);
    Tensor image(Shape{images, random.Integer(1, 5), random.Integer(1, 9), random.Integer(1, 9)});
    Tensor boxes(Shape{regions, 4}), batches(Shape{regions}, Layout::Nchw(DataType::kI64));
    FillUniform({image.floats(), static_cast<size_t>(image.size())}, seed);
    for (int64_t i = 0; i < boxes.size(); ++i) boxes.floats()[i] = random.Uniform(-4, 40);
    for (int64_t i = 0; i < regions; ++i) batches.ints()[i] = random.Integer(0, images - 1);
    const RoiAlignOp op(params);
    const Tensor* inputs[] = {&image, &boxes, &batches};
    const Tensor want = op.Reference(inputs);
    for (const int threads : {1, 2}) {
      const Tensor got = RunOnce(op, inputs, {TestCpu(), threads});
      ASSERT_EQ(got.shape(), want.shape());
      // Means of numbers up to 1, at most some 2^13 of them here.
      for (int64_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got.floats()[i], want.floats()[i], 1e-4) << i;
    }
  }
}

TEST(RoiAlign, RegionsOfNoImageAreAnErrorOnAnyThread) {
  Tensor image(Shape{1, 1, 2, 2}), boxes(Shape{64, 4}), batches(Shape{64}, Layout::Nchw(DataType::kI64));
  for (int64_t i = 0; i < image.size(); ++i) image.floats()[i] = 1;
  std::fill_n(boxes.floats(), boxes.size(), 1.0f);
  std::fill_n(batches.ints(), 64, int64_t{0});
  batches.ints()[63] = 1;
  const Tensor* inputs[] = {&image, &boxes, &batches};
  for (const int threads : {1, 2, 3})
    EXPECT_THROW(RunOnce(RoiAlignOp({}), inputs, {TestCpu(), threads}), Error);
}

}  // namespace
}  // namespace tilesmith
