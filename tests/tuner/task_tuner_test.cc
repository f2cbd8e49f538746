#include "tuner/task_tuner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "layouts/base/error.h"
#include "tests/support/test_cpu.h"
#include "tests/tuner/support/fake_template.h"
#include "tests/tuner/support/tune_one.h"
#include "tuner/measure/process_measurer.h"
#include "tuner/records/record_groups.h"
#include "tuner/records/record_key.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

class TaskTunerTest : public ::testing::Test {
 protected:
  TaskTunerTest() {
    request_.workload = ParseWorkload("mb1ic64ih14oc64oh14kh3ph1");
    request_.templates = {&fake_};
    request_.options.batch = 8;
    sinks_.on_record = [this](const Record& record) { logged_.push_back(record); };
  }
  TuneResult Tune() { return TuneOne(request_, trials_, measurer_, sinks_); }

  FakeTemplate fake_;
  FakeMeasurer measurer_{{&fake_}};
  TuneRequest request_;
  int trials_ = 40;
  NetworkSinks sinks_;
  std::vector<Record> logged_;
};

TEST_F(TaskTunerTest, SpendsItsTrialsOnDistinctConfigsAndFindsTheBest) {
  trials_ = 150;
  const TuneResult result = Tune();
  EXPECT_EQ(result.trials_measured, 150);
  EXPECT_EQ(result.records.size(), 150u);
  std::set<std::string> keys;
  for (const Record& record : result.records) keys.insert(RecordKey(record).ToString());
  EXPECT_EQ(keys.size(), 150u);
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.best->config.Get("tile"), 8);
  EXPECT_EQ(result.best->config.Get("rows"), 4);
  EXPECT_EQ(measurer_.sessions.size(), 1u);
  EXPECT_GT(measurer_.sessions[0].limits.memory_bytes, 0);
}

// What does not fit, or is known, costs no trial.
TEST_F(TaskTunerTest, TriesWhatIsSuggestedFirst) {
  const ConfigSpace space = fake_.Space(request_.workload, request_.cpu);
  for (const int64_t index : {40, 7, 99}) {
    Record suggestion;
    suggestion.template_name = "fake";
    suggestion.config = space.At(index);
    request_.suggestions.push_back(suggestion);
  }
  request_.suggestions[1].template_name = "unknown";
  request_.suggestions.push_back(request_.suggestions[0]);
  Record invalid = request_.suggestions[0];
  invalid.config.Set("tile", 3);
  request_.suggestions.push_back(invalid);
  trials_ = 20;
  const TuneResult result = Tune();
  EXPECT_EQ(result.trials_measured, 20);
  ASSERT_GE(measurer_.requests.size(), 2u);
  EXPECT_EQ(measurer_.requests[0].config, space.At(40));
  EXPECT_EQ(measurer_.requests[1].config, space.At(99));
  EXPECT_EQ(logged_[0].purpose, "search");
}

TEST_F(TaskTunerTest, LogsEveryTrialAtOnceAndWithAllItNeeds) {
  sinks_.on_record = [this](const Record& record) {
    logged_.push_back(record);
    if (logged_.size() <= 40) {
      EXPECT_EQ(logged_.size(), measurer_.requests.size()) << "before the next trial";
    }
  };
  request_.options.seed = 9;
  Tune();
  ASSERT_GT(logged_.size(), 40u);
  const Record& record = logged_[0];
  EXPECT_EQ(record.workload, request_.workload);
  EXPECT_EQ(record.template_name, "fake");
  EXPECT_EQ(record.layouts, fake_.Layouts(request_.workload, record.config));
  EXPECT_EQ(record.statistic, "p25");
  EXPECT_EQ(record.tuner, "xgb");
  EXPECT_EQ(record.seed, 9u);
  EXPECT_EQ(record.time.size(), std::string("2025-01-02T03:04:05Z").size());
}

TEST_F(TaskTunerTest, CoversEveryPairOfLayouts) {
  Tune();
  const BestByWorkload best = BestRecords(logged_, request_.cpu);
  EXPECT_EQ(best.begin()->second.size(), 12u) << "4 input by 3 output blocks";
  for (const auto& [layouts, record] : best.begin()->second) {
    EXPECT_FALSE(record.early_stopped) << layouts.in.ToString() << " " << layouts.out.ToString();
  }
}

TEST_F(TaskTunerTest, RetimesTheBestInterleaved) {
  request_.options.retime_top = 3;
  request_.options.retime_rounds = 2;
  request_.workload = ParseWorkload("mb1ic64ih112oc64oh112kh1");  // much data: every pair is worth having
  Tune();
  const size_t retimed = (measurer_.requests.size() - 40) / 2;
  EXPECT_GE(retimed, 12u) << "the best of each pair of layouts";
  for (size_t i = 0; i < retimed; ++i) {
    EXPECT_EQ(measurer_.requests[40 + i].config, measurer_.requests[40 + retimed + i].config)
        << "round robin";
    EXPECT_TRUE(std::isinf(measurer_.requests[40 + i].stop_above_seconds));
  }
  ASSERT_EQ(logged_.size(), 40 + retimed);
  EXPECT_EQ(logged_.back().sample_seconds.size(), 10u) << "of both rounds";
}

TEST_F(TaskTunerTest, StopsHopelessConfigsEarly) {
  request_.options.early_stop_factor = 1.2;
  double best = std::numeric_limits<double>::infinity();
  Tune();
  for (size_t i = 0; i < 20; ++i) {  // the search comes first
    EXPECT_DOUBLE_EQ(measurer_.requests[i].stop_above_seconds, 1.2 * best);
    if (!logged_[i].early_stopped) best = std::min(best, logged_[i].seconds);
  }
}

TEST_F(TaskTunerTest, ResumesWithoutMeasuringAgain) {
  const TuneResult first = Tune();
  request_.resume = logged_;
  Record foreign = logged_[0];
  foreign.conditions.cold_weights = true;
  foreign.seconds = 1e-9;
  request_.resume.push_back(foreign);
  std::set<std::string> known;
  for (const Record& record : logged_) known.insert(record.config.ToString());
  measurer_.requests.clear();
  trials_ = 60;
  request_.options.retime_rounds = 0;
  const TuneResult second = Tune();
  EXPECT_EQ(second.trials_measured, 20);
  EXPECT_EQ(second.records.size(), 60u);
  for (const TrialRequest& trial : measurer_.requests) EXPECT_FALSE(known.contains(trial.config.ToString()));
  EXPECT_LE(second.best->seconds, first.best->seconds);
  EXPECT_GT(second.best->seconds, 1e-9) << "other conditions are no knowledge";
}

TEST_F(TaskTunerTest, ResumedRecordsOfConfigsThatAreNotValidDoNotCount) {
  Tune();
  const auto with = [&](std::initializer_list<std::pair<const char*, int64_t>> knobs) {
    Record record = logged_[0];
    record.seconds = 1e-9;
    for (const auto& [name, value] : knobs) record.config.Set(name, value);
    return record;
  };
  Record other_layouts = with({});
  other_layouts.layouts.in = Layout::Blocked(32);
  const std::vector<Record> useless = {with({{"old_knob", 1}}), with({{"tile", 3}}),
                                       with({{"tile", 16}, {"rows", 8}}), other_layouts};
  for (const Record& record : useless) {
    request_.resume = {record};
    EXPECT_GT(Tune().best->seconds, 1e-9) << record.config.ToString();
  }
}

TEST_F(TaskTunerTest, AfterAKillAtAnyTrialAResumedRunEndsWithAllTrials) {
  int asked = 0;
  sinks_.should_stop = [&] { return ++asked > 13; };
  const NetworkResult interrupted = TuneAlone(request_, trials_, measurer_, sinks_);
  EXPECT_TRUE(interrupted.interrupted);
  const TuneResult& cut = interrupted.tasks[0];
  EXPECT_LT(cut.trials_measured, 14);
  EXPECT_EQ(static_cast<int>(logged_.size()), cut.trials_measured);
  sinks_.should_stop = {};
  request_.resume = logged_;
  const TuneResult rest = Tune();
  EXPECT_EQ(rest.trials_measured + cut.trials_measured, 40);
}

TEST_F(TaskTunerTest, FailuresAreCountedLoggedAndSurvived) {
  const ConfigSpace space = fake_.Space(request_.workload, request_.cpu);
  for (uint64_t i = 0; i < space.size(); i += 2) {
    measurer_.failures[space.At(i).ToString()] = TrialStatus::kRunCrash;
  }
  TaskView last;
  sinks_.on_progress = [&](const NetworkProgress& progress) { last = progress.tasks[0]; };
  request_.options.searcher = "random";
  const TuneResult result = Tune();
  ASSERT_TRUE(result.best.has_value());
  EXPECT_GT(result.failures.at(TrialStatus::kRunCrash), 5);
  EXPECT_EQ(last.failures, result.failures.at(TrialStatus::kRunCrash));
  EXPECT_EQ(last.trials, 40);
  EXPECT_EQ(last.best_seconds, result.best->seconds);
  EXPECT_EQ(logged_[0].detail, "told to fail");
}

TEST_F(TaskTunerTest, EndsWhenTheSpaceIsExhausted) {
  trials_ = 100000;
  request_.options.retime_rounds = 0;
  const TuneResult result = Tune();
  EXPECT_EQ(result.trials_measured, static_cast<int>(*fake_.Space({}, {}).CountValid()));
}

TEST_F(TaskTunerTest, SharesTrialsAmongTemplatesByPromise) {
  const FakeTemplate slow(FakeTemplate::Size::kSmall, "slow", 10);
  FakeMeasurer measurer({&fake_, &slow});
  request_.templates = {&slow, &fake_};
  trials_ = 80;
  const TuneResult result = TuneOne(request_, trials_, measurer, sinks_);
  EXPECT_EQ(result.best->template_name, "fake");
  int slow_trials = 0;
  for (const Record& record : result.records) slow_trials += record.template_name == "slow";
  EXPECT_GE(slow_trials, 8) << "a batch";
  EXPECT_LE(slow_trials, 30);
}

TEST_F(TaskTunerTest, TriesEveryTemplateOnceBeforeAnyTwice) {
  const FakeTemplate slow(FakeTemplate::Size::kSmall, "slow", 10),
      fast(FakeTemplate::Size::kSmall, "fast", 0.1);
  FakeMeasurer measurer({&slow, &fake_, &fast});
  request_.templates = {&slow, &fake_, &fast};
  TaskTuner tuner(request_, measurer, {});
  tuner.Begin();
  EXPECT_EQ(tuner.Search({.trials = 8}), 8);
  std::vector<std::string> tried;
  for (const Record& record : tuner.book().records()) tried.push_back(record.template_name);
  EXPECT_EQ(tried,
            (std::vector<std::string>{"slow", "fake", "fast", "fast", "fast", "fast", "fast", "fast"}));
}

class CountingTemplate : public FakeTemplate {
 public:
  CountingTemplate(const std::string& name, double flops)
      : FakeTemplate(Size::kSmall, name), features_({.flops = flops}) {}
  LoopFeatures Features(const ConvWorkload&, const Config&, const Target&) const override {
    return features_;
  }

 private:
  LoopFeatures features_;
};

TEST_F(TaskTunerTest, TriesTheTemplateThatMultipliesLeastFirstAndThenTheMostGeneral) {
  const CountingTemplate general("general", 9), some("some", 5), few("few", 4);
  request_.templates = {&general, &some, &few};
  const TaskTuner tuner(request_, measurer_, {});
  EXPECT_EQ(tuner.request().templates, (std::vector<const ConvTemplate*>{&few, &general, &some}));
}

// Three templates, one of them with few valid configs.
std::vector<Record> RecordsOf(const std::string& searcher, uint64_t seed, FakeMeasurer& measurer,
                              std::vector<const FakeTemplate*> fakes) {
  TuneRequest request;
  request.workload = ParseWorkload("mb1ic64ih56oc64oh56kh1");
  request.templates.assign(fakes.begin(), fakes.end());
  request.options.batch = 8;
  request.options.searcher = searcher;
  request.options.seed = seed;
  std::vector<Record> records;
  NetworkSinks sinks;
  sinks.on_record = [&](const Record& record) { records.push_back(record); };
  TuneOne(request, 90, measurer, sinks);
  return records;
}

class QueueTest : public ::testing::Test {
 protected:
  std::vector<const FakeTemplate*> fakes() const { return {&small_, &slow_, &huge_}; }
  const FakeTemplate small_, slow_{FakeTemplate::Size::kSmall, "slow", 1.2},
      huge_{FakeTemplate::Size::kHugeSparse, "huge", 0.9};
};

TEST_F(QueueTest, OneTrialAtATimeGivesTheRecordsThatItAlwaysGave) {
  const std::map<std::string, uint64_t> known = {{"random", 0x6fc629ff852e7fd7},
                                                 {"ga", 0xaddb7351acd50287},
                                                 {"grid", 0x4df34654415331fa},
                                                 {"coordinate", 0x4f2745c2ef7dd519}};
  for (const auto& [searcher, fingerprint] : known) {
    FakeMeasurer measurer(fakes());
    uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const Record& r : RecordsOf(searcher, 1, measurer, fakes())) {
      for (const char c : fmt::format("{} {} {} {} {} {}\n", r.purpose, r.template_name, r.config.ToString(),
                                      r.seconds, r.early_stopped, r.sample_seconds.size()))
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    EXPECT_EQ(hash, fingerprint) << searcher;
  }
}

TEST_F(QueueTest, ResultsMayComeOutOfOrder) {
  for (const char* searcher : {"random", "ga", "grid", "coordinate", "xgb"}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      FakeMeasurer measurer(fakes());
      measurer.capacity = 4;
      measurer.random = TestRandom(seed);
      const std::vector<Record> records = RecordsOf(searcher, seed, measurer, fakes());
      EXPECT_EQ(measurer.most_in_flight, 4u);
      std::set<std::string> tried;
      const Record* best = nullptr;
      for (const Record& record : records) {
        const FakeTemplate& fake = record.template_name == "fake"   ? small_
                                   : record.template_name == "slow" ? slow_
                                                                    : huge_;
        EXPECT_DOUBLE_EQ(record.seconds, fake.Seconds(record.config)) << "each its own time";
        EXPECT_EQ(record.layouts, fake.Layouts(record.workload, record.config));
        const bool is_new = tried.insert(RecordKey(record).ToString()).second;
        EXPECT_EQ(is_new, record.purpose != kPurposeRetime) << searcher << " " << seed;
        if (!record.early_stopped && (!best || record.seconds < best->seconds)) best = &record;
      }
      EXPECT_EQ(tried.size(), 90u) << searcher << " " << seed;
      FakeMeasurer one_at_a_time(fakes());
      double alone = 1;
      for (const Record& record : RecordsOf(searcher, seed, one_at_a_time, fakes()))
        alone = std::min(alone, record.seconds);
      ASSERT_NE(best, nullptr);
      EXPECT_LT(best->seconds, 1.2 * alone) << searcher << " " << seed;
    }
  }
}

// Within a batch of a searcher that does not look at times, nothing depends on the order.
TEST_F(QueueTest, TheOrderOfResultsDecidesNothingThatItNeedNot) {
  const auto configs = [&](uint64_t order) {
    FakeMeasurer measurer(fakes());
    measurer.capacity = 4;
    measurer.random = TestRandom(order);
    std::set<std::string> tried;
    for (const Record& record : RecordsOf("random", 3, measurer, fakes())) {
      if (record.purpose == kPurposeSearch) tried.insert(RecordKey(record).ToString());
    }
    return tried;
  };
  for (uint64_t order = 2; order < 6; ++order) EXPECT_EQ(configs(order), configs(1)) << order;
}

TEST_F(QueueTest, RecordsAreOfTheMachineThatMeasured) {
  class Elsewhere : public FakeMeasurer {
   public:
    using FakeMeasurer::FakeMeasurer;
    std::pair<Ticket, TrialResult> Next() override {
      auto done = FakeMeasurer::Next();
      done.second.target.cores = 77;
      return done;
    }
  };
  Elsewhere measurer(fakes());
  for (const Record& record : RecordsOf("random", 1, measurer, fakes())) EXPECT_EQ(record.target.cores, 77);
}

TEST_F(TaskTunerTest, RefusesSenselessRequests) {
  const auto why = [&](ErrorCode code) {
    try {
      Tune();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  trials_ = -3;
  EXPECT_THAT(why(ErrorCode::kUsage), HasSubstr("trials is -3 (allowed: at least 0)"));
  trials_ = 10;
  request_.options.searcher = "annealing";
  EXPECT_THAT(why(ErrorCode::kUsage), HasSubstr("annealing"));
  request_.options.searcher = "ga";
  request_.templates.clear();
  EXPECT_THAT(why(ErrorCode::kNoCandidate), HasSubstr("mb1ic64"));
}

TEST(TaskTuner, TunesARealConvEndToEnd) {
  TuneRequest request;
  request.workload = ParseWorkload("mb1ic20ih9oc40oh9kh3ph1+bias+relu");
  request.cpu = TestCpu();
  request.templates = {&FindConvTemplate("portable")};
  ProcessMeasurer measurer({TILESMITH_TEST_WORKER});
  const TuneResult result = TuneOne(request, 60, measurer);
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.trials_measured, 60);
  EXPECT_TRUE(result.failures.empty()) << TrialStatusName(result.failures.begin()->first);
  EXPECT_GE(result.best->sample_seconds.size(), 15u) << "re-timed";
}

TEST(TemplatesToTune, LeavesThePortableOneForWhatNoOtherSupports) {
  const ConvWorkload workload = ParseWorkload("mb1ic64ih56oc64oh56kh3ph1");
  const Target portable = CapIsa(TestCpu(), Isa::kPortable);
  ASSERT_EQ(TemplatesToTune(workload, portable).size(), 1u);
  EXPECT_EQ(TemplatesToTune(workload, portable)[0]->Name(), "portable");
  for (const ConvTemplate* conv_template : TemplatesToTune(workload, TestCpu())) {
    EXPECT_TRUE(conv_template->Supports(workload, TestCpu()).ok);
    if (TestCpu().isa > Isa::kPortable) {
      EXPECT_NE(conv_template->Name(), "portable");
    }
  }
}

}  // namespace
}  // namespace tilesmith
