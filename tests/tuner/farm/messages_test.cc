// What lies in a farm's streams, and what of it is refused; no Redis.
#include "tuner/farm/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layouts/base/error.h"
#include "tests/support/refusal.h"
#include "tests/tuner/support/farm/simulated_farm.h"
#include "tuner/farm/redis.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FarmAddress, UrlsAreRead) {
  FarmAddress address = ParseFarmUrl("redis://queue");
  EXPECT_EQ(address.host, "queue");
  EXPECT_EQ(address.port, 6379);
  EXPECT_EQ(address.database, 0);
  address = ParseFarmUrl("redis://me:p%40ss:w@10.0.0.1:7000/3");
  EXPECT_EQ(address.user, "me");
  EXPECT_EQ(address.password, "p@ss:w");
  EXPECT_EQ(address.ToString(), "redis://10.0.0.1:7000/3");
  EXPECT_EQ(ParseFarmUrl("redis://:secret@[::1]:7000").ToString(), "redis://[::1]:7000/0");
  EXPECT_EQ(ParseFarmUrl("unix:///run/redis.sock?db=2").ToString(), "unix:///run/redis.sock?db=2");
}

TEST(FarmAddress, WhatIsWrongIsNamedWithoutThePassword) {
  for (const auto& [url, mentions] :
       std::vector<std::pair<std::string, std::string>>{{"http://queue", "begins neither"},
                                                        {"rediss://:secret@queue", "tunnel"},
                                                        {"redis://", "no host"},
                                                        {"redis://:secret@", "no host"},
                                                        {"redis://:sec%zzret@queue", "hexadecimal"},
                                                        {"redis://secret@queue", "no colon"},
                                                        {"redis://:secret@queue:0", "port is \"0\""},
                                                        {"redis://:secret@queue:65536", "1 to 65535"},
                                                        {"redis://:secret@queue:70/-1", "database"},
                                                        {"redis://:secret@[::1:70", "not closed"},
                                                        {"redis://que ue", "space"},
                                                        {"unix://run/redis.sock", "begins with /"},
                                                        {"unix:///run/redis.sock?x=2", "not known"}}) {
    const std::string message = Refusal(ErrorCode::kUsage, [&, text = url] { ParseFarmUrl(text); });
    EXPECT_THAT(message, HasSubstr(mentions)) << url;
    EXPECT_THAT(message, Not(HasSubstr("secret"))) << url;
    EXPECT_THAT(message, Not(HasSubstr("sec%zz"))) << url;
  }
}

TEST(FarmMessages, WhatIsWrittenIsRead) {
  const FarmTrial trial = {"00ff", "coordinator-1", "{session}", "{trial}"};
  const FarmTrial read = FarmTrialFrom(ToFields(trial));
  EXPECT_EQ(read.id, trial.id);
  EXPECT_EQ(read.coordinator, trial.coordinator);
  EXPECT_EQ(read.session, trial.session);
  EXPECT_EQ(read.trial, trial.trial);
  FarmWorker worker = FarmWorkerOf("w1");
  worker.cores = {1e-7, 2e-6};
  worker.doing = "direct of something";
  worker.trials = 12;
  worker.failures = 3;
  worker.refused = 1;
  worker.trials_per_second = 12.5;
  const FarmWorker same = FarmWorkerFrom("w1", ToFields(worker));
  EXPECT_EQ(ToFields(same), ToFields(worker));
  EXPECT_EQ(same.target, worker.target);
}

TEST(FarmMessages, WhatIsNoneIsRefusedByTheNameOfItsField) {
  const FarmFields right = ToFields(FarmTrial{"00ff", "c", "s", "t"});
  for (const char* name : {"id", "from", "session", "trial"}) {
    FarmFields fields = right;
    fields.erase(name);
    EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { FarmTrialFrom(fields); }),
                HasSubstr(std::string("\"") + name + "\""));
    fields[name] = std::string(size_t{1} << 17, 'x');
    EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { FarmTrialFrom(fields); }),
                HasSubstr(std::string("\"") + name + "\""));
  }
  FarmFields fields = right;
  for (const char* name : {"", "a b", "a\nb", "../x", "a:b"}) {
    fields["from"] = name;
    EXPECT_THAT(Refusal(ErrorCode::kUsage, [&] { FarmTrialFrom(fields); }), HasSubstr("\"from\"")) << name;
  }
  const FarmFields worker = ToFields(FarmWorkerOf("w1"));
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"trials", "-1"},
                                                                                    {"trials", "many"},
                                                                                    {"peak_flops", "inf"},
                                                                                    {"peak_flops", "nan"},
                                                                                    {"class", "a/b"}}) {
    FarmFields wrong = worker;
    wrong[name] = value;
    EXPECT_THAT(Refusal(ErrorCode::kUsage, [&, &own = wrong] { FarmWorkerFrom("w1", own); }), HasSubstr(name))
        << value;
  }
  FarmFields wrong = worker;
  wrong["target"] = "{";
  EXPECT_NE(Refusal(ErrorCode::kUsage, [&] { FarmWorkerFrom("w1", wrong); }), "");
}

TEST(FarmMessages, ATrialsIdIsOfAllThatItsResultDependsOn) {
  const MeasureSession session = FarmSession();
  TrialRequest request;
  request.template_name = "direct";
  request.config.Set("rows", 2);
  const std::string id = FarmTrialId(session, request, 0);
  EXPECT_EQ(id.size(), 16u);
  EXPECT_EQ(FarmTrialId(session, request, 0), id);
  EXPECT_NE(FarmTrialId(session, request, 1), id) << "another repetition";
  TrialRequest other = request;
  other.config.Set("rows", 3);
  EXPECT_NE(FarmTrialId(session, other, 0), id);
  other = request;
  other.template_name = "winograd";
  EXPECT_NE(FarmTrialId(session, other, 0), id);
  for (const auto& change : std::vector<void (*)(MeasureSession&)>{
           [](MeasureSession& s) { s.workload = ParseWorkload("ic16ih8oc16oh8kh3ph1+relu"); },
           [](MeasureSession& s) { s.conditions.cold_weights = !s.conditions.cold_weights; },
           [](MeasureSession& s) { s.cpu.version = "9.9"; }, [](MeasureSession& s) { s.seed = 77; }}) {
    MeasureSession changed = session;
    change(changed);
    EXPECT_NE(FarmTrialId(changed, request, 0), id);
  }
}

TEST(FarmMessages, SessionsThatAWorkerDoesNotTakeAreRefusedByName) {
  const MeasureSession session = FarmSession();
  EXPECT_EQ(WhyRefused(session, FarmTarget()), "");
  for (const auto& [change, mentions] : std::vector<std::pair<void (*)(MeasureSession&), const char*>>{
           {[](MeasureSession& s) { s.cpu.model = "Other CPU"; }, "Other CPU"},
           {[](MeasureSession& s) { s.cpu.version = "9.9"; }, "tilesmith 9.9"},
           {[](MeasureSession& s) { s.cpu.isa = Isa::kAvx512; }, "avx512"},
           {[](MeasureSession& s) { s.conditions.threads = 5; }, "4 cores, asked for 5"},
           {[](MeasureSession& s) { s.limits.run_seconds = 1e9; }, "at most 600 s"},
           {[](MeasureSession& s) { s.limits.build_seconds = -1; }, "at most 600 s"},
           {[](MeasureSession& s) { s.sampling.max_samples = 1 << 30; }, "samples"}}) {
    MeasureSession changed = session;
    change(changed);
    EXPECT_THAT(WhyRefused(changed, FarmTarget()), HasSubstr(mentions));
  }
  MeasureSession narrower = session;
  narrower.cpu.isa = Isa::kPortable;
  EXPECT_EQ(WhyRefused(narrower, FarmTarget()), "");
}

TEST(FarmMessages, ClassesAreCalledAfterTheMachine) {
  Target target = FarmTarget();
  EXPECT_EQ(DefaultClass(target), "farm-cpu-3000-avx2");
  target.model = "Intel(R) Xeon(R) CPU @ 2.20GHz";
  EXPECT_EQ(DefaultClass(target), "intel-r-xeon-r-cpu-2-20ghz-avx2");
  target.model = std::string(200, 'x');
  EXPECT_TRUE(IsFarmName(DefaultClass(target)));
  target.model = "";
  EXPECT_EQ(DefaultClass(target), "avx2");
}

}  // namespace
}  // namespace tilesmith
