#include "tuner/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/test_cpu.h"
#include "tests/tuner/support/fake_template.h"

namespace tilesmith {
namespace {

// Where other layouts may well pay: much data, little work.
const char* const kWide = "mb1ic64ih56oc64oh56kh1";
// Where no transform is worth it.
const char* const kNarrow = "mb1ic64ih2oc64oh2kh1";

class LayoutSearchTest : public ::testing::Test {
 protected:
  void Start(const char* workload) {
    workload_ = ParseWorkload(workload);
    search_.emplace(workload_, cpu_, std::vector<LayoutSearch::Lane>{{&fake_, &space_}}, 1);
  }
  void Measure(const Config& config) {
    Record record;
    record.workload = workload_;
    record.template_name = fake_.Name();
    record.config = config;
    record.layouts = fake_.Layouts(workload_, config);
    record.seconds = fake_.Seconds(config);
    book_.Enter(record);
  }
  int Run(int limit = 10000) {
    int trials = 0;
    for (; trials < limit; ++trials) {
      const auto next = search_->Next(book_);
      if (!next) break;
      EXPECT_FALSE(book_.Knows(fake_.Name(), next->config)) << next->config.ToString();
      EXPECT_EQ(next->layouts, fake_.Layouts(workload_, next->config));
      Measure(next->config);
    }
    return trials;
  }

  const FakeTemplate fake_;
  const Target cpu_ = TestCpu();
  const ConfigSpace space_ = fake_.Space({}, {});
  ConvWorkload workload_;
  TrialBook book_;
  std::optional<LayoutSearch> search_;
};

TEST_F(LayoutSearchTest, FindsTheBestOfEveryPairWorthHaving) {
  Start(kWide);
  Measure(space_.At(0));  // far from the best: every pair has to be searched for itself
  const int trials = Run();
  EXPECT_LT(trials, static_cast<int>(*space_.CountValid()));
  const auto best = book_.BestOfPairs();
  EXPECT_EQ(best.size(), 12u);
  for (const auto& [layouts, record] : best) {
    EXPECT_EQ(record->config.Get("tile"), 8) << layouts.in.ToString() << layouts.out.ToString();
    EXPECT_EQ(record->config.Get("rows"), 4);
  }
  int counted = 0;
  for (const auto& [layouts, of_pair] : search_->trials()) counted += of_pair;
  EXPECT_EQ(counted, trials);
}

TEST_F(LayoutSearchTest, OnePairAtATimeAndThoseThatKeepTheLayoutFirst) {
  Start(kWide);
  Measure(space_.At(0));
  for (int i = 0; i < 3; ++i) {
    const auto next = search_->Next(book_);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->config.Get("ic_block"), next->config.Get("oc_block")) << i;
    Measure(next->config);
  }
  Run(12 - 3);
  EXPECT_EQ(book_.BestOfPairs().size(), 12u) << "every pair before any again";
}

TEST_F(LayoutSearchTest, PairsThatCannotPayGetARecordAndNoMore) {
  class Uneven : public FakeTemplate {
   public:
    double Seconds(const Config& config) const {
      return FakeTemplate::Seconds(config) * (config.Get("ic_block") == 0 ? 3 : 1);
    }
  };
  Start(kNarrow);
  const Uneven uneven;
  const auto measure = [&](const Config& config) {
    Record record;
    record.template_name = fake_.Name();
    record.config = config;
    record.layouts = fake_.Layouts(workload_, config);
    record.seconds = uneven.Seconds(config);
    book_.Enter(record);
  };
  measure(space_.At(0));
  while (const auto next = search_->Next(book_)) measure(next->config);
  for (const auto& [layouts, trials] : search_->trials()) {
    if (layouts.in.is_nhwc()) {
      EXPECT_LE(trials, 4);
    } else {
      EXPECT_GE(trials, 5);
    }
  }
}

TEST_F(LayoutSearchTest, WorthHavingIsBoundedByTheTransformsAround) {
  const ConvWorkload workload = ParseWorkload(kWide);
  const double allowance = WorthHavingSeconds(workload, 1e-3) - 1e-3;
  EXPECT_GT(allowance, 100e-6);
  EXPECT_LT(allowance, 1e-3);
  EXPECT_LT(WorthHavingSeconds(ParseWorkload(kNarrow), 1e-3), 1.001e-3);
}

TEST_F(LayoutSearchTest, APairThatOnlyFailsIsGivenUp) {
  Start(kWide);
  Measure(space_.At(0));
  int trials = 0;
  while (const auto next = search_->Next(book_)) {
    Record record;
    record.template_name = fake_.Name();
    record.config = next->config;
    record.layouts = next->layouts;
    record.status = TrialStatus::kRunCrash;
    book_.Enter(record);
    ASSERT_LT(++trials, 100);
  }
}

}  // namespace
}  // namespace tilesmith
