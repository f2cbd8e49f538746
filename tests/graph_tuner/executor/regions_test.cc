// Schedules of regions, run on tensors whose cells say which row they hold.
#include "graph_tuner/executor/regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "layouts/base/sizes.h"
#include "tests/support/random.h"

namespace tilesmith {
namespace {

using testing::HasSubstr;
using Does = RegionAction::Does;

// The rows that row `row` depends on, wherever they are.
std::set<int64_t> RowsBehind(const RowWindows& windows, int64_t row) {
  std::set<int64_t> rows = {row};
  for (const RowWindow& window : windows) {
    std::set<int64_t> read;
    for (const int64_t from : rows) {
      int64_t start = 0;  // the largest with start * rows_each <= from * stride
      while (start * window.rows_each > from * window.stride) --start;
      while ((start + 1) * window.rows_each <= from * window.stride) ++start;
      for (int64_t tap = 0; tap < window.taps; ++tap) read.insert(start - window.before + tap);
    }
    rows = std::move(read);
  }
  return rows;
}

RowWindows RandomWindows(TestRandom& random) {
  RowWindows windows;
  const int64_t count = random.Pick(std::vector<int64_t>{0, 1, 1, 1, 2});
  for (int64_t i = 0; i < count; ++i) {
    RowWindow& window = windows.emplace_back();
    window.taps = random.Integer(1, 5);
    window.before = random.Integer(-1, window.taps + 1);
    window.stride = random.Pick(std::vector<int64_t>{1, 1, 1, 2, 3, 7});
    window.rows_each = random.Pick(std::vector<int64_t>{1, 1, 1, 2, 3, 5});
  }
  return windows;
}

TEST(RowWindows, ReadWhatCountingSays) {
  TestRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    const RowWindows windows = RandomWindows(random);
    const int64_t height = random.Integer(1, 12), first = random.Integer(0, 20);
    const RowRange result = {first, first + random.Integer(1, 6)};
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (int64_t row = result.first; row < result.last; ++row) {
      const std::set<int64_t> rows = RowsBehind(windows, row);
      low = std::min(low, *rows.begin()), high = std::max(high, *rows.rbegin() + 1);
    }
    const RowRange expected = {std::clamp<int64_t>(low, 0, height), std::clamp<int64_t>(high, 0, height)};
    EXPECT_EQ(RowsRead(windows, result, height), expected) << i;
    EXPECT_EQ(RowsRead(windows, {first, first}, height), RowRange());
  }
}

// A step whose rows have so many columns: what of them a part writes.
struct SimulatedStep {
  RegionStep step;
  int64_t columns = 1;

  std::vector<std::pair<int64_t, int64_t>> CellsOf(int64_t part) const {
    std::vector<std::pair<int64_t, int64_t>> cells;
    const TaskGrid& grid = step.grid;
    if (grid.row_group == 1) {
      const int64_t end = std::min((part + 1) * grid.part_units, step.height * grid.row_units);
      for (int64_t unit = part * grid.part_units; unit < end; ++unit) {
        for (int64_t column = 0; column < columns / grid.row_units; ++column)
          cells.emplace_back(unit / grid.row_units, unit % grid.row_units + column * grid.row_units);
      }
      return cells;
    }
    const int64_t tiles = CeilDiv(step.height, grid.row_group) * columns;
    const int64_t block = grid.part_units / grid.row_group;
    for (int64_t tile = part * block; tile < std::min((part + 1) * block, tiles); ++tile) {
      for (int64_t row = 0; row < grid.row_group; ++row) {
        const int64_t at = tile / columns * grid.row_group + row;
        if (at < step.height) cells.emplace_back(at, tile % columns);
      }
    }
    return cells;
  }
};

SimulatedStep RandomStep(TestRandom& random, int64_t images) {
  SimulatedStep made;
  RegionStep& step = made.step;
  step.images = images;
  step.height = random.Integer(1, 24);
  step.row_bytes = random.Pick(std::vector<int64_t>{1, 4, 60, 64, 200, 512});
  TaskGrid& grid = step.grid;
  grid.images = images;
  grid.height = step.height;
  grid.channels = random.Integer(1, 3);
  made.columns = random.Integer(1, 5);
  switch (random.Integer(0, 3)) {
    case 0:  // pixels
      grid.row_units = made.columns;
      grid.part_units = random.Integer(1, 3 * made.columns);
      break;
    case 1:  // tiles
      grid.row_group = random.Integer(2, 4);
      grid.row_units = made.columns;
      grid.part_units = grid.row_group * random.Integer(1, 2 * made.columns);
      grid.exact = grid.part_units / grid.row_group % made.columns == 0;
      grid.rows =
          CeilDiv(CeilDiv(step.height, grid.row_group) * made.columns * grid.row_group, grid.part_units);
      return made;
    default:  // rows
      grid.part_units = random.Pick(std::vector<int64_t>{1, 1, 1, 2, 3, 30});
  }
  grid.rows = CeilDiv(step.height * grid.row_units, grid.part_units);
  return made;
}

std::vector<SimulatedStep> RandomSteps(TestRandom& random, int64_t images) {
  std::vector<SimulatedStep> steps;
  const int64_t count = random.Integer(2, 6);
  for (int64_t i = 0; i < count; ++i) {
    SimulatedStep& made = steps.emplace_back(RandomStep(random, images));
    made.step.kept = i + 1 == count || random.Integer(0, 3) == 0;
    for (int64_t from = 0; from < i; ++from) {
      const bool chain = from + 1 == i, reads = random.Integer(0, 9) < (chain ? 8 : 2);
      if (reads)
        made.step.reads.push_back({static_cast<int>(from), made.step.reads.size(), RandomWindows(random)});
    }
  }
  for (int64_t i = 0; i + 1 < count; ++i) {
    const bool read = std::ranges::any_of(steps, [&](const SimulatedStep& by) {
      return std::ranges::any_of(by.step.reads, [&](const RegionStep::Read& read) { return read.step == i; });
    });
    if (read) continue;
    steps[i].step.kept = true;
    steps[i].step.blocks = random.Integer(1, 3);
    steps[i].step.shifts_blocks = false;
  }
  return steps;
}

// Runs the actions of all segments on one image. Each segment sees its own buffers, and of results that exist
// whole what it has written itself: the others run at the same time.
class Simulation {
 public:
  Simulation(const std::vector<SimulatedStep>& steps, const RegionSchedule& schedule)
      : steps_(steps), schedule_(schedule) {
    for (const SimulatedStep& step : steps)
      writers_.emplace_back(static_cast<size_t>(step.step.height * step.columns), -1);
  }

  void Run() {
    CheckBuffers();
    ASSERT_EQ(std::ssize(schedule_.actions), schedule_.segments);
    for (segment_ = 0; segment_ < schedule_.segments && !Failed(); ++segment_) {
      buffers_.clear();
      bases_.assign(steps_.size(), 0);
      next_part_.assign(steps_.size(), 0);
      for (size_t i = 0; i < steps_.size(); ++i)
        buffers_.emplace_back(static_cast<size_t>(schedule_.buffer_rows[i] * steps_[i].columns), -1);
      touched_.assign(steps_.size(), {});
      for (const RegionAction& action : schedule_.actions[static_cast<size_t>(segment_)]) {
        if (Failed()) return;
        Do(action);
      }
      for (const std::set<int64_t>& rows : touched_) computed_rows_ += std::ssize(rows);
    }
    if (Failed()) return;
    int64_t result_rows = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      result_rows += steps_[i].step.height;
      if (!steps_[i].step.kept) continue;
      EXPECT_EQ(std::ranges::count(writers_[i], -1), 0) << "step " << i;
    }
    EXPECT_EQ(schedule_.computed_rows, computed_rows_);
    EXPECT_EQ(schedule_.result_rows, result_rows);
  }

 private:
  static bool Failed() { return testing::Test::HasFailure(); }
  // What nobody comes to read has a buffer of no rows.
  bool IsBuffered(size_t step) const { return schedule_.buffer_rows[step] > 0 || !steps_[step].step.kept; }

  void CheckBuffers() {
    int64_t end = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!IsBuffered(i)) continue;
      EXPECT_GE(schedule_.buffer_offsets[i], end);
      EXPECT_EQ(schedule_.buffer_offsets[i] % 64, 0);
      end = schedule_.buffer_offsets[i] +
            schedule_.buffer_rows[i] * steps_[i].step.blocks * steps_[i].step.row_bytes;
    }
    EXPECT_GE(schedule_.buffer_bytes, end);
  }

  int64_t& Buffered(size_t step, int64_t row, int64_t column) {
    const int64_t at = row - bases_[step];
    if (at < 0 || at >= schedule_.buffer_rows[step]) {
      ADD_FAILURE() << "row " << row << " of step " << step << " is not in its buffer";
      static int64_t nowhere;
      return nowhere = -1;
    }
    return buffers_[step][static_cast<size_t>(at * steps_[step].columns + column)];
  }
  int& Writer(size_t step, int64_t row, int64_t column) {
    return writers_[step][static_cast<size_t>(row * steps_[step].columns + column)];
  }

  void Do(const RegionAction& action) {
    const auto i = static_cast<size_t>(action.step);
    SCOPED_TRACE(testing::Message() << "segment " << segment_ << ", step " << i << ", action "
                                    << static_cast<int>(action.does) << " of " << action.first << " to "
                                    << action.last);
    switch (action.does) {
      case Does::kMove:
        return Move(i, action);
      case Does::kKeep:
        for (int64_t row = action.first; row < action.last; ++row) {
          for (int64_t column = 0; column < steps_[i].columns; ++column) {
            EXPECT_EQ(Buffered(i, row, column), row);
            Write(i, row, column);
          }
        }
        return;
      case Does::kCompute:
        EXPECT_GE(action.first, next_part_[i]);
        EXPECT_LT(action.first, action.last);
        ASSERT_LE(action.last, steps_[i].step.grid.rows);
        next_part_[i] = action.last;
        for (int64_t part = action.first; part < action.last && !Failed(); ++part) Compute(i, part);
    }
  }

  void Move(size_t i, const RegionAction& action) {
    ASSERT_TRUE(IsBuffered(i));
    const int64_t columns = steps_[i].columns, at = action.first - bases_[i];
    if (action.first < action.last) {
      ASSERT_GE(at, 0);
      ASSERT_LE(action.last - bases_[i], schedule_.buffer_rows[i]);
      const auto begin = buffers_[i].begin();
      std::copy(begin + at * columns, begin + (action.last - bases_[i]) * columns, begin);
    }
    bases_[i] = action.first;
  }

  void Write(size_t i, int64_t row, int64_t column) {
    EXPECT_TRUE(steps_[i].step.kept);
    EXPECT_EQ(Writer(i, row, column), -1) << "row " << row << " is written twice";
    Writer(i, row, column) = segment_;
  }

  void Compute(size_t i, int64_t part) {
    const auto cells = steps_[i].CellsOf(part);
    std::set<int64_t> rows;
    for (const auto& [row, column] : cells) rows.insert(row);
    for (const int64_t row : rows) {
      touched_[i].insert(row);
      for (const RegionStep::Read& read : steps_[i].step.reads) CheckRead(read, row);
    }
    for (const auto& [row, column] : cells) {
      if (IsBuffered(i))
        Buffered(i, row, column) = row;
      else
        Write(i, row, column);
    }
  }

  void CheckRead(const RegionStep::Read& read, int64_t by_row) {
    const auto from = static_cast<size_t>(read.step);
    for (const int64_t row : RowsBehind(read.rows, by_row)) {
      if (row < 0 || row >= steps_[from].step.height) continue;
      for (int64_t column = 0; column < steps_[from].columns; ++column) {
        if (IsBuffered(from))
          EXPECT_EQ(Buffered(from, row, column), row) << "read of step " << from;
        else
          EXPECT_EQ(Writer(from, row, column), segment_) << "read of step " << from << ", row " << row;
      }
    }
  }

  const std::vector<SimulatedStep>& steps_;
  const RegionSchedule& schedule_;
  int segment_ = 0;
  std::vector<std::vector<int>> writers_;      // by step: which segment wrote a cell of the whole result
  std::vector<std::vector<int64_t>> buffers_;  // by step: the row that a cell holds
  std::vector<int64_t> bases_, next_part_;
  std::vector<std::set<int64_t>> touched_;
  int64_t computed_rows_ = 0;
};

std::vector<RegionStep> StepsOf(const std::vector<SimulatedStep>& simulated) {
  std::vector<RegionStep> steps;
  for (const SimulatedStep& step : simulated) steps.push_back(step.step);
  return steps;
}

TEST(ScheduleRegion, RowsAreThereWhenTheyAreRead) {
  for (uint64_t seed = 0; seed < 4000 && !testing::Test::HasFailure(); ++seed) {
    TestRandom random(seed);
    const int64_t images = random.Pick(std::vector<int64_t>{1, 1, 1, 2, 3, 6});
    const std::vector<SimulatedStep> simulated = RandomSteps(random, images);
    const std::vector<RegionStep> steps = StepsOf(simulated);
    ASSERT_EQ(WhyNoRegion(steps), "") << "seed " << seed;
    for (const int64_t band_rows : {1, 2, 3, 5, 1000000}) {
      for (const int threads : {1, 2, 3, 5}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", bands of " << band_rows << ", " << threads
                                        << " threads, " << images << " images");
        const RegionSchedule schedule = ScheduleRegion(steps, band_rows, threads);
        EXPECT_EQ(schedule.images, images);
        EXPECT_EQ(schedule.segments, images % threads == 0 ? 1 : threads);
        Simulation(simulated, schedule).Run();
      }
    }
  }
}

// Steps of `height` rows each, which read three rows of the one before.
std::vector<RegionStep> Chain(int count, int64_t height) {
  std::vector<RegionStep> steps;
  for (int i = 0; i < count; ++i) {
    RegionStep& step = steps.emplace_back();
    step.grid = {.rows = height, .height = height};
    step.height = height;
    step.row_bytes = 256;
    step.kept = i + 1 == count;
    if (i > 0) step.reads.push_back({i - 1, 0, {{.before = 1, .taps = 3}}});
  }
  return steps;
}

TEST(ScheduleRegion, BuffersHoldWindowsAndHalfAsMuchAgain) {
  const std::vector<RegionStep> steps = Chain(3, 100);
  EXPECT_THAT(ScheduleRegion(steps, 1, 1).buffer_rows, testing::ElementsAre(5, 5, 0));
  EXPECT_THAT(ScheduleRegion(steps, 4, 1).buffer_rows, testing::ElementsAre(9, 9, 0));
  EXPECT_THAT(ScheduleRegion(steps, 1000, 1).buffer_rows, testing::ElementsAre(100, 100, 0));
  // Where two threads meet, rows of the first two steps are computed by both.
  EXPECT_EQ(ScheduleRegion(steps, 1, 1).computed_rows, 300);
  EXPECT_EQ(ScheduleRegion(steps, 1, 2).computed_rows, 300 + 4 + 2);
  EXPECT_EQ(ScheduleRegion(steps, 1, 2).result_rows, 300);
}

TEST(WhyNoRegion, SaysWhy) {
  const std::vector<RegionStep> chain = Chain(3, 8);
  EXPECT_EQ(WhyNoRegion(chain), "");
  const auto why = [&](const auto& change) {
    std::vector<RegionStep> steps = chain;
    change(steps);
    return WhyNoRegion(steps);
  };
  using Steps = std::vector<RegionStep>;
  EXPECT_THAT(why([](Steps& s) { s.resize(1); }), HasSubstr("at least two steps"));
  EXPECT_THAT(why([](Steps& s) { s[1].grid.height = 0; }), HasSubstr("step 2 computes no rows"));
  EXPECT_THAT(why([](Steps& s) { s[1].grid.exact = false; }), HasSubstr("step 2 computes no rows"));
  EXPECT_THAT(why([](Steps& s) { s[1].grid.images = 2; }), HasSubstr("step 2 computes no rows"));
  EXPECT_THAT(why([](Steps& s) { s[1].images = s[1].grid.images = 2; }), HasSubstr("number of images"));
  EXPECT_THAT(why([](Steps& s) { s[1].height = s[1].grid.height = 0; }), HasSubstr("step 2 has no rows"));
  EXPECT_THAT(why([](Steps& s) { s[0].grid.row_units = 0; }), HasSubstr("step 1 has no rows"));
  EXPECT_THAT(why([](Steps& s) { s[1].reads[0].step = 1; }), HasSubstr("not there yet"));
  EXPECT_THAT(why([](Steps& s) { s[2].reads[0].step = 0; }),
              HasSubstr("step 2 has a result that nobody reads"));
  const auto blocks_of = [](RegionStep& step) { step.blocks = 2, step.shifts_blocks = false; };
  EXPECT_THAT(why([&](Steps& s) { blocks_of(s[1]); }), HasSubstr("step 2 needs all rows of blocks"));
  EXPECT_THAT(why([](Steps& s) { s[0].blocks = 2, s[1].shifts_blocks = false; }),
              HasSubstr("step 2 needs all rows of blocks"));
  EXPECT_EQ(why([&](Steps& s) { blocks_of(s[2]); }), "");
  EXPECT_THAT(why([](Steps& s) { s[2].kept = false; }), HasSubstr("nobody reads"));
}

}  // namespace
}  // namespace tilesmith
