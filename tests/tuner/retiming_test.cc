#include <gtest/gtest.h>

#include "tests/support/test_cpu.h"
#include "tests/tuner/support/fake_template.h"
#include "tests/tuner/support/tune_one.h"
#include "tuner/task_tuner.h"

namespace tilesmith {
namespace {

// A machine whose clock changes: trial number i takes (1 + drift * i) as long as it should.
class DriftingMeasurer : public FakeMeasurer {
 public:
  DriftingMeasurer(const FakeTemplate* fake, double drift) : FakeMeasurer({fake}), drift_(drift) {}
  TrialResult Measure(const TrialRequest& request) override {
    const double factor = 1 + drift_ * static_cast<double>(requests.size());
    TrialResult result = FakeMeasurer::Measure(request);
    result.seconds *= factor;
    for (double& sample : result.sample_seconds) sample *= factor;
    result.early_stopped = result.seconds > request.stop_above_seconds;
    return result;
  }

 private:
  double drift_;
};

TEST(Retiming, ASlowDriftDoesNotDecideWhoWins) {
  // A third slower, or faster, over the whole run.
  for (double drift : {0.33 / 250, -0.25 / 250}) {
    const FakeTemplate fake;
    DriftingMeasurer measurer(&fake, drift);
    TuneRequest request;
    request.workload = ParseWorkload("mb1ic64ih14oc64oh14kh3ph1");
    request.cpu = TestCpu();
    request.templates = {&fake};
    const TuneResult result = TuneOne(request, 180, measurer);
    ASSERT_TRUE(result.best.has_value());
    EXPECT_EQ(result.best->purpose, kPurposeRetime) << drift;
    EXPECT_LE(fake.Seconds(result.best->config), 1.011e-3) << result.best->config.ToString();
    // Those timed again rank as they should.
    std::vector<const Record*> retimed;
    for (const Record& record : result.records) {
      if (record.purpose == kPurposeRetime) retimed.push_back(&record);
    }
    ASSERT_GE(retimed.size(), 12u);
    int wrong = 0;
    for (const Record* a : retimed) {
      for (const Record* b : retimed) {
        const double truth = fake.Seconds(a->config) / fake.Seconds(b->config);
        wrong += truth < 0.95 && a->seconds > b->seconds;
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Retiming, RoundsCompletedCountWhenItIsCutShort) {
  const FakeTemplate fake;
  FakeMeasurer measurer({&fake});
  const ConfigSpace space = fake.Space({}, {});
  std::vector<Record> contenders(3);
  for (size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].template_name = "fake";
    contenders[i].config = space.At(i);
  }
  int asked = 0;
  const auto retimed = TimeAgain(contenders, 3, measurer, [&] { return ++asked > 5; });
  ASSERT_EQ(retimed.size(), 3u);
  for (const Retimed& one : retimed) EXPECT_EQ(one.result.sample_seconds.size(), 5u) << "one round";
  for (const Retimed& one : TimeAgain(contenders, 3, measurer, [] { return true; })) {
    EXPECT_TRUE(one.result.sample_seconds.empty());
  }
}

TEST(Retiming, AConfigThatFailsThenIsNotTimedFurther) {
  const FakeTemplate fake;
  FakeMeasurer measurer({&fake});
  Record record;
  record.template_name = "fake";
  record.config = fake.Space({}, {}).At(0);
  measurer.failures[record.config.ToString()] = TrialStatus::kWrongAnswer;
  const auto retimed = TimeAgain({record}, 3, measurer, [] { return false; });
  EXPECT_EQ(retimed[0].result.status, TrialStatus::kWrongAnswer);
  EXPECT_EQ(measurer.requests.size(), 1u);
}

}  // namespace
}  // namespace tilesmith
