#include "tools/tune/tune_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tilesmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct View {
  std::vector<TuneRow> rows;
  NetworkProgress at;
};

View ThreeTasks() {
  View view;
  for (const char* text : {"ic3ih224oc64oh112kh7sh2ph3", "ic64ih56oc64kh3ph1", "ic512ih7oc512kh3ph1"}) {
    TuneRow row;
    row.task = {"", ParseWorkload(text), 2};
    row.baseline_seconds = 3e-3;
    view.rows.push_back(row);
  }
  view.at.tasks = {{TaskStage::kDone, 1e-3, 100, 0}, {TaskStage::kSearch, 2e-3, 50, 1}, {}};
  view.at.task = 1;
  view.at.network_seconds = 6e-3;
  view.at.trials_measured = 150;
  view.at.elapsed_seconds = 3;
  view.at.left_seconds = 61;
  return view;
}

TEST(TuningTable, ShowsEveryTaskAndTheTotals) {
  const View view = ThreeTasks();
  const std::string text = TuningTable(view.rows, view.at, 40);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 3 + 2);
  EXPECT_THAT(text, HasSubstr("> 64x56x56 -> 64x56x56, 3x3"));
  EXPECT_THAT(text, HasSubstr("3.00"));  // oneDNN / ours of the first
  EXPECT_THAT(text, HasSubstr("total 6.000 ms, oneDNN 18.00 ms (3.00x)"));
  EXPECT_THAT(text, HasSubstr("150 trials, 50/s; 3.0s elapsed, 1m01s left"));
}

TEST(TuningTable, OnALowTerminalTheCurrentAndTheLongestStay) {
  View view = ThreeTasks();
  view.at.task = 0;
  const std::string text = TuningTable(view.rows, view.at, 7);
  EXPECT_THAT(text, HasSubstr("3x224x224"));
  EXPECT_THAT(text, HasSubstr("512x7x7"));  // nothing yet: what oneDNN takes
  EXPECT_THAT(text, Not(HasSubstr("64x56x56")));
  EXPECT_THAT(text, HasSubstr("... and 1 more"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 7);
}

TEST(TuningLine, SaysTheSameInOneLine) {
  const View view = ThreeTasks();
  const std::string text = TuningLine(view.rows, view.at);
  EXPECT_EQ(text,
            "[2/3] search 150 trials  total 6.000 ms, oneDNN 18.00 ms (3.00x)  failed 1  left 1m01s  "
            "64x56x56 -> 64x56x56, 3x3");
}

}  // namespace
}  // namespace tilesmith
