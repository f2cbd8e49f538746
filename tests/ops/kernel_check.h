// Fast kernels against their op's Reference: in each layout the op claims, for each instruction set up to the
// machine's, with images spread apart, and blocks where kernels may be in regions, between guard pages, from
// NaN-filled outputs. All of them but the plain portable one are held to the same bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "layouts/base/thread_team.h"
#include "ops/base/op.h"
#include "tests/support/guarded_tensor.h"
#include "tests/support/random.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {

constexpr int64_t kGap = 5;  // floats between images, which nobody may touch
constexpr int64_t kChannels[] = {1, 7, 8, 9, 16, 17, 33};

struct KernelCase {
  std::shared_ptr<const Op> op;
  std::vector<Shape> inputs;
  double tolerance = 0;  // absolute
  bool integers = false;
  int64_t nan_every = 0;  // this many elements, the first among them; 0: none
  float low = -4, high = 4;
};

// Whether a kernel may be in a region whose tensors are not all there, which takes views of shifted blocks.
inline bool MayBeShifted(const Kernel& kernel, const Shape& result) {
  return kernel.ShiftsBlocks() && result.size() == 4 && result[2] > 1 && kernel.Stages() == 1 &&
         kernel.Grid(0).GivesRows(result[0], result[2]);
}

// Where a plain element lies in a spread buffer of `layout`, whose blocks are `shift` floats further apart
// where images have rows.
class KernelPlacement {
 public:
  KernelPlacement(const Shape& shape, const Layout& layout, int64_t shift = 0)
      : shape_(shape),
        layout_(layout),
        shift_(shape.size() == 4 ? shift : 0),
        blocks_(shift_ == 0 ? 1 : std::max<int64_t>(layout.Blocks(shape[1]), 1)),
        block_(BatchStride(shape, layout) / blocks_),
        image_(blocks_ * (block_ + shift_) - shift_) {}
  int64_t images() const { return shape_.empty() ? 1 : shape_[0]; }
  int64_t stride() const { return image_ + kGap; }
  int64_t floats() const { return images() * stride(); }
  int64_t shift() const { return shift_; }
  bool IsGap(int64_t at) const {
    const int64_t in_image = at % stride();
    return in_image >= image_ || in_image % (block_ + shift_) >= block_;
  }

  int64_t Offset(int64_t index) const {
    int64_t dense = index;
    if (!layout_.is_nchw()) {
      const Dims4 d = ToDims4(shape_);
      dense = ElementOffset(
          d, layout_, {index / (d.c * d.h * d.w), index / (d.h * d.w) % d.c, index / d.w % d.h, index % d.w});
    }
    const int64_t block = dense / block_;
    return block / blocks_ * stride() + block % blocks_ * (block_ + shift_) + dense % block_;
  }

 private:
  Shape shape_;
  Layout layout_;
  int64_t shift_, blocks_, block_, image_;
};

// The tensor in `layout`, padding zero, gaps NaN.
inline std::unique_ptr<GuardedTensor> SpreadOut(const Tensor& tensor, const KernelPlacement& place,
                                                Guard guard) {
  auto buffer = std::make_unique<GuardedTensor>(place.floats(), guard);
  for (int64_t at = 0; at < place.floats(); ++at)
    if (!place.IsGap(at)) (*buffer)[at] = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) (*buffer)[place.Offset(i)] = tensor.floats()[i];
  return buffer;
}

inline void ExpectMatches(const Tensor& want, const GuardedTensor& got, const KernelPlacement& place,
                          double tolerance) {
  std::vector<bool> seen(got.size());
  for (int64_t i = 0; i < want.size(); ++i) {
    const int64_t at = place.Offset(i);
    seen[at] = true;
    const float expected = want.floats()[i];
    if (expected == got[at] || (std::isnan(expected) && std::isnan(got[at]))) continue;
    ASSERT_LE(std::abs(static_cast<double>(expected) - got[at]), tolerance) << "element " << i;
  }
  for (int64_t at = 0; at < got.size(); ++at) {
    if (seen[at]) continue;
    if (place.IsGap(at)) {
      ASSERT_TRUE(std::isnan(got[at])) << "gap at " << at;
    } else {
      ASSERT_EQ(got[at], 0) << "padding at " << at;
    }
  }
  ASSERT_TRUE(got.SlackIntact());
}

// The first run's results, which all others are held to, bit for bit: of any instruction set that adds
// products unrounded, layout, threads and split. NaNs are as good as each other.
class SameBits {
 public:
  void Expect(int64_t count, const GuardedTensor& got, const KernelPlacement& place, Isa isa) {
    Expect(count, isa, [&](int64_t i) { return got[place.Offset(i)]; });
  }
  template <typename ValueAt>
  void Expect(int64_t count, Isa isa, const ValueAt& value_at) {
    if (isa < Isa::kPortableFused) return;
    const bool is_first = first_.empty();
    for (int64_t i = 0; i < count; ++i) {
      const float value = value_at(i);
      if (is_first) {
        first_.push_back(value);
      } else if (!std::isnan(value) || !std::isnan(first_[i])) {
        ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(first_[i]))
            << "element " << i << " is " << value << ", and was " << first_[i];
      }
    }
  }

 private:
  std::vector<float> first_;
};

// All tasks, as threads that happen to run one after the other, last first: a parallel region for each of
// these thousands of tiny runs would cost more than the runs. Scratch is given here, filled with NaN.
inline void RunInShares(const Kernel& kernel, KernelArgs args, Split split = Split::kEven, int threads = 3) {
  GuardedTensor scratch(CeilDiv(kernel.ScratchBytes(threads), int64_t{sizeof(float)}));
  args.scratch = scratch.data();
  for (int stage = 0; stage < kernel.Stages(); ++stage) {
    ASSERT_EQ(kernel.Grid(stage).tasks(), kernel.Tasks(stage));
    for (int thread = threads; thread-- > 0;) {
      const Share share(kernel.Grid(stage), split, thread, threads);
      share.ForEachRange(0, share.tasks(), thread, [&](TaskRange range) { kernel.Run(args, stage, range); });
    }
  }
}

struct KernelSetting {
  Layout layout;
  Target cpu;
  Guard guard;
};

inline void RunCase(const KernelCase& c, const std::vector<Tensor>& inputs, const Tensor& want,
                    const KernelSetting& setting, SameBits& same_bits) {
  const auto expect = [&](const GuardedTensor& got, const KernelPlacement& place) {
    ExpectMatches(want, got, place, c.tolerance);
    same_bits.Expect(want.size(), got, place, setting.cpu.isa);
  };
  const auto kernel = c.op->MakeKernel({c.inputs, want.shape(), setting.layout, setting.cpu});
  const bool shifts = setting.guard == Guard::kAfter && MayBeShifted(*kernel, want.shape());
  std::vector<std::unique_ptr<GuardedTensor>> buffers;
  std::vector<InputView> views;
  const auto input_of = [](const GuardedTensor& buffer, const KernelPlacement& place) {
    InputView view = buffer.input_view(place.stride());
    view.block_shift = place.shift() * int64_t{sizeof(float)};
    return view;
  };
  for (const Tensor& input : inputs) {
    const KernelPlacement place(input.shape(), setting.layout, shifts ? 3 + std::ssize(views) : 0);
    buffers.push_back(SpreadOut(input, place, setting.guard));
    views.push_back(input_of(*buffers.back(), place));
  }
  const KernelPlacement place(want.shape(), setting.layout, shifts ? 9 : 0);
  const auto output_of = [&](GuardedTensor& buffer) {
    OutputView view = buffer.output_view(place.stride());
    view.block_shift = place.shift() * int64_t{sizeof(float)};
    return view;
  };
  GuardedTensor output(place.floats(), setting.guard);
  for (auto& buffer : buffers) buffer->MakeReadOnly();
  RunInShares(*kernel, {views, output_of(output), nullptr});
  expect(output, place);
  for (const int threads : {1, 2, 4, 7}) {
    if (setting.guard == Guard::kBefore || setting.cpu.isa < TestCpu().isa) break;
    GuardedTensor again(place.floats(), setting.guard);
    RunInShares(*kernel, {views, output_of(again), nullptr}, Split::kEven, threads);
    same_bits.Expect(want.size(), again, place, setting.cpu.isa);
  }
  for (const Split split : {Split::kRows, Split::kChannels, Split::kImages}) {
    for (const int threads : {2, 7}) {
      if (!kernel->Grid(kernel->Stages() - 1).Can(split)) continue;
      SCOPED_TRACE(testing::Message() << threads << " threads by " << SplitName(split));
      GuardedTensor again(place.floats(), setting.guard);
      RunInShares(*kernel, {views, output_of(again), nullptr}, split, threads);
      expect(again, place);
    }
  }
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (!c.op->InPlaceOk(static_cast<int>(slot)) || c.inputs[slot] != want.shape()) continue;
    SCOPED_TRACE("in place of input " + std::to_string(slot));
    const auto shared = SpreadOut(inputs[slot], place, setting.guard);
    std::vector<InputView> in_place = views;
    in_place[slot] = input_of(*shared, place);
    RunInShares(*kernel, {in_place, output_of(*shared), nullptr});
    expect(*shared, place);
  }
}

// With these inputs; results are held to those that `same_bits` has seen.
inline void CheckOn(const KernelCase& c, const std::vector<Tensor>& inputs, SameBits& same_bits) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& tensor : inputs) pointers.push_back(&tensor);
  const Tensor want = c.op->Reference(pointers);
  ASSERT_EQ(want.shape(), c.op->InferShape(c.inputs));
  const Target machine = TestCpu();
  for (const Layout& layout :
       {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8), Layout::Blocked(16), Layout::Blocked(32)}) {
    if (!c.op->RunsIn(layout, c.inputs)) continue;
    for (const Isa isa : kIsas) {
      if (isa > machine.isa) continue;
      for (const Guard guard : {Guard::kAfter, Guard::kBefore}) {
        SCOPED_TRACE(c.op->Signature() + " of " + ShapeToString(c.inputs[0]) + " in " + layout.ToString() +
                     " on " + std::string(IsaName(isa)) + (guard == Guard::kAfter ? " (end)" : " (start)"));
        RunCase(c, inputs, want, {layout, CapIsa(machine, isa), guard}, same_bits);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

inline void CheckOn(const KernelCase& c, const std::vector<Tensor>& inputs) {
  SameBits same_bits;
  CheckOn(c, inputs, same_bits);
}

// With random ones.
inline void Check(const KernelCase& c, SameBits& same_bits) {
  constexpr uint64_t kSeed = 7;
  std::vector<Tensor> inputs;
  for (const Shape& shape : c.inputs) {
    Tensor& tensor = inputs.emplace_back(shape);
    const std::span<float> values(tensor.floats(), tensor.size());
    c.integers ? FillIntegers(values, kSeed + inputs.size())
               : FillUniform(values, kSeed + inputs.size(), c.low, c.high);
    for (size_t i = 0; c.nan_every > 0 && i < values.size(); i += static_cast<size_t>(c.nan_every))
      values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  CheckOn(c, inputs, same_bits);
}
inline void Check(const KernelCase& c) {
  SameBits same_bits;
  Check(c, same_bits);
}

inline void ExpectRunsEverywhere(const Op& op, const std::vector<Shape>& inputs) {
  for (const char* layout : {"NCHW", "NHWC", "NCHW8c", "NCHW5c"}) {
    EXPECT_TRUE(op.RunsIn(Layout::Parse(layout), inputs)) << op.Signature() << " in " << layout;
  }
}

// Each shape twice: batch 1 and 2.
template <typename Body>
void ForEachChannelCount(const Body& body) {
  for (const int64_t channels : kChannels) {
    for (const int64_t batch : {1, 2}) body(batch, channels);
  }
}

constexpr double kUlp = 0x1p-23;

}  // namespace tilesmith
