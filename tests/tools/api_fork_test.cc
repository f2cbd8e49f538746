// Models and sessions in processes that fork.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "layouts/base/thread_team.h"
#include "tools/api/tilesmith.h"

namespace tilesmith {
namespace {

constexpr const char* kServed = "squeezenet1_1";
constexpr int kChildren = 100;

pid_t StartChild(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(60);
  bool good = false;
  try {
    good = body();
  } catch (...) {
  }
  _exit(good ? 0 : 1);
}

bool EndsWell(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

class ApiForkTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > static_cast<int>(ProcessCores().size())) GTEST_SKIP() << "too few cores";
    for (size_t i = 0; i < image_.size(); ++i) image_[i] = std::sin(static_cast<float>(i));
    expected_ = Scores(session_);
  }

  Model Load() const {
    return Model::Load(kServed, {.threads = GetParam(), .input_shapes = {"input=1x3x32x32"}});
  }
  std::vector<float> Scores(Session& session) const {
    std::vector<float> scores(1000, NAN);
    session.Run({image_.data()}, {scores.data()});
    return scores;
  }
  bool Serves(Session& session) const { return Scores(session) == expected_; }

  std::vector<float> image_ = std::vector<float>(3 * 32 * 32);
  const Model model_ = Load();
  Session session_ = model_.NewSession();
  std::vector<float> expected_;
};

TEST_P(ApiForkTest, AChildServesWithTheParentsSessionAndWithItsOwn) {
  for (int i = 0; i < kChildren; ++i) {
    ASSERT_TRUE(EndsWell(StartChild([&] {
      Session own = model_.NewSession();
      return Serves(session_) && Serves(own);
    }))) << i;
    ASSERT_TRUE(Serves(session_)) << i;
  }
  EXPECT_TRUE(EndsWell(StartChild([&] {
    Session own = Load().NewSession();
    return Serves(own) && EndsWell(StartChild([&] { return Serves(own) && Serves(session_); }));
  })));
}

TEST_P(ApiForkTest, SoDoChildrenOfAThreadBesideThoseThatRunAndLoad) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a fork may leave locks of the address sanitizer's allocator held by threads that are gone";
#endif
  std::atomic<bool> over = false, right = true;
  std::thread runs([&] {
    while (!over) right = Serves(session_) && right;
  });
  std::thread loads([&] {
    while (!over) Load();
  });
  for (int i = 0; i < kChildren; ++i)
    EXPECT_TRUE(EndsWell(StartChild([&] { return Serves(session_); }))) << i;
  over = true;
  runs.join();
  loads.join();
  EXPECT_TRUE(right);
}

TEST_P(ApiForkTest, ChildrenServeAtTheSameTimeOnCoresOfTheirs) {
  const std::vector<int>& cores = ProcessCores();
  Session pinned = model_.NewSession({.cores = {cores.begin(), cores.begin() + GetParam()}});
  EXPECT_TRUE(Serves(pinned));
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(StartChild([&] {
      bool right = true;
      for (int run = 0; run < 20; ++run) right = Serves(pinned) && Serves(session_) && right;
      cpu_set_t set;
      return right && sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_ISSET(cores[0], &set) &&
             CPU_COUNT(&set) == 1;
    }));
  }
  for (const pid_t child : children) EXPECT_TRUE(EndsWell(child));
}

INSTANTIATE_TEST_SUITE_P(Threads, ApiForkTest, testing::Values(1, 2), testing::PrintToStringParamName());

}  // namespace
}  // namespace tilesmith
