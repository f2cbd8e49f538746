#include "tuner/cost_model/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <random>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "tests/support/temporary_files.h"
#include "tests/tuner/support/measured_configs.h"
#include "tuner/cost_model/training_history.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

TrainingHistory HistoryOf(const std::vector<Record>& records) {
  TrainingHistory history;
  for (const Record& record : records) history.Add(record);
  return history;
}

double AccuracyOn(const CostModel& model, const std::vector<Record>& records) {
  const TrainingSet set = HistoryOf(records).ToTrainingSet(model.schema());
  return PairAccuracy(model.Predict(set.features), set.scores);
}

class EveryObjective : public ::testing::TestWithParam<Objective> {};

TEST_P(EveryObjective, OrdersConfigsItHasNotSeen) {
  const CostModel model = TrainCostModel(HistoryOf(MeasuredConfigs(kSampleWorkload, 300, 1)), GetParam());
  EXPECT_GT(AccuracyOn(model, MeasuredConfigs(kSampleWorkload, 200, 2)), 0.85);
}

TEST_P(EveryObjective, LearnsFromOtherTasks) {
  const CostModel model =
      TrainCostModel(HistoryOf(MeasuredConfigs("ic64ih28oc64oh28kh3ph1", 300, 1)), GetParam());
  EXPECT_GT(AccuracyOn(model, MeasuredConfigs(kSampleWorkload, 200, 2)), 0.7);
}

TEST_P(EveryObjective, IsTheSameAfterSavingAndLoading) {
  const CostModel model = TrainCostModel(HistoryOf(MeasuredConfigs(kSampleWorkload, 100, 1)), GetParam());
  const TemporaryDirectory folder;
  const std::string path = folder.File("model.json");
  SaveCostModel(model, path);
  const CostModel loaded = LoadCostModel(path);
  EXPECT_EQ(loaded.objective(), model.objective());
  EXPECT_EQ(loaded.schema().Names(), model.schema().Names());
  const TrainingSet set = HistoryOf(MeasuredConfigs(kSampleWorkload, 50, 3)).ToTrainingSet(model.schema());
  EXPECT_EQ(loaded.Predict(set.features), model.Predict(set.features));
}

TEST_P(EveryObjective, IsDeterministic) {
  const TrainingHistory history = HistoryOf(MeasuredConfigs(kSampleWorkload, 100, 1));
  const TrainingSet set = history.ToTrainingSet(FeatureSchema(history.Knobs()));
  EXPECT_EQ(TrainCostModel(history, GetParam()).Predict(set.features),
            TrainCostModel(history, GetParam()).Predict(set.features));
}

INSTANTIATE_TEST_SUITE_P(Objectives, EveryObjective,
                         ::testing::Values(Objective::kRegression, Objective::kPairwiseRank),
                         [](const auto& info) {
                           return info.param == Objective::kRegression ? "regression" : "pairwise_rank";
                         });

TEST(TrainingHistory, KnowsTheFastestConfigsOfSimilarTasks) {
  TrainingHistory history;
  std::map<std::string, Config> fastest;
  for (const char* workload :
       {"ic64ih56oc64oh56kh3ph1", "ic64ih28oc64oh28kh3ph1", "ic64ih28oc64oh28kh1", "ic512ih7oc512oh7kh1"}) {
    const std::vector<Record> records = MeasuredConfigs(workload, 40, 1 + fastest.size());
    for (const Record& record : records) history.Add(record);
    fastest[workload] = std::ranges::min_element(records, {}, &Record::seconds)->config;
  }
  const auto configs = [&](const char* template_name, size_t n) {
    return history.FastestConfigs(FindConvTemplate(template_name), ParseWorkload(kSampleWorkload), n);
  };
  const std::vector<Config> all = configs("direct", 9);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], fastest["ic64ih28oc64oh28kh3ph1"]);
  EXPECT_EQ(all[1], fastest["ic64ih56oc64oh56kh3ph1"]);
  EXPECT_EQ(all[2], fastest["ic64ih28oc64oh28kh1"]);
  EXPECT_EQ(all[3], fastest["ic512ih7oc512oh7kh1"]);
  EXPECT_EQ(configs("direct", 2), std::vector<Config>(all.begin(), all.begin() + 2));
  EXPECT_TRUE(configs("winograd", 9).empty());
}

TEST(TrainingHistory, ExamplesAreTriedButTeachNothing) {
  TrainingHistory history;
  const auto fastest_of = [](const std::vector<Record>& records) {
    return std::ranges::min_element(records, {}, &Record::seconds)->config;
  };
  const std::vector<Record> own = MeasuredConfigs("ic512ih7oc512oh7kh1", 40, 1),
                            similar = MeasuredConfigs("ic64ih56oc64oh56kh3ph1", 40, 2),
                            other = MeasuredConfigs("ic32ih112oc32oh112kh3ph1", 40, 3);
  for (const Record& record : own) history.Add(record);
  for (const std::vector<Record>* const records : {&other, &similar})
    for (const Record& record : *records) history.AddExample(record);
  EXPECT_EQ(history.size(), 40u);
  EXPECT_EQ(history.ToTrainingSet(FeatureSchema(history.Knobs())).scores.size(), 40u);
  EXPECT_EQ(history.FastestConfigs(FindConvTemplate("direct"), ParseWorkload(kSampleWorkload), 1),
            (std::vector<Config>{fastest_of(own), fastest_of(similar)}));
}

TEST(TrainingHistory, ForgetsAFastestConfigThatWasMeasuredAgain) {
  constexpr uint64_t kSeed = 5;
  std::vector<Record> records = MeasuredConfigs(kSampleWorkload, 40, kSeed);
  TrainingHistory history;
  for (const Record& record : records) history.Add(record);
  std::mt19937_64 random(kSeed);
  for (int change = 0; change < 60; ++change) {
    const auto fastest = std::ranges::min_element(records, {}, [](const Record& record) {
      return record.status == TrialStatus::kOk ? record.seconds : std::numeric_limits<double>::infinity();
    });
    EXPECT_EQ(history.FastestConfigs(FindConvTemplate("direct"), ParseWorkload(kSampleWorkload), 1),
              std::vector<Config>{fastest->config})
        << "seed " << kSeed << ", change " << change;
    Record& changed = change % 2 == 0 ? *fastest : records[random() % records.size()];
    if (random() % 4 == 0)
      changed.status = TrialStatus::kWrongAnswer;
    else
      changed.seconds *= std::uniform_real_distribution(0.5, 2.0)(random);
    history.Add(changed);
  }
}

TEST(CostModel, NamesTheColumnsThatMatter) {
  const CostModel model =
      TrainCostModel(HistoryOf(MeasuredConfigs(kSampleWorkload, 300, 1)), Objective::kRegression);
  const auto importance = model.Importance();
  ASSERT_FALSE(importance.empty());
  double total = 0;
  for (const auto& gain : importance) total += gain.share;
  EXPECT_NEAR(total, 1, 1e-6);
  EXPECT_GE(importance.front().share, importance.back().share);
}

class BrokenModel : public ::testing::Test {
 protected:
  void SetUp() override {
    SaveCostModel(TrainCostModel(HistoryOf(MeasuredConfigs(kSampleWorkload, 60, 1)), Objective::kRegression),
                  path_);
  }
  // The saved file with `from` replaced.
  void Replace(const std::string& from, const std::string& to) {
    std::string text = ReadTextFile(path_);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    WriteTextFile(path_, text.replace(at, from.size(), to));
  }
  std::string WhyRefused() const {
    try {
      LoadCostModel(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.what();
    }
    return "not refused";
  }
  const TemporaryDirectory folder_;
  const std::string path_ = folder_.File("broken_model.json");
};

TEST_F(BrokenModel, OtherFeatureVersionIsNamed) {
  Replace("\"feature_version\":" + std::to_string(kFeatureVersion), "\"feature_version\":77");
  EXPECT_THAT(WhyRefused(), HasSubstr("broken_model.json: feature_version is 77, this tilesmith has " +
                                      std::to_string(kFeatureVersion)));
}

TEST_F(BrokenModel, WrongColumnCountIsNamed) {
  Replace("\"columns\":", "\"columns\":1");
  EXPECT_THAT(WhyRefused(), HasSubstr("columns is 1"));
}

TEST_F(BrokenModel, BrokenTreesAreRefused) {
  Replace("\"learner\"", "\"lerner\"");
  EXPECT_THAT(WhyRefused(), HasSubstr("broken_model.json: the trees are not those that the checksum is of"));
}

TEST_F(BrokenModel, DeepNestingIsRefused) {
  Replace("\"trees\":", "\"more\":" + std::string(200'000, '[') + std::string(200'000, ']') + ",\"trees\":");
  EXPECT_THAT(WhyRefused(), HasSubstr("not a cost model"));
}

TEST_F(BrokenModel, AnythingElseIsNotAModel) {
  WriteTextFile(path_, "{\"torn");
  EXPECT_THAT(WhyRefused(), HasSubstr("not a cost model"));
  WriteTextFile(path_, "{}");
  EXPECT_THAT(WhyRefused(), HasSubstr("\"tilesmith_cost_model\" is missing"));
}

TEST(TrainingHistory, ReplacesWhatIsMeasuredAgainAndSkipsWhatTeachesNothing) {
  std::vector<Record> records = MeasuredConfigs(kSampleWorkload, 40, 1);
  TrainingHistory history = HistoryOf(records);
  EXPECT_EQ(history.size(), 40u);
  history.Add(records[0]);
  EXPECT_EQ(history.size(), 40u);
  Record unknown = records[0];
  unknown.template_name = "no_such_template";
  history.Add(unknown);
  Record lost = records[0];
  lost.status = TrialStatus::kWorkerLost;
  lost.config.Set("rows", 2);
  history.Add(lost);
  Record invalid = records[0];
  invalid.config.Set("rows", 12345);
  history.Add(invalid);
  EXPECT_EQ(history.size(), 40u);
}

TEST(TrainingHistory, HasNoModelBeforeItKnowsEnough) {
  EXPECT_EQ(HistoryOf(MeasuredConfigs(kSampleWorkload, 8, 1)).Model(Objective::kRegression), nullptr);
  EXPECT_NE(HistoryOf(MeasuredConfigs(kSampleWorkload, 64, 1)).Model(Objective::kRegression), nullptr);
}

TEST(TrainingHistory, ReturnsTheModelItWasStartedWith) {
  TrainingHistory history;
  history.Start(TrainCostModel(HistoryOf(MeasuredConfigs(kSampleWorkload, 60, 1)), Objective::kRegression));
  ASSERT_NE(history.Model(Objective::kRegression), nullptr);
  EXPECT_EQ(history.Model(Objective::kPairwiseRank), nullptr) << "that is another model";
}

TEST(PairAccuracy, CountsPairsInOrder) {
  const std::vector<float> truth = {1, 2, 3, 3};
  EXPECT_EQ(PairAccuracy(std::vector<float>{1, 2, 3, 4}, truth), 1.0);
  EXPECT_EQ(PairAccuracy(std::vector<float>{4, 3, 2, 1}, truth), 0.0);
  EXPECT_EQ(PairAccuracy(std::vector<float>{1, 1, 1, 1}, truth), 0.5);
  EXPECT_EQ(PairAccuracy(std::vector<float>{5, 5}, std::vector<float>{1, 1}), 0.5);
}

TEST(RecallOfBest, LooksAtThePredictedBest) {
  const std::vector<float> truth = {0.5F, 1.0F, 0.25F};
  EXPECT_EQ(RecallOfBest(std::vector<float>{3, 2, 1}, truth, 1), 0.5);
  EXPECT_EQ(RecallOfBest(std::vector<float>{3, 2, 1}, truth, 2), 1.0);
}

}  // namespace
}  // namespace tilesmith
