// Jobs of a farm with a real Redis: who does them, what comes back, what becomes of them when somebody is
// lost.
#include "tuner/farm/farm_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "layouts/base/error.h"
#include "tests/tuner/support/farm/farm_fixture.h"

namespace tilesmith {
namespace {

using ::testing::HasSubstr;

std::string Reversed(std::string text) {
  std::ranges::reverse(text);
  return text;
}

class FarmJobTest : public FarmTest {
 protected:
  FarmJobRequest Request(const std::string& kind = "turn") const {
    FarmJobRequest request;
    request.address = redis_->address();
    request.timing = QuickTiming();
    request.class_name = "fast";
    request.job.kind = kind;
    request.job.target = FarmTarget();
    request.job.text = "a text";
    request.stop = &stop_;
    return request;
  }
  // "turn" gives a file back the other way round; "wait" goes on until nobody wants it or it is stopped.
  std::map<std::string, FarmJobFunction> Jobs() {
    const auto turn = [this](const FarmJobDesk& desk) -> std::optional<FarmJobResult> {
      ++begun_;
      const std::string file = desk.file("in");
      EXPECT_TRUE(desk.report({"halfway", {{"half", file.substr(0, file.size() / 2)}}}));
      return FarmJobResult{desk.job.text + " and its end", {{"out", Reversed(file)}, {"empty", ""}}};
    };
    const auto wait = [this](const FarmJobDesk& desk) -> std::optional<FarmJobResult> {
      ++begun_;
      while (desk.report({"waiting"})) {
        if (IsStopped(desk.stop)) throw Error(ErrorCode::kInterrupted, "stopped");
        if (done_) return FarmJobResult{"done"};
        usleep(10000);
      }
      ++unwanted_;
      return std::nullopt;
    };
    return {{"turn", turn}, {"wait", wait}};
  }
  // What the last news say, and who gave them.
  FarmJobNews Run(FarmJobRequest request, const std::string& file = "abc") {
    request.on_warning = [this](const std::string& text) { warnings_ += text + "\n"; };
    FarmJobRun run(std::move(request));
    run.Put("in", file);
    FarmJobNews last;
    run.Run([&](const FarmJobNews& news) { last = news; });
    EXPECT_TRUE(last.last);
    return last;
  }
  ErrorCode CodeOfRun(const FarmJobRequest& request, const std::string& mentions) {
    try {
      Run(request);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(mentions));
      return error.code();
    }
    ADD_FAILURE() << "no error";
    return ErrorCode{};
  }
  void AwaitBegun(int times) const {
    for (const double end = NowSeconds() + 20; NowSeconds() < end && begun_ < times;) usleep(10000);
    EXPECT_EQ(begun_, times);
  }

  StopFlag stop_ = false;
  std::atomic<bool> done_ = false;
  std::atomic<int> begun_ = 0, unwanted_ = 0;
  std::string warnings_;
};

TEST_F(FarmJobTest, IsDoneWithItsFilesWhichLeaveNothingBehind) {
  ThreadedWorker worker(redis_->address(), FarmWorkerOf("a"), 0.001, Jobs());
  AwaitWorkers(1);
  std::string large((size_t{9} << 20) + 7, 'x');
  for (size_t i = 0; i < large.size(); i += 1001) large[i] = static_cast<char>(i);
  const FarmJobNews news = Run(Request(), large);
  EXPECT_EQ(news.worker, "a");
  EXPECT_EQ(news.text, "a text and its end");
  EXPECT_EQ(news.files.at("out"), Reversed(large));
  EXPECT_EQ(news.files.at("empty"), "");
  EXPECT_EQ(warnings_, "");
  for (const char* left : {"file", "open", "answers"})
    EXPECT_TRUE(redis_->Call({"KEYS", std::string("tilesmith:farm1:") + left + ":*"}).elements.empty())
        << left;
  FarmMeasurer measurer(FarmRequestOf(redis_->address()));
  measurer.Begin(FarmSession());
  ExpectAllMeasured(measurer, 5);
}

TEST_F(FarmJobTest, OfADeadWorkerBeginsElsewhere) {
  const FarmWorker dead = FarmWorkerOf("dead");
  farm_->Take(dead, 0.01);  // makes the group
  farm_->Announce(dead, {});
  FarmJobNews news;
  std::thread coordinator([&] {
    FarmJobRequest request = Request();
    request.on_warning = [this](const std::string& text) { warnings_ += text; };
    FarmJobRun run(std::move(request));
    run.Put("in", "abc");
    run.Run([&](const FarmJobNews& told) {
      news = told;
      if (told.text == "begun") run.Put("in", "abcdef");
    });
  });
  const FarmDelivery taken = TakeOne(dead);
  const FarmJob job = FarmJobFrom(taken.fields);
  EXPECT_TRUE(farm_->Report(job.coordinator, {job.id, "dead", 1, false, "", "begun"}));
  ThreadedWorker worker(redis_->address(), FarmWorkerOf("b"), 0.001, Jobs());
  coordinator.join();
  EXPECT_EQ(news.worker, "b");
  EXPECT_EQ(news.files["out"], "fedcba") << "with what was known by then";
  EXPECT_EQ(warnings_, "worker dead is gone, another one begins anew");
  EXPECT_FALSE(farm_->Report(job.coordinator, {job.id, "dead", 2})) << "nobody wants it any more";
}

TEST_F(FarmJobTest, ThatTakesItsWorkersDownIsRefusedAfterThree) {
  farm_->Take(FarmWorkerOf("a"), 0.01);
  farm_->Announce(FarmWorkerOf("a"), {});
  std::thread coordinator(
      [&] { EXPECT_EQ(CodeOfRun(Request(), "given to 3 workers"), ErrorCode::kEnvironment); });
  TakeOne(FarmWorkerOf("a"));
  for (const char* name : {"b", "c"}) {
    std::optional<FarmDelivery> claimed;
    for (const double end = NowSeconds() + 20; NowSeconds() < end && !claimed; usleep(20000))
      claimed = farm_->Reclaim(FarmWorkerOf(name), Stream());
    EXPECT_TRUE(claimed.has_value());
  }
  ThreadedWorker worker(redis_->address(), FarmWorkerOf("d"), 0.001, Jobs());
  coordinator.join();
  EXPECT_EQ(begun_, 0);
}

TEST_F(FarmJobTest, IsGivenBackByAWorkerThatIsStopped) {
  auto first = std::make_unique<ThreadedWorker>(redis_->address(), FarmWorkerOf("a"), 0.001, Jobs());
  AwaitWorkers(1);
  FarmJobNews news;
  std::thread coordinator([&] { news = Run(Request("wait")); });
  AwaitBegun(1);
  first->Stop();
  EXPECT_EQ(first->why_ended(), "");
  const ThreadedWorker second(redis_->address(), FarmWorkerOf("b"), 0.001, Jobs());
  AwaitBegun(2);
  done_ = true;
  coordinator.join();
  EXPECT_EQ(news.worker, "b");
  EXPECT_EQ(news.text, "done");
}

TEST_F(FarmJobTest, EndsWithItsCoordinator) {
  const ThreadedWorker worker(redis_->address(), FarmWorkerOf("a"), 0.001, Jobs());
  AwaitWorkers(1);
  std::thread coordinator(
      [&] { EXPECT_EQ(CodeOfRun(Request("wait"), "interrupted"), ErrorCode::kInterrupted); });
  AwaitBegun(1);
  stop_ = true;
  coordinator.join();
  for (const double end = NowSeconds() + 20; NowSeconds() < end && unwanted_ == 0;) usleep(10000);
  EXPECT_EQ(unwanted_, 1);
}

TEST_F(FarmJobTest, BeginsAnewWhenTheRedisIsEmptied) {
  const ThreadedWorker worker(redis_->address(), FarmWorkerOf("a"), 0.001, Jobs());
  AwaitWorkers(1);
  FarmJobNews news;
  std::thread coordinator([&] { news = Run(Request("wait")); });
  AwaitBegun(1);
  redis_->Call({"FLUSHALL"});
  AwaitBegun(2);
  done_ = true;
  coordinator.join();
  EXPECT_EQ(news.text, "done");
  EXPECT_EQ(unwanted_, 1);
  EXPECT_THAT(warnings_, HasSubstr("begins anew"));
}

TEST_F(FarmJobTest, AHostileMessageCostsAMessage) {
  const ThreadedWorker worker(redis_->address(), FarmWorkerOf("a"), 0.001, Jobs());
  AwaitWorkers(1);
  const auto add = [&](const std::string& stream, const std::vector<std::string>& fields) {
    std::vector<std::string> words = {"XADD", stream, "*"};
    words.insert(words.end(), fields.begin(), fields.end());
    redis_->Call(words);
  };
  add(Stream(), {"job", "turn"});
  add(Stream(), {"job", "../../turn", "id", "1", "from", "c"});
  add(Stream(), {"job", "turn", "id", "1", "from", "c", "target", "{\xff", "text", "", "files", "{}"});
  FarmFields fields = ToFields(FarmJob{"1", "c", "turn", FarmTarget(), "", {}});
  for (const char* files :
       {"[]", R"({"in":-1})", R"({"in":1e300})", R"({"../in":1})", R"({"a":2147483647,"b":2147483647})"}) {
    fields["files"] = files;
    std::vector<std::string> flat;
    for (const auto& [name, value] : fields) flat.insert(flat.end(), {name, value});
    add(Stream(), flat);
    EXPECT_THROW(FarmJobFrom(fields), Error) << files;
  }
  FarmJobRequest other = Request();
  other.job.target.version = "9.9";
  EXPECT_EQ(CodeOfRun(other, "tilesmith 9.9"), ErrorCode::kEnvironment);
  other = Request();
  other.job.target.model = "Other CPU";
  EXPECT_EQ(CodeOfRun(other, "Other CPU"), ErrorCode::kEnvironment);
  EXPECT_EQ(CodeOfRun(Request("dance"), "does no dance"), ErrorCode::kEnvironment);
  EXPECT_EQ(begun_, 0);

  // An answer that is none, by whoever gave it.
  FarmJobNews news;
  std::thread coordinator([&] { news = Run(Request("wait")); });
  AwaitBegun(1);
  const std::string open = redis_->Call({"KEYS", "tilesmith:farm1:open:*"}).elements.at(0).text;
  const std::string answers = "tilesmith:farm1:answers:" + open.substr(open.rfind(':') + 1);
  add(answers, {"nonsense", "1"});
  add(answers, {"id", "job-1", "worker", "a", "number", "1", "last", "0", "refused", "", "text", "", "files",
                R"({"plan":7})"});
  for (const double end = NowSeconds() + 20;
       NowSeconds() < end && redis_->Call({"XLEN", answers}).integer > 1;)
    usleep(10000);
  done_ = true;
  coordinator.join();
  EXPECT_EQ(news.text, "done");
  EXPECT_THAT(warnings_, HasSubstr("field \"id\" is missing"));
  EXPECT_THAT(warnings_, HasSubstr("file plan is not there"));
}

TEST_F(FarmJobTest, AnEndThatIsNoneIsAskedForAgainAFewTimes) {
  const ThreadedWorker worker(redis_->address(), FarmWorkerOf("a"), 0.001, Jobs());
  AwaitWorkers(1);
  FarmJobRun run(Request());
  run.Put("in", "abc");
  try {
    run.Run([](const FarmJobNews& news) {
      if (news.last) throw Error(ErrorCode::kUsage, "a plan for another network");
    });
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("3 times, by what is no answer: a plan for another network"));
  }
  EXPECT_EQ(begun_, 3);
}

}  // namespace
}  // namespace tilesmith
