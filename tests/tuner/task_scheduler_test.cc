#include "tuner/task_scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace tilesmith {
namespace {

// A task whose trials are draws of limit * (1 + spread * u^power), u uniform: the best of t draws falls about
// as t^-power.
struct SimulatedTask {
  ScheduledTask scheduled;
  double limit = 1e-3, spread = 1, power = 0.5;
  double cost = 1;
};

class Simulation {
 public:
  Simulation(std::vector<SimulatedTask> tasks, uint64_t seed) : tasks_(std::move(tasks)), random_(seed) {
    curves_.resize(tasks_.size());
    trials_.resize(tasks_.size());
  }

  void Turn(size_t task, int trials = 16) {
    const SimulatedTask& t = tasks_[task];
    for (int i = 0; i < trials; ++i) {
      ++trials_[task];
      spent_ += t.cost;
      const double seconds = t.limit * (1 + t.spread * std::pow(random_.Unit(), t.power));
      std::vector<CurvePoint>& curve = curves_[task];
      if (curve.empty() || seconds < curve.back().best_seconds) curve.push_back({trials_[task], seconds});
    }
  }

  std::vector<TaskState> States() const {
    std::vector<TaskState> states;
    for (size_t i = 0; i < tasks_.size(); ++i) states.push_back({curves_[i], trials_[i], tasks_[i].cost});
    return states;
  }
  std::vector<ScheduledTask> scheduled() const {
    std::vector<ScheduledTask> scheduled;
    for (const SimulatedTask& task : tasks_) scheduled.push_back(task.scheduled);
    return scheduled;
  }
  double Seconds() const {
    std::vector<double> best;
    for (const auto& curve : curves_) best.push_back(curve.empty() ? 0 : curve.back().best_seconds);
    return NetworkSeconds(scheduled(), best);
  }
  // What the network would take with every task at its limit.
  double Limit() const {
    std::vector<double> best;
    for (const SimulatedTask& task : tasks_) best.push_back(task.limit);
    return NetworkSeconds(scheduled(), best);
  }
  double spent() const { return spent_; }
  const std::vector<int>& trials() const { return trials_; }
  const std::vector<SimulatedTask>& tasks() const { return tasks_; }

 private:
  std::vector<SimulatedTask> tasks_;
  RandomSource random_;
  std::vector<std::vector<CurvePoint>> curves_;
  std::vector<int> trials_;
  double spent_ = 0;
};

// Tasks as a network has them: times over two decades, weights 1 to 6, curves of many shapes, and trials that
// cost a fixed overhead and some runs.
std::vector<SimulatedTask> RandomNetwork(uint64_t seed, size_t tasks = 20) {
  RandomSource random(seed);
  std::vector<SimulatedTask> network;
  for (size_t i = 0; i < tasks; ++i) {
    SimulatedTask task;
    task.limit = 3e-5 * std::pow(100, random.Unit());
    task.spread = 0.05 * std::pow(40, random.Unit());
    task.power = 0.2 + 0.8 * random.Unit();
    task.cost = 3e-3 + 10 * task.limit;
    task.scheduled = {1.0 + static_cast<double>(random.Below(6)), 2e8 * task.limit / 1e-3,
                      static_cast<int>(i % 5), 16, 1'000'000};
    network.push_back(task);
  }
  return network;
}

using Policy = std::function<size_t(const Simulation&)>;

double Tune(Simulation simulation, double budget, const Policy& next) {
  while (simulation.spent() < budget) simulation.Turn(next(simulation));
  return simulation.Seconds();
}

double TuneScheduled(Simulation simulation, double budget, uint64_t seed = 1) {
  TaskScheduler scheduler(simulation.scheduled(), {seed, false});
  while (simulation.spent() < budget) {
    const std::optional<size_t> next = scheduler.Next(simulation.States());
    if (!next) break;
    simulation.Turn(*next);
  }
  return simulation.Seconds();
}

size_t FewestTrials(const Simulation& simulation) {
  const std::vector<int>& trials = simulation.trials();
  return static_cast<size_t>(std::min_element(trials.begin(), trials.end()) - trials.begin());
}

size_t LeastTime(const Simulation& simulation) {
  size_t least = 0;
  const auto time = [&](size_t i) { return simulation.trials()[i] * simulation.tasks()[i].cost; };
  for (size_t i = 1; i < simulation.tasks().size(); ++i) {
    if (time(i) < time(least)) least = i;
  }
  return least;
}

TEST(TaskScheduler, BeatsRoundRobinAndEqualTimeOnSimulatedNetworks) {
  constexpr int kNetworks = 100;
  for (double budget : {15.0, 40.0}) {
    double ours = 0, round_robin = 0, equal_time = 0;  // what is left to gain
    for (uint64_t seed = 1; seed <= kNetworks; ++seed) {
      const Simulation start(RandomNetwork(seed), seed);
      const double a = TuneScheduled(start, budget) / start.Limit() - 1;
      const double b = Tune(start, budget, FewestTrials) / start.Limit() - 1;
      const double c = Tune(start, budget, LeastTime) / start.Limit() - 1;
      ours += a;
      round_robin += b;
      equal_time += c;
    }
    std::printf("budget %g: left to gain %.2f%%, round robin %.2f%%, equal time %.2f%%\n", budget,
                100 * ours / kNetworks, 100 * round_robin / kNetworks, 100 * equal_time / kNetworks);
    EXPECT_LT(ours, 0.93 * round_robin) << budget;
    EXPECT_LT(ours, 0.9 * equal_time) << budget;
  }
}

TEST(TaskScheduler, SameSeedAndStatesGiveTheSameChoices) {
  const Simulation start(RandomNetwork(3), 3);
  EXPECT_EQ(TuneScheduled(start, 20, 5), TuneScheduled(start, 20, 5));
}

TEST(TaskScheduler, WarmsUpRoundRobinAndThenFollowsTheGain) {
  std::vector<SimulatedTask> tasks = RandomNetwork(4, 3);
  Simulation simulation(tasks, 1);
  TaskScheduler scheduler(simulation.scheduled(), {});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(scheduler.Next(simulation.States()), i);
    simulation.Turn(i);
  }
  // A task with a hundredfold weight gets nearly all.
  tasks[1].scheduled.weight = 1000;
  Simulation heavy(tasks, 1);
  TaskScheduler biased(heavy.scheduled(), {1, false});
  for (int i = 0; i < 20; ++i) heavy.Turn(*biased.Next(heavy.States()));
  EXPECT_GE(heavy.trials()[1], 14 * 16);
}

TEST(TaskScheduler, ATaskThatNothingWorksForIsTriedFirstAndGivenUp) {
  const std::vector<SimulatedTask> tasks = RandomNetwork(4, 2);
  Simulation simulation(tasks, 1);
  simulation.Turn(1, 100);
  TaskScheduler scheduler(simulation.scheduled(), {});
  std::vector<TaskState> states = simulation.States();
  states[0].trials = 40;  // all failed
  EXPECT_EQ(scheduler.Next(states), 0u);
  states[0].trials = 64;
  EXPECT_EQ(scheduler.Next(states), 1u);
}

TEST(TaskScheduler, LimitsAreKept) {
  std::vector<SimulatedTask> tasks = RandomNetwork(5, 4);
  for (SimulatedTask& task : tasks) task.scheduled.most_trials = 48;
  Simulation simulation(tasks, 1);
  TaskScheduler scheduler(simulation.scheduled(), {1, false});
  while (const std::optional<size_t> next = scheduler.Next(simulation.States())) simulation.Turn(*next);
  for (int trials : simulation.trials()) EXPECT_EQ(trials, 48);
  std::vector<TaskState> states = simulation.States();
  for (TaskState& state : states) state = {state.curve, 16, 1, true};
  EXPECT_EQ(scheduler.Next(states), std::nullopt) << "exhausted";
}

TEST(TaskScheduler, AFlatCurveEndsItsTaskEarly) {
  const std::vector<CurvePoint> flat = {{1, 3e-3}, {20, 1.001e-3}, {150, 1e-3}};
  EXPECT_FALSE(TaskScheduler::IsFlat({flat, 60}));
  EXPECT_TRUE(TaskScheduler::IsFlat({flat, 200}));
  const std::vector<CurvePoint> falling = {{1, 3e-3}, {20, 1.1e-3}, {150, 1e-3}};
  EXPECT_FALSE(TaskScheduler::IsFlat({falling, 200}));
  EXPECT_TRUE(TaskScheduler::IsFlat({falling, 460})) << "the last gain is two thirds of the trials ago";
  TaskScheduler scheduler({{1, 1e9, 0, 16, 1000}}, {});
  const TaskState state = {flat, 200};
  EXPECT_EQ(scheduler.Next(std::span(&state, 1)), std::nullopt);
}

TEST(TaskScheduler, AFusedTaskCountsOnlyWhereItBeatsWhatItReplaces) {
  std::vector<ScheduledTask> tasks(3);
  tasks[0].weight = 3;
  tasks[2].weight = 2;
  tasks[2].replaces = {0, 1};
  EXPECT_DOUBLE_EQ(NetworkSeconds(tasks, std::vector<double>{1, 2, 9}), 3 * 1 + 2) << "slower: not used";
  EXPECT_DOUBLE_EQ(NetworkSeconds(tasks, std::vector<double>{1, 2, 2.5}), 5 - 2 * 0.5);
  EXPECT_DOUBLE_EQ(NetworkSeconds(tasks, std::vector<double>{1, 2, 0}), 5) << "not measured";
  tasks[2].replaced_seconds = 1;
  EXPECT_DOUBLE_EQ(NetworkSeconds(tasks, std::vector<double>{1, 2, 2.5}), 5 - 2 * 1.5);

  // Far behind after its first trials, it gets nothing more, but for curiosity.
  std::vector<SimulatedTask> simulated = RandomNetwork(6, 3);
  simulated[2].limit = 3 * (simulated[0].limit + simulated[1].limit);
  simulated[2].scheduled.replaces = {0, 1};
  simulated[2].scheduled.weight = 100;
  simulated[2].scheduled.kind = 77;
  Simulation simulation(simulated, 1);
  TaskScheduler scheduler(simulation.scheduled(), {1, false});
  for (int i = 0; i < 40; ++i) simulation.Turn(*scheduler.Next(simulation.States()));
  EXPECT_LE(simulation.trials()[2], 5 * 16);
}

TEST(TaskScheduler, SimilarTasksRaiseExpectations) {
  const std::vector<CurvePoint> slow = {{1, 1e-3}}, fast = {{1, 1e-4}};
  std::vector<ScheduledTask> tasks(2, {1, 1e9, 0, 16, 1000});
  const std::vector<TaskState> states = {{slow, 100}, {fast, 100}};
  const double similar = TaskScheduler(tasks, {}).ExpectedGain(0, states);
  tasks[1].kind = 1;
  EXPECT_GT(similar, 2 * TaskScheduler(tasks, {}).ExpectedGain(0, states));
}

}  // namespace
}  // namespace tilesmith
