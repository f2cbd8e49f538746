#include "tools/tune/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "tools/bench/conv_bench.h"
#include "tools/doctor/disturbance.h"
#include "tools/onednn/onednn.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

constexpr double kBaselineSeconds = 0.1;  // for each task

struct KnownBaseline {
  std::optional<double> seconds;  // none where oneDNN cannot do the convolution
  double disturbed_share = 0;     // of the time in which it was taken
};

// Times kept in a file, so that going on with a log need not take them again.
//
// JSON lines, one a time; each says for which machine, threads, weights and version of oneDNN it holds, and
// whether others used the machine meanwhile. The last line for a convolution counts; those that are no such
// are skipped.
class BaselineCache {
 public:
  BaselineCache(const std::string& log_path, const DevicePtr& machine)
      : path_((log_path.ends_with(".jsonl") ? log_path.substr(0, log_path.size() - 6) : log_path) +
              ".onednn.jsonl"),
        machine_(fmt::format("{}, {}, {} threads, oneDNN {}", machine->target().model,
                             IsaName(machine->target().isa), machine->threads(), OneDnnVersion())) {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) Read(line);
  }

  // Null where the time is not known.
  const KnownBaseline* Find(const ConvWorkload& workload, bool cold_weights) const {
    const auto found = baselines_.find(KeyOf(workload, cold_weights));
    return found == baselines_.end() ? nullptr : &found->second;
  }
  // Appends it at once. A file that takes nothing is no error: the time is taken again.
  void Add(const TuneRow& row, const std::optional<OneDnnSide>& side) const {
    nlohmann::json json = {{"key", KeyOf(row.task.workload, row.cold_weights)},
                           {"can", side.has_value()},
                           {"disturbed_share", row.baseline_disturbed_share}};
    if (side) {
      json["algorithm"] = OneDnnAlgorithmName(side->algorithm);
      json["implementation"] = side->implementation;
      json["layouts"] = side->layouts;
      json["seconds"] = side->seconds;
    }
    std::ofstream(path_, std::ios::app) << JsonLine(json) << '\n';
  }

 private:
  std::string KeyOf(const ConvWorkload& workload, bool cold_weights) const {
    return fmt::format("{}; {}; {}", WorkloadToString(workload), cold_weights ? "cold" : "warm", machine_);
  }
  void Read(const std::string& line) try {
    const nlohmann::json json = ParseJson(line);
    KnownBaseline baseline;
    if (JsonGet<bool>(json, "can")) baseline.seconds = JsonGet<double>(json, "seconds");
    if (baseline.seconds && !(*baseline.seconds > 0)) return;
    if (json.contains("disturbed_share"))  // not in older files, which hold none that was
      baseline.disturbed_share = JsonGet<double>(json, "disturbed_share");
    baselines_.insert_or_assign(JsonGet<std::string>(json, "key"), baseline);
  } catch (const Error&) {
    return;
  }

  std::string path_, machine_;
  std::map<std::string, KnownBaseline> baselines_;
};

// A time that was taken while others used the machine is kept until there is another: one without them or,
// since they only add to it, a shorter one.
void TimeBaseline(const DevicePtr& machine, const WorkSinks& sinks, TuneRow& row, MachineWatch& watch,
                  const std::optional<BaselineCache>& cache) {
  const DuelOptions duel{.seconds = kBaselineSeconds,
                         .cold = row.cold_weights,
                         .threads = machine->threads(),
                         .stop = sinks.stop};
  watch.Skip();
  std::optional<OneDnnSide> fastest;
  const bool timed = UnlessInterrupted([&] {
    for (const OneDnnSide& side : TimeOneDnn(row.task.workload, duel)) {
      if (!fastest || side.seconds < fastest->seconds) fastest = side;
    }
  });
  const Disturbance meanwhile = watch.EndInterval();
  const double share = fastest ? meanwhile.share() : 0;
  const bool known_is_shorter = row.baseline_seconds && fastest && *row.baseline_seconds <= fastest->seconds;
  if (!timed || (share > 0 && known_is_shorter)) return;
  row.baseline_seconds.reset();
  if (fastest) row.baseline_seconds = fastest->seconds;
  row.baseline_disturbed_share = share;
  if (cache) cache->Add(row, fastest);
}

}  // namespace

void TimeBaselines(const TuningEffort& effort, const TuningPaths& paths, const WorkSinks& sinks,
                   std::vector<TuneRow>& rows, MachineWatch& watch) {
  constexpr double kShare = 0.2;
  const DevicePtr& machine = effort.machine;
  const PinnedTeam team(machine);
  WarnIfDisturbed(machine, sinks);
  if (!paths.baselines || machine->target().device != kCpuDevice) return;  // oneDNN is the CPU's
  try {
    PrepareOneDnn(*machine);
  } catch (const Error& error) {
    sinks.Warn(error.what());
    return;
  }
  std::optional<BaselineCache> cache;
  std::error_code hidden;
  if (std::filesystem::is_regular_file(paths.log_path, hidden)) cache.emplace(paths.log_path, machine);
  std::vector<TuneRow*> missing, disturbed;
  for (TuneRow& row : rows) {
    if (row.factors != DataType::kF32) continue;
    const KnownBaseline* known = cache ? cache->Find(row.task.workload, row.cold_weights) : nullptr;
    if (known == nullptr) {
      missing.push_back(&row);
      continue;
    }
    row.baseline_seconds = known->seconds;
    row.baseline_disturbed_share = known->disturbed_share;
    if (known->disturbed_share > 0) disturbed.push_back(&row);
  }
  missing.insert(missing.end(), disturbed.begin(), disturbed.end());
  const double began = NowSeconds(), end = effort.begin + kShare * effort.time_budget;
  for (size_t done = 0; done < missing.size() && !IsStopped(sinks.stop) && NowSeconds() < end; ++done) {
    const double each = done > 0 ? (NowSeconds() - began) / static_cast<double>(done) : kBaselineSeconds;
    const double left =
        std::min(each * static_cast<double>(missing.size() - done), std::max(0.0, end - NowSeconds()));
    sinks.Stage(fmt::format("oneDNN {}/{}, about {} left", done + 1, missing.size(), DurationText(left)));
    TimeBaseline(machine, sinks, *missing[done], watch, cache);
  }
}

}  // namespace tilesmith
