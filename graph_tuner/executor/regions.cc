#include "graph_tuner/executor/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "layouts/base/check.h"
#include "layouts/base/sizes.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

constexpr int64_t kLineBytes = 64;

int64_t Units(const RegionStep& step) { return step.height * step.grid.row_units; }

// Rows that parts touch, in whole or in part; of no parts none, where they would be.
RowRange RowsTouched(const RegionStep& step, RowRange parts) {
  const int64_t last = std::min(parts.last * step.grid.part_units, Units(step)), group = step.grid.row_group;
  const int64_t first = parts.first * step.grid.part_units / step.grid.row_units / group * group;
  if (parts.empty()) return {first, first};
  return {first, std::min(CeilDiv(CeilDiv(last, step.grid.row_units), group) * group, step.height)};
}
// Rows that are complete when all parts before this one are done.
int64_t RowsComplete(const RegionStep& step, int64_t parts) {
  const int64_t group = step.grid.row_group;
  return parts == step.grid.rows ? step.height
                                 : parts * step.grid.part_units / step.grid.row_units / group * group;
}
// Parts that rows lie in.
RowRange PartsOf(const RegionStep& step, RowRange rows) {
  if (rows.empty()) return {};
  const int64_t group = step.grid.row_group, last = CeilDiv(rows.last, group) * group;
  return {rows.first / group * group * step.grid.row_units / step.grid.part_units,
          std::min(CeilDiv(last * step.grid.row_units, step.grid.part_units), step.grid.rows)};
}

// A step's reader in the region.
struct Reader {
  int step = 0;
  RowWindows rows;
};

class Scheduler {
 public:
  Scheduler(std::span<const RegionStep> steps, int64_t band_rows, int threads)
      : steps_(steps), band_rows_(band_rows), readers_(steps.size()), buffered_(steps.size()) {
    const int64_t images = steps.front().images;
    schedule_.images = images;
    schedule_.segments = images % threads == 0 ? 1 : threads;
    for (size_t i = 0; i < steps.size(); ++i) {
      buffered_[i] = !steps[i].kept;
      for (const RegionStep::Read& read : steps[i].reads)
        readers_[static_cast<size_t>(read.step)].push_back({static_cast<int>(i), read.rows});
    }
  }

  RegionSchedule Run() {
    FindExtents();
    std::vector<int64_t> windows(steps_.size(), 0);
    capacity_.assign(steps_.size(), std::numeric_limits<int64_t>::max());
    for (int segment = 0; segment < schedule_.segments; ++segment) Walk(segment, windows);
    int64_t offset = 0;
    schedule_.buffer_rows.assign(steps_.size(), 0);
    schedule_.buffer_offsets.assign(steps_.size(), 0);
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!buffered_[i]) continue;
      capacity_[i] = schedule_.buffer_rows[i] = RowsOf(i, windows[i]);
      schedule_.buffer_offsets[i] = offset;
      // An odd number of lines, so that rows of several buffers do not share the sets of a cache.
      const Checked bytes = Checked(capacity_[i]) * steps_[i].row_bytes * steps_[i].blocks;
      offset = (Checked(offset) + (RoundUp(bytes.value(), 2 * kLineBytes)) + kLineBytes).value();
    }
    schedule_.buffer_bytes = offset;
    for (int segment = 0; segment < schedule_.segments; ++segment)
      schedule_.actions.push_back(Walk(segment, windows));
    Count();
    return std::move(schedule_);
  }

 private:
  // Parts that a segment computes of each step.
  using Extents = std::vector<RowRange>;

  // A buffer of half as much again as its window moves only now and then.
  int64_t RowsOf(size_t step, int64_t window) const {
    int64_t most = 0;
    for (const Extents& extents : extents_) {
      const RowRange rows = RowsTouched(steps_[step], extents[step]);
      most = std::max(most, rows.last - rows.first);
    }
    return std::min(most, window + CeilDiv(window, 2));
  }

  int64_t FirstRow(size_t step, int segment) const {
    return FirstRowOf(steps_[step].height, segment, schedule_.segments);
  }

  // What a segment must compute of a result that exists whole: parts, or whole rows where they are copied.
  RowRange OwnParts(size_t step, int segment) const {
    const RegionStep& s = steps_[step];
    if (buffered_[step]) return PartsOf(s, {FirstRow(step, segment), FirstRow(step, segment + 1)});
    const TaskRange parts = RowPartsOf(s.grid, segment, schedule_.segments);
    return {parts.begin, parts.end};
  }

  Extents ExtentsOf(int segment) const {
    Extents extents(steps_.size());
    for (size_t i = steps_.size(); i-- > 0;) {
      RowRange parts = steps_[i].kept ? OwnParts(i, segment) : RowRange();
      for (const Reader& reader : readers_[i]) {
        const RegionStep& by = steps_[static_cast<size_t>(reader.step)];
        const RowRange read = RowsTouched(by, extents[static_cast<size_t>(reader.step)]);
        const RowRange wanted = PartsOf(steps_[i], RowsRead(reader.rows, read, steps_[i].height));
        if (wanted.empty()) continue;
        parts = parts.empty()
                    ? wanted
                    : RowRange{std::min(parts.first, wanted.first), std::max(parts.last, wanted.last)};
      }
      extents[i] = parts;
    }
    return extents;
  }

  // Results that exist whole are written there as long as no two segments write the same part.
  void FindExtents() {
    while (true) {
      extents_.clear();
      for (int segment = 0; segment < schedule_.segments; ++segment) extents_.push_back(ExtentsOf(segment));
      bool changed = false;
      for (size_t i = 0; i < steps_.size(); ++i) {
        if (buffered_[i]) continue;
        for (int segment = 0; segment < schedule_.segments; ++segment) {
          const RowRange own = OwnParts(i, segment), all = extents_[static_cast<size_t>(segment)][i];
          if (all.empty() || all == own) continue;
          buffered_[i] = changed = true;
          break;
        }
      }
      if (!changed) return;
    }
  }

  // Where a walk is with a step.
  struct State {
    int64_t done = 0;  // parts before it
    int64_t base = 0;  // the buffer's first row
    int64_t kept = 0;  // rows before it
  };

  // The first row of a buffer that is still wanted.
  int64_t FirstLive(size_t step, const Extents& extents, const std::vector<State>& states) const {
    const RegionStep& s = steps_[step];
    const State& state = states[step];
    int64_t first = RowsTouched(s, {state.done, state.done}).first;
    if (s.kept) first = std::min(first, state.kept);
    for (const Reader& reader : readers_[step]) {
      const auto by = static_cast<size_t>(reader.step);
      const RowRange left = {states[by].done, extents[by].last};
      if (left.empty()) continue;
      first = std::min(first, RowsRead(reader.rows, RowsTouched(steps_[by], left), s.height).first);
    }
    return std::max(first, state.base);
  }

  // How far each step must be so that the last one is at this part: parts.
  std::vector<int64_t> Targets(const Extents& extents, const std::vector<State>& states, int64_t band,
                               int64_t bands) const {
    std::vector<int64_t> targets(steps_.size());
    for (size_t i = steps_.size(); i-- > 0;) {
      const RowRange all = extents[i];
      int64_t target = std::min(states[i].done, all.last);
      if (band + 1 == bands) {
        target = all.last;
      } else if (i + 1 == steps_.size()) {
        const int64_t first = RowsTouched(steps_[i], all).first;
        target = PartsOf(steps_[i], {first, first + (band + 1) * band_rows_}).last;
      } else if (steps_[i].kept) {
        target = all.first + CeilDiv((all.last - all.first) * (band + 1), bands);
      }
      for (const Reader& reader : readers_[i]) {
        const auto by = static_cast<size_t>(reader.step);
        const RowRange next = {states[by].done, targets[by]};
        if (next.empty()) continue;
        const RowRange read = RowsRead(reader.rows, RowsTouched(steps_[by], next), steps_[i].height);
        target = std::max(target, PartsOf(steps_[i], read).last);
      }
      targets[i] = std::clamp(target, states[i].done, std::max(states[i].done, all.last));
    }
    return targets;
  }

  // Whether what a step's parts before this one read is there.
  bool CanCompute(size_t step, int64_t target, const std::vector<State>& states) const {
    return std::ranges::all_of(steps_[step].reads, [&](const RegionStep::Read& read) {
      const auto from = static_cast<size_t>(read.step);
      const RowRange rows =
          RowsRead(read.rows, RowsTouched(steps_[step], {states[step].done, target}), steps_[from].height);
      return rows.empty() || PartsOf(steps_[from], rows).last <= states[from].done;
    });
  }

  // How far a step goes on towards its target: there, if that is not much more than what it computes in other
  // bands, or as far as can be.
  int64_t NextTarget(size_t step, int64_t target, int64_t bands, const Extents& extents,
                     const std::vector<State>& states) const {
    const RegionStep& s = steps_[step];
    const int64_t done = states[step].done;
    const int64_t usual = std::max(CeilDiv(extents[step].last - extents[step].first, bands),
                                   PartsOf(s, {0, std::min<int64_t>(s.grid.row_group, s.height)}).last);
    if (target <= done + 2 * usual) return CanCompute(step, target, states) ? target : done;
    int64_t next = done + 2 * usual;
    while (next > done && !CanCompute(step, next, states)) --next;
    return next;
  }

  // Computes a step's parts before this one.
  void Advance(size_t step, int segment, int64_t target, std::vector<State>& states,
               std::vector<int64_t>& windows, std::vector<RegionAction>& actions) const {
    using Does = RegionAction::Does;
    const Extents& extents = extents_[static_cast<size_t>(segment)];
    const RegionStep& s = steps_[step];
    State& state = states[step];
    const int index = static_cast<int>(step);
    if (target <= state.done) return;
    const RowRange next = RowsTouched(s, {state.done, target});
    if (buffered_[step]) {
      const int64_t live = FirstLive(step, extents, states);
      windows[step] = std::max(windows[step], next.last - live);
      if (next.last - state.base > capacity_[step]) {
        const int64_t written = RowsTouched(s, {extents[step].first, state.done}).last;
        actions.push_back({Does::kMove, index, live, std::max(live, written)});
        state.base = live;
      }
    }
    actions.push_back({Does::kCompute, index, state.done, target});
    state.done = target;
    if (!buffered_[step] || !s.kept) return;
    const int64_t complete = std::min(RowsComplete(s, state.done), FirstRow(step, segment + 1));
    if (complete <= state.kept) return;
    actions.push_back({Does::kKeep, index, state.kept, complete});
    state.kept = complete;
  }

  // Grows `windows` to the rows that each buffer must hold at once.
  std::vector<RegionAction> Walk(int segment, std::vector<int64_t>& windows) const {
    using Does = RegionAction::Does;
    const Extents& extents = extents_[static_cast<size_t>(segment)];
    std::vector<RegionAction> actions;
    std::vector<State> states(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      states[i].done = extents[i].first;
      states[i].base = RowsTouched(steps_[i], extents[i]).first;
      states[i].kept = FirstRow(i, segment);
      if (buffered_[i]) actions.push_back({Does::kMove, static_cast<int>(i), states[i].base, states[i].base});
    }
    const RowRange rows = RowsTouched(steps_.back(), extents.back());
    const int64_t bands = std::max<int64_t>(1, CeilDiv(rows.last - rows.first, band_rows_));
    for (int64_t band = 0; band < bands; ++band) {
      const std::vector<int64_t> targets = Targets(extents, states, band, bands);
      // Where windows of several steps add up, the first band is many rows of the first steps, which go on a
      // few at a time, as those behind them do.
      for (bool all = false; !all;) {
        all = true;
        for (size_t i = 0; i < steps_.size(); ++i) {
          if (targets[i] <= states[i].done) continue;
          Advance(i, segment, NextTarget(i, targets[i], bands, extents, states), states, windows, actions);
          all = all && states[i].done == targets[i];
        }
      }
    }
    return actions;
  }

  void Count() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      schedule_.result_rows += steps_[i].height;
      int64_t& computed = schedule_.step_rows.emplace_back();
      for (const Extents& extents : extents_) {
        const RowRange rows = RowsTouched(steps_[i], extents[i]);
        computed += rows.last - rows.first;
      }
      schedule_.computed_rows += computed;
    }
  }

  const std::span<const RegionStep> steps_;
  const int64_t band_rows_;
  std::vector<std::vector<Reader>> readers_;  // by step
  std::vector<bool> buffered_;                // by step: its result is written to a buffer
  std::vector<Extents> extents_;              // by segment
  std::vector<int64_t> capacity_;             // by step: rows
  RegionSchedule schedule_;
};

int64_t KernelScratchBytes(std::span<const Kernel* const> kernels) {
  int64_t most = 0;
  for (const Kernel* kernel : kernels) most = std::max(most, kernel->ScratchBytes(1));
  return RoundUp(most, kLineBytes) + kLineBytes;
}

int64_t ThreadBytes(const RegionSchedule& schedule, std::span<const Kernel* const> kernels) {
  return (Checked(RoundUp(schedule.buffer_bytes, kLineBytes)) + KernelScratchBytes(kernels)).value();
}

std::vector<const Kernel*> KernelsOf(std::span<const Launch> launches) {
  std::vector<const Kernel*> kernels;
  kernels.reserve(launches.size());
  for (const Launch& launch : launches) kernels.push_back(launch.kernel);
  return kernels;
}

}  // namespace

std::string WhyNoRegion(std::span<const RegionStep> steps) {
  if (steps.size() < 2) return "a region is at least two steps";
  std::vector<bool> read(steps.size(), false);
  for (size_t i = 0; i < steps.size(); ++i) {
    const RegionStep& step = steps[i];
    const auto no = [&](std::string_view reason) { return fmt::format("step {} {}", i + 1, reason); };
    if (!step.grid.GivesRows(step.images, step.height))
      return no("computes no rows of its result by themselves");
    if (step.images != steps.front().images) return no("has another number of images");
    if (step.images < 1 || step.height < 1 || step.grid.row_units < 1 || step.grid.part_units < 1)
      return no("has no rows");
    for (const RegionStep::Read& by : step.reads) {
      if (by.step < 0 || static_cast<size_t>(by.step) >= i) return no("reads what is not there yet");
      read[static_cast<size_t>(by.step)] = true;
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!read[i] && !steps[i].kept) return fmt::format("step {} has a result that nobody reads", i + 1);
    if (steps[i].blocks == 1 || !read[i]) continue;
    const auto by_whole_blocks = std::ranges::find_if(steps, [&](const RegionStep& step) {
      const bool touches = &step == &steps[i] || std::ranges::any_of(step.reads, [&](const auto& by) {
        return static_cast<size_t>(by.step) == i;
      });
      return touches && !step.shifts_blocks;
    });
    if (by_whole_blocks != steps.end())
      return fmt::format("step {} needs all rows of blocks of channels", by_whole_blocks - steps.begin() + 1);
  }
  if (!steps.back().kept) return "the last step's result is not read behind it";
  return "";
}

RegionSchedule ScheduleRegion(std::span<const RegionStep> steps, int64_t band_rows, int threads) {
  TILESMITH_CHECK(band_rows >= 1 && threads >= 1, "{} rows, {} threads", band_rows, threads);
  return Scheduler(steps, band_rows, threads).Run();
}

// What a thread works with: allocated once, written anew for each segment.
struct RegionKernel::Thread {
  std::vector<std::vector<InputView>> inputs;  // by step
  std::vector<OutputView> outputs;             // by step
  std::vector<std::byte*> buffers;             // by step
  std::vector<int64_t> bases;                  // by step: the buffer's first row
  std::byte* scratch = nullptr;
};

RegionKernel::RegionKernel(const RegionSchedule& schedule, std::span<const RegionStep> steps,
                           std::span<const Launch> launches, int threads, const StopFlag* stop)
    : schedule_(schedule),
      steps_(steps),
      launches_(launches),
      stop_(stop),
      thread_bytes_(ThreadBytes(schedule, KernelsOf(launches))) {
  for (int thread = 0; thread < threads; ++thread) {
    auto& own = *threads_.emplace_back(std::make_unique<Thread>());
    for (const Launch& launch : launches) own.inputs.push_back(launch.inputs);
    own.outputs.resize(launches.size());
    own.buffers.resize(launches.size());
    own.bases.resize(launches.size());
  }
}

RegionKernel::~RegionKernel() = default;

int64_t RegionKernel::Tasks(int) const { return schedule_.images * schedule_.segments; }

int64_t RegionKernel::ScratchBytes(int threads) const { return (Checked(thread_bytes_) * threads).value(); }

void RegionKernel::Clock(std::span<double> seconds) { seconds_ = seconds; }

void RegionKernel::Run(const KernelArgs& args, int, TaskRange range) const {
  Thread& thread = *threads_[static_cast<size_t>(range.thread)];
  std::byte* const memory = args.scratch_at<std::byte>(range.thread * thread_bytes_);
  for (size_t i = 0; i < launches_.size(); ++i) {
    std::ranges::copy(launches_[i].inputs, thread.inputs[i].begin());
    thread.outputs[i] = launches_[i].output;
    thread.buffers[i] = memory + schedule_.buffer_offsets[i];
  }
  thread.scratch = memory + RoundUp(schedule_.buffer_bytes, kLineBytes);
  const std::span<double> seconds = range.thread == 0 ? seconds_ : std::span<double>();
  double before = seconds.empty() ? 0 : NowSeconds();
  for (int64_t task = range.begin; task < range.end; ++task) {
    ThrowIfStopped(stop_);
    const int64_t segment = task / schedule_.images, image = task % schedule_.images;
    for (const RegionAction& action : schedule_.actions[static_cast<size_t>(segment)]) {
      Do(action, image, thread);
      if (seconds.empty()) continue;
      const double after = NowSeconds();
      seconds[static_cast<size_t>(action.step)] += after - before;
      before = after;
    }
  }
}

void RegionKernel::Do(const RegionAction& action, int64_t image, Thread& thread) const {
  const auto i = static_cast<size_t>(action.step);
  const RegionStep& step = steps_[i];
  switch (action.does) {
    case RegionAction::Does::kCompute:
      return Compute(i, {action.first, action.last}, image, thread);
    case RegionAction::Does::kMove:
      if (action.first < action.last) {
        for (int64_t block = 0; block < step.blocks; ++block) {
          std::byte* const buffer = thread.buffers[i] + block * schedule_.buffer_rows[i] * step.row_bytes;
          std::memmove(buffer, buffer + (action.first - thread.bases[i]) * step.row_bytes,
                       static_cast<size_t>((action.last - action.first) * step.row_bytes));
        }
      }
      return Rebase(i, action.first, thread);
    case RegionAction::Does::kKeep:
      for (int64_t block = 0; block < step.blocks; ++block) {
        const int64_t row = block * schedule_.buffer_rows[i] + action.first - thread.bases[i];
        std::memcpy(launches_[i].output.image<std::byte>(image) +
                        (block * step.height + action.first) * step.row_bytes,
                    thread.buffers[i] + row * step.row_bytes,
                    static_cast<size_t>((action.last - action.first) * step.row_bytes));
      }
  }
}

void RegionKernel::Compute(size_t step, RowRange parts, int64_t image, Thread& thread) const {
  const TaskGrid& grid = steps_[step].grid;
  const KernelArgs args{thread.inputs[step], thread.outputs[step], thread.scratch};
  const Kernel& kernel = *launches_[step].kernel;
  if (grid.channels_inner || grid.channels == 1) {
    const int64_t first = image * grid.rows;
    return kernel.Run(args, 0, {(first + parts.first) * grid.channels, (first + parts.last) * grid.channels});
  }
  for (int64_t channel = 0; channel < grid.channels; ++channel) {
    const int64_t first = (image * grid.channels + channel) * grid.rows;
    kernel.Run(args, 0, {first + parts.first, first + parts.last});
  }
}

// By way of integers, since pointers may not go where the image would begin.
void RegionKernel::Rebase(size_t step, int64_t row, Thread& thread) const {
  thread.bases[step] = row;
  const auto address = reinterpret_cast<intptr_t>(thread.buffers[step]) - row * steps_[step].row_bytes;
  void* const data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  const int64_t shift = (schedule_.buffer_rows[step] - steps_[step].height) * steps_[step].row_bytes;
  thread.outputs[step] = {data, 0, shift};
  for (size_t by = step + 1; by < steps_.size(); ++by) {
    for (const RegionStep::Read& read : steps_[by].reads)
      if (static_cast<size_t>(read.step) == step) thread.inputs[by][read.slot] = {data, 0, shift};
  }
}

int64_t RegionScratchBytes(const RegionSchedule& schedule, std::span<const Kernel* const> kernels,
                           int threads) {
  return (Checked(ThreadBytes(schedule, kernels)) * threads).value();
}

}  // namespace tilesmith
