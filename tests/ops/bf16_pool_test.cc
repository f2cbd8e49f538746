// Pooling of tensors that are stored in bf16, against the reference of the same numbers in f32.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "layouts/transform.h"
#include "ops/pool/pool.h"
#include "tests/ops/kernel_check.h"

namespace tilesmith {
namespace {

// Maxima are exact; means are summed in f32 and rounded once.
void CheckBf16(const Op& op, const Shape& shape, const Layout& order, const Target& cpu, uint64_t seed) {
  const Layout layout = order.WithType(DataType::kBf16);
  SCOPED_TRACE(op.Signature() + " " + ShapeToString(shape) + " " + layout.ToString());
  ASSERT_TRUE(op.RunsIn(layout, {&shape, 1}));
  const DataType type = DataType::kBf16;
  ASSERT_TRUE(op.KernelTakes({&type, 1}));
  Tensor plain(shape);
  FillUniform({plain.floats(), static_cast<size_t>(plain.size())}, seed, -2.0f, 2.0f);
  const Tensor stored = TransformGeneric(plain, layout);
  const Tensor numbers = TransformGeneric(stored, Layout::Nchw());
  const Tensor* const inputs[] = {&numbers};
  const Tensor want = op.Reference(inputs);
  const auto kernel = op.MakeKernel({{shape}, want.shape(), layout, cpu, {type}});
  Tensor got(want.shape(), layout);
  std::fill_n(got.raw(), got.bytes(), std::byte{0xFF});
  const InputView in = stored.input_view();
  RunInShares(*kernel, {{&in, 1}, got.output_view(), nullptr});
  const Tensor floats = TransformGeneric(got, Layout::Nchw());
  const Tensor padded = TransformGeneric(floats, layout);
  ASSERT_EQ(std::memcmp(padded.raw(), got.raw(), static_cast<size_t>(got.bytes())), 0) << "padding";
  for (int64_t i = 0; i < want.size(); ++i)
    ASSERT_LE(std::abs(floats.floats()[i] - want.floats()[i]),
              0x1.02p-8f * std::abs(want.floats()[i]) + 1e-6f)
        << "element " << i;
}

TEST(Bf16Pool, EqualsTheReference) {
  uint64_t seed = 0;
  for (const Layout& order : {Layout::Nchw(), Layout::Nhwc(), Layout::Blocked(8), Layout::Blocked(16)}) {
    for (const Target& cpu : TestCpus()) {
      for (const int64_t channels : {1, 15, 16, 35}) {
        for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
          PoolWindow window{.kind = kind, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .top = 1, .left = 1};
          CheckBf16(PoolOp(window), {2, channels, 9, 11}, order, cpu, ++seed);
          window = {
              .kind = kind, .kh = 2, .kw = 3, .dh = 2, .bottom = 1, .right = 2, .count_include_pad = true};
          CheckBf16(PoolOp(window), {1, channels, 6, 7}, order, cpu, ++seed);
          CheckBf16(GlobalPoolOp(kind), {2, channels, 5, 7}, order, cpu, ++seed);
        }
      }
    }
  }
}

TEST(Bf16Pool, RefusesMixturesOfTypes) {
  const PoolOp pool({});
  const DataType types[] = {DataType::kBf16, DataType::kF32};
  EXPECT_FALSE(pool.KernelTakes(types));
  const DataType bytes = DataType::kU8;
  EXPECT_FALSE(pool.KernelTakes({&bytes, 1}));
}

}  // namespace
}  // namespace tilesmith
