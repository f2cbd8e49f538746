// One step by itself: what each thread's share of it writes, and what it needs for that.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "graph_tuner/executor/neighbour_waits.h"
#include "layouts/base/kernel.h"
#include "layouts/tensor.h"
#include "tests/support/random.h"

namespace tilesmith {

class StepAlone {
 public:
  // The kernel outlives it.
  StepAlone(const Kernel& kernel, StepTouch touch, Split split, int threads, std::vector<Tensor> inputs,
            Tensor output)
      : kernel_(kernel),
        touch_(std::move(touch)),
        split_(split),
        threads_(threads),
        inputs_(std::move(inputs)),
        out_(std::move(output)),
        scratch_(kernel.ScratchBytes(threads)) {}

  // Whether anything can be said of it.
  bool Told() const { return touch_.stages == 1 && Written(0).has_value(); }

  void ExpectShares(uint64_t seed) {
    TestRandom random(seed);
    for (Tensor& input : inputs_) {
      for (int64_t i = 0; input.type() == DataType::kF32 && i < input.padded_size(); ++i)
        input.floats()[i] = static_cast<float>(random.Integer(-8, 8)) / 4;
    }
    for (int thread = 0; thread < threads_; ++thread) RunShare(inputs_, thread, out_);
    for (int thread = 0; thread < threads_; ++thread) {
      const TensorPart part = *Written(thread);
      for (const uint32_t poison : {0xffffffffU, 0x7149f2caU}) {  // NaN, 1e30
        std::vector<Tensor> inputs = inputs_;
        for (size_t slot = 0; slot < inputs.size(); ++slot) Poison(inputs[slot], slot, part, poison);
        Tensor actual(out_.shape(), out_.layout());
        std::fill_n(actual.raw(), actual.bytes(), kUnwritten);
        RunShare(inputs, thread, actual);
        // Of a row that is its own, a thread may write some channels only.
        ForEachRow(actual, [&](int64_t image, int64_t row, int64_t begin, int64_t end) {
          bool as_all = true, unwritten = true;
          for (int64_t at = begin; at < end; ++at) {
            const bool kept = actual.raw()[at] == kUnwritten;
            unwritten = unwritten && kept;
            as_all = as_all && (kept || actual.raw()[at] == out_.raw()[at]);
          }
          EXPECT_TRUE(Holds(part, image, row) ? as_all : unwritten)
              << "thread " << thread << ", image " << image << ", row " << row << ": "
              << (as_all ? "not its own" : "more was read than is said");
        });
        if (testing::Test::HasFailure()) return;
      }
    }
  }

 private:
  static constexpr std::byte kUnwritten{0x5a};

  std::optional<TensorPart> Written(int thread) const {
    return PartWritten(touch_.writes, split_, thread, threads_, out_.shape());
  }
  static bool Holds(const TensorPart& part, int64_t image, int64_t row) {
    return part.first_image <= image && image < part.last_image && part.first_row <= row &&
           row < part.last_row;
  }
  // run(image, row, begin, end) in bytes, for every row of every block.
  template <typename Run>
  static void ForEachRow(const Tensor& tensor, const Run& run) {
    const Shape& shape = tensor.shape();
    const Layout& layout = tensor.layout();
    const int64_t row_bytes = shape[3] * layout.BlockFor(shape[1]) * layout.element_bytes();
    int64_t begin = 0;
    for (int64_t image = 0; image < shape[0]; ++image) {
      for (int64_t block = 0; block < layout.Blocks(shape[1]); ++block) {
        for (int64_t row = 0; row < shape[2]; ++row, begin += row_bytes)
          run(image, row, begin, begin + row_bytes);
      }
    }
  }
  void Poison(Tensor& input, size_t slot, const TensorPart& written, uint32_t poison) const {
    if (input.shape().size() != 4 || input.shape()[0] != out_.shape()[0] || !touch_.reads[slot]) return;
    const TensorPart part = PartRead(*touch_.reads[slot], written, input.shape()[2]);
    ForEachRow(input, [&](int64_t image, int64_t row, int64_t begin, int64_t end) {
      if (Holds(part, image, row)) return;
      for (int64_t at = begin; at < end; ++at)
        input.raw()[at] = reinterpret_cast<const std::byte*>(&poison)[at % 4];
    });
  }
  void RunShare(const std::vector<Tensor>& inputs, int thread, Tensor& output) {
    std::vector<InputView> views;
    for (const Tensor& input : inputs) views.push_back(input.input_view());
    const KernelArgs args{views, output.output_view(), scratch_.floats()};
    const Share share(kernel_.Grid(0), split_, thread, threads_);
    share.ForEachRange(0, share.tasks(), thread, [&](TaskRange range) { kernel_.Run(args, 0, range); });
  }

  const Kernel& kernel_;
  const StepTouch touch_;
  const Split split_;
  const int threads_;
  std::vector<Tensor> inputs_;
  Tensor out_;
  const AlignedBuffer scratch_;
};

}  // namespace tilesmith
