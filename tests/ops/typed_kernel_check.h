// Fast kernels of typed inputs and outputs against their op's Reference, bit for bit: in each layout the op
// claims, for each instruction set up to the machine's, with images spread apart, between guard pages.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "tests/ops/kernel_check.h"
#include "tests/support/test_cpu.h"

namespace tilesmith {

// A plain tensor of these values.
template <typename T>
Tensor Stored(const Shape& shape, const std::vector<T>& values) {
  Tensor tensor(shape, Layout::Nchw(kDataTypeOf<T>));
  EXPECT_EQ(tensor.size(), std::ssize(values));
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

// A plain tensor's elements in `layout`, images kGapBytes apart, blocks of images `block_shift` bytes, in
// guarded memory.
struct SpreadTensor {
  SpreadTensor(const Tensor& plain, const Layout& order, Guard guard, bool filled, int64_t block_shift = 0)
      : tensor(plain),
        layout(order.WithType(plain.type())),
        shift(plain.shape().size() == 4 ? block_shift : 0),
        blocks(shift == 0 ? 1 : std::max<int64_t>(layout.Blocks(plain.shape()[1]), 1)),
        block_bytes(BatchBytes(plain.shape(), layout) / blocks),
        stride(blocks * (block_bytes + shift) - shift + kGapBytes),
        images(plain.shape().empty() ? 1 : plain.shape()[0]),
        buffer(CeilDiv(size_bytes(), int64_t{sizeof(float)}), guard) {
    if (!filled) return;
    for (int64_t at = 0; at < size_bytes(); ++at)
      if (!IsGap(at)) bytes()[at] = std::byte{0};
    for (int64_t i = 0; i < tensor.size(); ++i)
      std::memcpy(bytes() + Offset(i), tensor.raw() + i * size(), size());
  }
  static constexpr int64_t kGapBytes = 20;
  int64_t size() const { return ElementBytes(tensor.type()); }
  int64_t size_bytes() const { return images * stride - kGapBytes; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(buffer.data()); }
  int64_t Offset(int64_t index) const {
    int64_t dense = index;
    if (!layout.is_nchw()) {
      const Dims4 d = ToDims4(tensor.shape());
      dense = ElementOffset(
          d, layout, {index / (d.c * d.h * d.w), index / (d.h * d.w) % d.c, index / d.w % d.h, index % d.w});
    }
    const int64_t block = dense * size() / block_bytes, in_block = dense * size() % block_bytes;
    return block / blocks * stride + block % blocks * (block_bytes + shift) + in_block;
  }
  bool IsGap(int64_t at) const {
    const int64_t in_image = at % stride;
    return in_image >= stride - kGapBytes || in_image % (block_bytes + shift) >= block_bytes;
  }
  InputView input() { return {bytes(), stride, shift}; }
  OutputView output() { return {bytes(), stride, shift}; }
  // Every element as the tensor has it, padding zero, gaps as they were.
  void ExpectHoldsTensor() {
    std::vector<std::byte> want(size_bytes()), filler(4);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(filler.data(), &nan, 4);
    for (int64_t at = 0; at < std::ssize(want); ++at) want[at] = IsGap(at) ? filler[at % 4] : std::byte{0};
    for (int64_t i = 0; i < tensor.size(); ++i)
      std::memcpy(&want[Offset(i)], tensor.raw() + i * size(), size());
    for (int64_t at = 0; at < std::ssize(want); ++at)
      ASSERT_EQ(want[at], bytes()[at]) << "byte " << at << " of " << layout.ToString();
    ASSERT_TRUE(buffer.SlackIntact());
  }

  const Tensor& tensor;
  const Layout layout;
  const int64_t shift, blocks, block_bytes, stride, images;
  GuardedTensor buffer;
};

using KernelMaker = std::unique_ptr<Kernel>(const Op& op, const KernelRequest& request);

inline std::unique_ptr<Kernel> OwnKernelOf(const Op& op, const KernelRequest& request) {
  return op.MakeKernel(request);
}

inline void CheckTypedKernel(const Op& op, const std::vector<Tensor>& inputs,
                             KernelMaker* make = OwnKernelOf) {
  std::vector<const Tensor*> pointers;
  std::vector<Shape> shapes;
  std::vector<DataType> types;
  for (const Tensor& input : inputs) {
    pointers.push_back(&input);
    shapes.push_back(input.shape());
    types.push_back(input.type());
  }
  const Tensor want = op.Reference(pointers);
  ASSERT_EQ(want.type(), op.OutputType(types));
  ASSERT_TRUE(op.KernelTakes(types));
  for (const Layout& layout : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8), Layout::Blocked(5)}) {
    if (!op.RunsIn(layout, shapes)) continue;
    for (const Target& cpu : TestCpus()) {
      for (const Guard guard : {Guard::kAfter, Guard::kBefore}) {
        SCOPED_TRACE(op.Signature() + " of " + ShapeToString(shapes[0]) + " in " + layout.ToString() +
                     " on " + std::string(IsaName(cpu.isa)) + (cpu.vnni ? " with VNNI" : ""));
        const auto kernel = make(op, {shapes, want.shape(), layout.WithType(want.type()), cpu, types});
        const bool shifts = guard == Guard::kAfter && MayBeShifted(*kernel, want.shape());
        const int64_t shift = shifts ? 24 : 0;
        std::vector<std::unique_ptr<SpreadTensor>> spread;
        std::vector<InputView> views;
        for (const Tensor& input : inputs) {
          spread.push_back(
              std::make_unique<SpreadTensor>(input, layout, guard, true, shift * (2 + std::ssize(views))));
          views.push_back(spread.back()->input());
          spread.back()->buffer.MakeReadOnly();
        }
        SpreadTensor out(want, layout, guard, false, shift);
        RunInShares(*kernel, {views, out.output(), nullptr});
        out.ExpectHoldsTensor();
        for (const Split split : {Split::kRows, Split::kChannels, Split::kImages}) {
          if (!kernel->Grid(kernel->Stages() - 1).Can(split)) continue;
          SCOPED_TRACE(SplitName(split));
          SpreadTensor again(want, layout, guard, false, shift);
          RunInShares(*kernel, {views, again.output(), nullptr}, split);
          again.ExpectHoldsTensor();
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Random bits.
inline Tensor AnyStored(const Shape& shape, DataType type, uint64_t seed) {
  Tensor tensor(shape, Layout::Nchw(type));
  TestRandom random(seed);
  for (int64_t i = 0; i < tensor.bytes(); ++i) tensor.raw()[i] = static_cast<std::byte>(random.Next());
  return tensor;
}

}  // namespace tilesmith
