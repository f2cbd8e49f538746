#include "tuner/network_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/support/test_cpu.h"
#include "tests/tuner/support/fake_template.h"
#include "tuner/layout_search.h"

namespace tilesmith {
namespace {

// Tasks that differ in their template: "task0" a tenth as fast as "task1", and so on.
class NetworkTunerTest : public ::testing::Test {
 protected:
  void Add(double scale, double weight) {
    const std::string name = "task" + std::to_string(fakes_.size());
    fakes_.emplace_back(FakeTemplate::Size::kSmall, name, scale);
    NetworkTask task;
    task.request.workload = ParseWorkload("mb1ic64ih56oc64oh56kh1");
    task.request.workload.oc += 16 * static_cast<int64_t>(fakes_.size());
    task.request.cpu = TestCpu();
    task.request.templates = {&fakes_.back()};
    task.request.options.batch = 8;
    task.weight = weight;
    tasks_.push_back(task);
  }
  NetworkResult Tune() {
    std::vector<const FakeTemplate*> fakes;
    for (const FakeTemplate& fake : fakes_) fakes.push_back(&fake);
    measurer_.emplace(std::move(fakes));
    logged_.clear();
    sinks_.on_record = [this](const Record& record) { logged_.push_back(record); };
    return TuneNetwork(tasks_, options_, *measurer_, sinks_);
  }
  int Logged(const std::string& purpose) const {
    return static_cast<int>(
        std::count_if(logged_.begin(), logged_.end(), [&](const Record& r) { return r.purpose == purpose; }));
  }

  std::deque<FakeTemplate> fakes_;
  std::vector<NetworkTask> tasks_;
  NetworkTuneOptions options_;
  NetworkSinks sinks_;
  std::optional<FakeMeasurer> measurer_;
  std::vector<Record> logged_;
};

TEST_F(NetworkTunerTest, SpendsTheTrialsWhereTheyHelp) {
  Add(1, 1);
  Add(10, 20);
  Add(1, 1);
  options_.trials = 80;
  options_.stop_when_flat = false;
  const NetworkResult result = Tune();
  int trials = 0;
  for (const TuneResult& task : result.tasks) trials += task.trials_measured;
  EXPECT_EQ(trials, 240);
  EXPECT_GT(result.tasks[1].trials_measured, result.tasks[0].trials_measured);
  EXPECT_NEAR(result.network_seconds, 202e-3, 10e-3);
  EXPECT_FALSE(result.interrupted);
  EXPECT_FALSE(result.out_of_time);
}

TEST_F(NetworkTunerTest, EveryTaskEndsWithEveryLayoutWorthHavingTimedAgain) {
  for (int i = 0; i < 4; ++i) Add(0.1 + i, 1);
  options_.trials = 60;
  const NetworkResult result = Tune();
  for (const TuneResult& task : result.tasks) {
    ASSERT_TRUE(task.best.has_value());
    EXPECT_EQ(task.best->purpose, kPurposeRetime);
    EXPECT_GT(task.layout_trials, 5);
    TrialBook book;
    for (const Record& record : task.records) book.Enter(record);
    EXPECT_EQ(book.BestOfPairs().size(), 12u);
    const double worth = WorthHavingSeconds(task.best->workload, task.best->seconds);
    for (const auto& [layouts, record] : book.BestOfPairs()) {
      if (record->seconds <= worth) {
        EXPECT_EQ(record->purpose, kPurposeRetime);
      }
    }
  }
  EXPECT_EQ(Logged("search") + Logged("layouts") + Logged("retime"), static_cast<int>(logged_.size()));
}

TEST_F(NetworkTunerTest, TurnsAlternateButSwitchesAreFew) {
  for (int i = 0; i < 3; ++i) Add(1, 1);
  options_.trials = 60;
  Tune();
  EXPECT_GT(measurer_->sessions.size(), 5u);
  EXPECT_LT(measurer_->sessions.size(), measurer_->requests.size() / 8 + 3);
}

TEST_F(NetworkTunerTest, FewTrialsStillReachEveryTask) {
  for (int i = 0; i < 5; ++i) Add(1, 1);
  options_.trials = 2;
  const NetworkResult result = Tune();
  for (const TuneResult& task : result.tasks) {
    EXPECT_TRUE(task.best.has_value());
    EXPECT_EQ(task.trials_measured, 2);
  }
}

TEST_F(NetworkTunerTest, NoTimeAtAllStillGivesEveryTaskARecord) {
  for (int i = 0; i < 5; ++i) Add(1, 1);
  options_.trials = 0;
  options_.seconds_budget = 0;
  const NetworkResult result = Tune();
  EXPECT_TRUE(result.out_of_time);
  for (const TuneResult& task : result.tasks) EXPECT_TRUE(task.best.has_value());
  EXPECT_LE(logged_.size(), 20u);
}

TEST_F(NetworkTunerTest, NoTimeOrTwoTrialsStillTryTwoTemplates) {
  for (int i = 0; i < 3; ++i) Add(1, 1);
  for (NetworkTask& task : tasks_) task.request.templates = {&fakes_[0], &fakes_[1], &fakes_[2]};
  for (const auto& [trials, seconds] : {std::pair(0, 0.0), std::pair(2, 1000.0)}) {
    options_.trials = trials;
    options_.seconds_budget = seconds;
    for (const TuneResult& task : Tune().tasks) {
      std::set<std::string> tried;
      for (const Record& record : task.records) tried.insert(record.template_name);
      EXPECT_GE(tried.size(), 2u) << trials << " trials, " << seconds << " s";
    }
  }
}

TEST_F(NetworkTunerTest, FlatCurvesEndItBeforeTheBudget) {
  for (int i = 0; i < 2; ++i) Add(1, 1);
  options_.trials = 0;
  options_.seconds_budget = 1000;
  const NetworkResult result = Tune();
  EXPECT_FALSE(result.out_of_time);
  for (const TuneResult& task : result.tasks) {
    EXPECT_EQ(task.best->config.Get("tile"), 8);
    EXPECT_EQ(task.best->config.Get("rows"), 4);
  }
}

TEST_F(NetworkTunerTest, SameSeedSameTrace) {
  Add(1, 3);
  Add(4, 1);
  options_.trials = 50;
  Tune();
  const std::vector<TrialRequest> first = measurer_->requests;
  Tune();
  ASSERT_EQ(measurer_->requests.size(), first.size());
  // Which task gets a turn depends on what its trials took; what a task tries does not.
  for (const char* name : {"task0", "task1"}) {
    const auto configs = [&](const std::vector<TrialRequest>& requests) {
      std::vector<std::string> texts;
      for (const TrialRequest& r : requests) {
        if (r.template_name == name) texts.push_back(r.config.ToString());
      }
      texts.resize(8);
      return texts;
    };
    EXPECT_EQ(configs(first), configs(measurer_->requests));
  }
}

TEST_F(NetworkTunerTest, KnownTasksCostNothingAndCount) {
  Add(1, 1);
  Add(1, 1);
  options_.trials = 40;
  Tune();
  for (const Record& record : logged_) {
    if (record.template_name == "task0") tasks_[0].request.resume.push_back(record);
  }
  tasks_[0].known = true;
  std::vector<TaskView> last;
  sinks_.on_progress = [&](const NetworkProgress& at) {
    last = at.tasks;
    EXPECT_GE(at.left_seconds, 0);
  };
  const NetworkResult result = Tune();
  for (const TrialRequest& request : measurer_->requests) EXPECT_EQ(request.template_name, "task1");
  EXPECT_EQ(result.tasks[0].trials_measured, 0);
  EXPECT_TRUE(result.tasks[0].best.has_value());
  EXPECT_GT(result.network_seconds, 0);
  EXPECT_EQ(last[0].stage, TaskStage::kKnown);
  EXPECT_EQ(last[1].stage, TaskStage::kDone);
}

TEST_F(NetworkTunerTest, AnInterruptLosesNothing) {
  for (int i = 0; i < 3; ++i) Add(1, 1);
  options_.trials = 60;
  int asked = 0;
  sinks_.should_stop = [&] { return ++asked > 70; };
  const NetworkResult cut = Tune();
  EXPECT_TRUE(cut.interrupted);
  EXPECT_EQ(logged_.size(), measurer_->requests.size());
  EXPECT_LT(logged_.size(), 70u);
  int trials = 0;
  for (const TuneResult& task : cut.tasks) trials += task.trials_measured;
  sinks_.should_stop = {};
  for (NetworkTask& task : tasks_) task.request.resume = logged_;
  options_.stop_when_flat = false;
  for (const TuneResult& task : Tune().tasks) trials += task.trials_measured;
  EXPECT_EQ(trials, 180) << "the rest";
}

class NetworkSlicesTest : public NetworkTunerTest {
 protected:
  NetworkTuner& Tuner() {
    std::vector<const FakeTemplate*> fakes;
    for (const FakeTemplate& fake : fakes_) fakes.push_back(&fake);
    measurer_.emplace(std::move(fakes));
    sinks_.on_record = [this](const Record& record) { logged_.push_back(record); };
    options_.trials = 0;
    return tuner_.emplace(tasks_, options_, *measurer_, sinks_);
  }
  std::optional<NetworkTuner> tuner_;
};

TEST_F(NetworkSlicesTest, EveryTaskGetsATimeFirstAndThenTheWorthiestTurn) {
  Add(1, 1);
  Add(10, 20);
  NetworkTuner& tuner = Tuner();
  EXPECT_EQ(tuner.NetworkSeconds(), 0);
  for (size_t task = 0; task < 2; ++task) {
    const auto offer = tuner.BestOffer({});
    ASSERT_TRUE(offer.has_value());
    EXPECT_EQ(offer->stage, TaskStage::kSearch);
    EXPECT_TRUE(std::isinf(offer->gain));
    EXPECT_GT(tuner.Take(*offer, std::numeric_limits<double>::infinity()), 0);
  }
  EXPECT_GT(tuner.NetworkSeconds(), 0);
  std::map<TaskStage, int> turns;
  while (const auto offer = tuner.BestOffer({})) {
    EXPECT_TRUE(std::isfinite(offer->gain));
    tuner.Take(*offer, std::numeric_limits<double>::infinity());
    ++turns[offer->stage];
    ASSERT_LT(turns[offer->stage], 1000);
  }
  EXPECT_GT(turns[TaskStage::kSearch], 4);
  EXPECT_GT(turns[TaskStage::kRetime], 0);
  EXPECT_EQ(turns[TaskStage::kLayouts], 0) << "nothing is paid for layouts";
  EXPECT_NEAR(tuner.NetworkSeconds(), 202e-3, 5e-3);
  EXPECT_EQ(tuner.Result().tasks.size(), 2u);
}

TEST_F(NetworkSlicesTest, WhatAPlanPaysForLayoutsIsWorthTrialsInOthers) {
  Add(1, 1);
  Add(1, 1);
  NetworkTuner& tuner = Tuner();
  int layout_turns = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<double> gains = {0, 1e9};
    const auto offer = tuner.BestOffer(gains);
    if (!offer) break;
    if (offer->stage == TaskStage::kLayouts) {
      EXPECT_EQ(offer->task, 1u);
      ++layout_turns;
    }
    tuner.Take(*offer, std::numeric_limits<double>::infinity());
  }
  EXPECT_GT(layout_turns, 0);
  EXPECT_GT(Logged("layouts"), 0);
}

TEST_F(NetworkSlicesTest, NoTrialBeginsAfterTheEnd) {
  Add(1, 1);
  NetworkTuner& tuner = Tuner();
  const auto offer = tuner.BestOffer({});
  ASSERT_TRUE(offer.has_value());
  EXPECT_EQ(tuner.Take(*offer, 0), 0);
  EXPECT_TRUE(measurer_->requests.empty());
}

}  // namespace
}  // namespace tilesmith
