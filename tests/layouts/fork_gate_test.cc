// Processes that fork while teams are there, and while they run.
#include "layouts/base/fork_gate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "layouts/base/thread_team.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

constexpr int kForks = 100;

// Whether body is true in a child, which has ten seconds for it.
bool InChild(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

bool TeamWorks(ThreadTeam& team, int threads) {
  const TeamScope scope(team);
  std::vector<int> done(static_cast<size_t>(threads));
  for (int i = 0; i < 3; ++i) RunOnTeam(threads, [&](int thread) { ++done[static_cast<size_t>(thread)]; });
  return std::accumulate(done.begin(), done.end(), 0) == 3 * threads;
}

// A thread that runs a team again and again, away from forks as sessions are, until it is destroyed.
class Busy {
 public:
  Busy(ThreadTeam& team, std::mutex& mutex)
      : thread_([&] {
          while (!over_) {
            const AwayFromForks away;
            const std::lock_guard lock(mutex);
            TeamWorks(team, 2);
            ++runs_;
          }
        }) {
    while (runs_ == 0) std::this_thread::yield();
  }
  ~Busy() {
    over_ = true;
    thread_.join();
  }
  int64_t runs() const { return runs_; }

 private:
  std::atomic<bool> over_{false};
  std::atomic<int64_t> runs_{0};
  std::thread thread_;
};

TEST(Fork, TeamsHaveThreadsInTheChild) {
  ThreadTeam team(1e-4);
  for (const int threads : {1, 2, 3}) {
    for (int i = 0; i < kForks; ++i) {
      EXPECT_TRUE(TeamWorks(team, threads));
      ASSERT_TRUE(InChild([&] { return TeamWorks(team, threads) && TeamWorks(CurrentTeam(), threads); }))
          << i;
    }
  }
  EXPECT_TRUE(TeamWorks(team, 3));
}

TEST(Fork, AndInTheChildsChild) {
  ThreadTeam team(1e-4);
  EXPECT_TRUE(TeamWorks(team, 2));
  const unsigned forks = ForkCount();
  EXPECT_TRUE(InChild([&] {
    return TeamWorks(team, 2) && ForkCount() == forks + 1 &&
           InChild([&] { return TeamWorks(team, 3) && ForkCount() == forks + 2; }) && TeamWorks(team, 2);
  }));
  EXPECT_EQ(ForkCount(), forks);
}

// Teams end in the child, too, without threads to wait for.
TEST(Fork, TeamsEndInTheChild) {
  auto team = std::make_unique<ThreadTeam>(1e-4);
  EXPECT_TRUE(TeamWorks(*team, 3));
  EXPECT_TRUE(InChild([&] {
    team.reset();
    ThreadTeam another(0);
    return TeamWorks(another, 2);
  }));
}

TEST(Fork, FindsWhatOtherThreadsDoAtItsEnd) {
  ThreadTeam team(1e-4);
  std::mutex mutex;
  const Busy busy(team, mutex);
  for (int i = 0; i < kForks; ++i) {
    ASSERT_TRUE(InChild([&] {
      const AwayFromForks away;
      return mutex.try_lock() && TeamWorks(team, 2) && InChild([&] { return TeamWorks(team, 2); });
    })) << i;
  }
  const int64_t runs = busy.runs();
  for (const double end = NowSeconds() + 10; busy.runs() == runs && NowSeconds() < end;) usleep(100);
  EXPECT_GT(busy.runs(), runs) << "it goes on behind the forks";
}

TEST(Fork, WithinAScopeOfItsOwnWaitsForNobody) {
  const AwayFromForks outer;
  const AwayFromForks inner;
  EXPECT_TRUE(InChild([] {
    const AwayFromForks again;
    return InChild([] { return true; });
  }));
}

TEST(Fork, OfManyThreadsAtOnce) {
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ThreadTeam team(1e-4);
      for (int j = 0; j < 25; ++j) {
        {
          const AwayFromForks away;
          TeamWorks(team, 2);
        }
        good += InChild([&] { return TeamWorks(team, 2); }) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 100);
}

}  // namespace
}  // namespace tilesmith
