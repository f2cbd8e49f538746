#include "graph_tuner/costs/crossings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "graph_tuner/costs/crossing_costs.h"
#include "tests/graph_tuner/support/synthetic.h"
#include "tests/support/temporary_files.h"

namespace tilesmith {
namespace {

struct Span {
  int64_t begin, end;
  bool Has(int64_t at) const { return begin <= at && at < end; }
};

// Rows [begin, end) of thread t, and as for channels and images.
Span Part(int64_t size, int thread, int threads) {
  return {FirstRowOf(size, thread, threads), FirstRowOf(size, thread + 1, threads)};
}

// Element by element. Precondition: every size that is split is a multiple of the threads.
int64_t CountedBytes(const Shape& shape, Split written, Split read, const Reads& reads, int threads) {
  const auto part = [&](Split split, Split axis, int64_t size, int thread) {
    if (split == axis) return Part(size, thread, threads);
    return split == Split::kOne && thread > 0 ? Span{0, 0} : Span{0, size};
  };
  int64_t most = 0;
  for (int thread = 0; thread < threads; ++thread) {
    Span rows = part(read, Split::kRows, shape[2], thread);
    if (read == Split::kRows) {
      // Half of the halo on either side.
      const int64_t below = (reads.halo_rows + 1) / 2, above = reads.halo_rows / 2;
      if (rows.begin > 0) rows.begin -= below;
      rows.end = std::min(shape[2], rows.end + above);
    }
    Span channels = part(read, Split::kChannels, shape[1], thread);
    if (read == Split::kChannels && reads.channels == Reads::Channels::kAll) channels = {0, shape[1]};
    const Span images = part(read, Split::kImages, shape[0], thread);
    int64_t bytes = 0;
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t c = 0; c < shape[1]; ++c) {
        for (int64_t h = 0; h < shape[2]; ++h) {
          const bool reads_it = images.Has(n) && channels.Has(c) && rows.Has(h);
          const bool wrote_it = part(written, Split::kRows, shape[2], thread).Has(h) &&
                                part(written, Split::kChannels, shape[1], thread).Has(c) &&
                                part(written, Split::kImages, shape[0], thread).Has(n);
          if (reads_it && !wrote_it) bytes += shape[3] * int64_t{sizeof(float)};
        }
      }
    }
    most = std::max(most, bytes);
  }
  return most;
}

TEST(CrossingBytes, AreThoseCountedElementByElement) {
  int compared = 0;
  for (const int threads : {2, 3, 6}) {
    for (const Shape& shape : {Shape{6, 12, 18, 5}, Shape{12, 6, 6, 1}}) {
      for (const Split written : {Split::kRows, Split::kChannels, Split::kImages, Split::kOne}) {
        for (const Split read : {Split::kRows, Split::kChannels, Split::kImages, Split::kOne}) {
          for (const Reads::Channels channels : {Reads::Channels::kOwn, Reads::Channels::kAll}) {
            for (const int64_t halo : {0, 2}) {
              // A halo matters where rows stay with their thread, and is left out elsewhere.
              if (halo > 0 && (written != Split::kRows || read != Split::kRows)) continue;
              const Reads reads = {channels, halo};
              EXPECT_EQ(CrossingBytes(shape, written, read, reads, threads),
                        CountedBytes(shape, written, read, reads, threads))
                  << SplitName(written) << " to " << SplitName(read) << " on " << threads << ", "
                  << ShapeToString(shape) << ", channels " << int(channels) << ", halo " << halo;
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 150);
}

TEST(CrossingBytes, OfWhatNobodyKnowsAreAsManyAsOfAnotherSplit) {
  const Shape shape = {1, 8, 8, 4};
  const Reads all = {Reads::Channels::kAll}, own = {Reads::Channels::kOwn};
  const int64_t bytes = ElementCount(shape) * 4;
  EXPECT_EQ(CrossingBytes(shape, Split::kEven, Split::kEven, all, 2), bytes / 2);
  EXPECT_EQ(CrossingBytes(shape, Split::kEven, Split::kRows, all, 2), bytes / 4);
  EXPECT_EQ(CrossingBytes(shape, Split::kRows, Split::kEven, own, 2), bytes / 4);
  EXPECT_EQ(CrossingBytes(shape, Split::kChannels, Split::kChannels, {Reads::Channels::kShifted}, 2),
            bytes / 4);
  for (const Split written : kSplits) {
    for (const Split read : kSplits) {
      EXPECT_EQ(CrossingBytes(shape, written, read, all, 1), 0);
      EXPECT_EQ(CrossingBytes({1, 8, 0, 4}, written, read, all, 2), 0);
      EXPECT_GE(CrossingBytes({7}, written, read, all, 3), 0);
    }
  }
  EXPECT_EQ(CrossingBytes(shape, Split::kEven, Split::kEven, {.even_in_price = true}, 2), 0);
}

TEST(CrossingBytes, ARowChainOfOneRowSharesIt) {
  EXPECT_EQ(CrossingBytes({1, 8, 1, 4}, Split::kRows, Split::kRows, {.halo_rows = 2}, 3), 8 * 4 * 4);
}

TEST(CrossingCosts, EachSizeIsMeasuredOnceAndKept) {
  const TemporaryDirectory folder;
  const std::string path = folder.File("costs.jsonl");
  int measured = 0;
  const auto measure = [&](int64_t bytes) {
    ++measured;
    return 1e-10 * double(bytes);
  };
  CostFile file(path, SyntheticCpu(), 2);
  CrossingCosts costs(file, measure);
  for (const int64_t bytes : {int64_t{1}, int64_t{4096}, int64_t{5000}, int64_t{1} << 20, int64_t{1} << 30})
    EXPECT_NEAR(costs.Seconds(bytes), 1e-10 * double(bytes), 1e-6 * 1e-10 * double(bytes));
  EXPECT_EQ(costs.Seconds(0), 0);
  EXPECT_EQ(measured, int(std::size(CrossingCosts::kSizes)));
  CostFile again(path, SyntheticCpu(), 2);
  CrossingCosts known(again, [](int64_t) -> double { throw std::logic_error("measured twice"); });
  EXPECT_EQ(known.Seconds(5000), costs.Seconds(5000));
  EXPECT_EQ(again.Find({{"kind", "crossing"}, {"bytes", "4096"}}), 4096 * 1e-10);
}

TEST(CrossingCosts, DoNotFallWithTheBytes) {
  CostFile file("", SyntheticCpu(), 2);
  CrossingCosts costs(file, [](int64_t bytes) { return bytes == 65536 ? 9e-6 : 2e-6; });
  double before = 0;
  for (int64_t bytes = 0; bytes < (int64_t{8} << 20); bytes += 3000) {
    const double seconds = costs.Seconds(bytes);
    EXPECT_GE(seconds, before) << bytes;
    before = seconds;
  }
}

}  // namespace
}  // namespace tilesmith
