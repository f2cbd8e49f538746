#include "tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "layouts/base/check.h"
#include "tuner/layout_coverage.h"
#include "tuner/measure/estimator.h"
#include "tuner/search/searcher.h"
#include "tuner/template_race.h"
#include "tuner/trial_book.h"

namespace tilesmith {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTransplants = 3;  // best configs tried in every layout pair

// Each phase may use the time budget up to its share, so that a short budget still covers layouts and
// re-times.
constexpr double kSearchTime = 0.6;
constexpr double kCoverageTime = 0.85;
constexpr double kRetimeTime = 1.0;

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Far above what any sane config needs, far below what takes a machine down.
int64_t GenerousMemory(const ConvWorkload& workload, const MeasureConditions& conditions) {
  constexpr int64_t kBase = int64_t{8} << 30;
  constexpr int64_t kPerThread = int64_t{256} << 20;
  constexpr int64_t kCopies = 32;
  int64_t floats = ElementCount(workload.input_shape()) + 2 * ElementCount(workload.output_shape()) +
                   ElementCount(workload.weights_shape());
  for (const ConvWorkload& first : workload.before) {
    floats += ElementCount(first.output_shape()) + ElementCount(first.weights_shape());
  }
  return kBase + kPerThread * conditions.threads + kCopies * floats * static_cast<int64_t>(sizeof(float));
}

void CheckRequest(const TuneRequest& request) {
  const TuneOptions& options = request.options;
  if (request.templates.empty()) {
    throw Error(ErrorCode::kNoCandidate,
                fmt::format("no template to tune {}", WorkloadToString(request.workload)));
  }
  const auto check = [](const char* what, double value, double least) {
    if (value >= least) return;
    throw Error(ErrorCode::kUsage, fmt::format("{} is {} (allowed: at least {})", what, value, least));
  };
  check("trials", options.trials, 1);
  check("batch", options.batch, 1);
  check("threads", request.conditions.threads, 1);
  check("early stop factor", options.early_stop_factor, 1);
  check("time budget", options.seconds_budget, 0);
}

// One template in the race.
struct Lane {
  const ConvTemplate* conv_template = nullptr;
  ConfigSpace space;
  std::unique_ptr<Searcher> searcher;
};

class TuneRun {
 public:
  TuneRun(const TuneRequest& request, Measurer& measurer, const TuneSinks& sinks)
      : request_(request),
        options_(request.options),
        measurer_(measurer),
        sinks_(sinks),
        book_(request.accuracy) {
    const SearcherInfo& info = FindSearcher(options_.searcher);
    for (const ConvTemplate* conv_template : request.templates) {
      SearchProblem problem = {request.workload, request.cpu, conv_template,
                               conv_template->Space(request.workload, request.cpu), options_.seed};
      std::unique_ptr<Searcher> searcher = info.make(problem);
      lanes_.push_back({conv_template, std::move(problem.space), std::move(searcher)});
    }
    Resume();
    MeasureSession session = {request.workload, request.cpu,    request.conditions,
                              request.sampling, request.limits, options_.seed};
    if (session.limits.memory_bytes == 0) {
      session.limits.memory_bytes = GenerousMemory(request.workload, request.conditions);
    }
    measurer_.Begin(session);
  }

  TuneResult Run() {
    const int pairs = static_cast<int>(AllPairs().size());
    const int coverage = pairs <= 1 ? 0
                                    : std::max(static_cast<int>(options_.trials * options_.coverage_fraction),
                                               std::min(pairs, options_.trials / 2));
    Search(options_.trials - coverage, kSearchTime);
    CoverLayouts();
    Search(options_.trials, kCoverageTime);  // with what the coverage left over
    result_.search_seconds = Elapsed();
    Retime();
    ReportProgress(TunePhase::kRetime);
    result_.records = book_.records();
    if (const Record* best = book_.Best()) result_.best = *best;
    return std::move(result_);
  }

 private:
  double Elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // `share` of the time budget is what the phase may have used by its end.
  bool Stopped(double share) {
    if (sinks_.should_stop && sinks_.should_stop()) result_.interrupted = true;
    const bool late = Elapsed() >= share * options_.seconds_budget;
    if (late) result_.out_of_time = true;
    return result_.interrupted || late;
  }

  void Resume() {
    const Target target = TargetOf(request_.cpu);
    for (const Record& record : request_.resume) {
      if (!(record.workload == request_.workload) || !SameMachine(record.target, target) ||
          record.conditions != request_.conditions || record.status == TrialStatus::kWorkerLost) {
        continue;
      }
      for (const Lane& lane : lanes_) {
        if (lane.conv_template->Name() == record.template_name && lane.space.IndexOf(record.config)) {
          book_.Enter(record);
        }
      }
    }
    for (const Record& record : book_.records()) {
      if (record.status != TrialStatus::kOk) ++result_.failures[record.status];
    }
    for (Lane& lane : lanes_) {
      std::vector<TrialOutcome> outcomes;
      for (const Record& record : book_.records()) {
        if (record.template_name == lane.conv_template->Name()) outcomes.push_back(OutcomeOf(record));
      }
      lane.searcher->Update(outcomes);
    }
  }

  TrialOutcome OutcomeOf(const Record& record) const {
    const bool ok = record.status == TrialStatus::kOk && Accepts(request_.accuracy, record);
    return {record.config, ok ? std::optional(record.seconds) : std::nullopt, record.early_stopped};
  }

  void Log(const Record& record) {
    book_.Enter(record);
    if (sinks_.on_record) sinks_.on_record(record);
  }

  Record ToRecord(const ConvTemplate& conv_template, const Config& config, const TrialResult& trial) const {
    Record record;
    record.target = TargetOf(request_.cpu);
    record.workload = request_.workload;
    record.template_name = conv_template.Name();
    record.config = config;
    record.layouts = conv_template.Layouts(request_.workload, config);
    record.conditions = request_.conditions;
    record.status = trial.status;
    record.detail = trial.detail;
    record.sample_seconds = trial.sample_seconds;
    record.seconds = trial.seconds;
    record.error = trial.error;
    record.statistic = kEstimatorName;
    record.early_stopped = trial.early_stopped;
    record.tuner = options_.searcher;
    record.seed = options_.seed;
    record.time = UtcNow();
    return record;
  }

  Record Try(const Lane& lane, const Config& config, double best_seconds) {
    const double stop_above = options_.early_stop_factor * best_seconds;
    const TrialResult trial =
        measurer_.Measure({std::string(lane.conv_template->Name()), config, stop_above});
    const Record record = ToRecord(*lane.conv_template, config, trial);
    Log(record);
    ++result_.trials_measured;
    if (record.status != TrialStatus::kOk) ++result_.failures[record.status];
    return record;
  }

  double BestSeconds() const {
    const Record* best = book_.Best();
    return best ? best->seconds : std::numeric_limits<double>::infinity();
  }

  void Search(int trials, double share) {
    TemplateRace race(lanes_.size());
    while (book_.size() < trials && !Stopped(share)) {
      const std::optional<size_t> runner = race.Next();
      if (!runner) return;
      Lane& lane = lanes_[*runner];
      const std::vector<Config> batch =
          lane.searcher->NextBatch(std::min(options_.batch, trials - book_.size()));
      if (batch.empty()) {
        race.Exhausted(*runner);
        continue;
      }
      std::vector<TrialOutcome> outcomes;
      double best = std::numeric_limits<double>::infinity();
      for (const Config& config : batch) {
        if (Stopped(share)) break;
        outcomes.push_back(OutcomeOf(Try(lane, config, BestSeconds())));
        if (outcomes.back().seconds) best = std::min(best, *outcomes.back().seconds);
      }
      lane.searcher->Update(outcomes);
      race.Tried(*runner, best);
      ReportProgress(TunePhase::kSearch);
    }
  }

  // Every pair of layouts that a valid config of some template may have.
  std::vector<BlockPair> AllPairs() const {
    std::vector<BlockPair> all;
    for (const Lane& lane : lanes_) {
      const std::vector<BlockPair> pairs = BlockPairs(lane.space);
      all.insert(all.end(), pairs.begin(), pairs.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  struct Candidate {
    const Lane* lane = nullptr;
    Config config;
  };

  // What is worth measuring in one pair of layouts, most promising first.
  std::vector<Candidate> CandidatesFor(const BlockPair& pair, const std::vector<Record>& top) const {
    std::vector<Candidate> candidates;
    const auto add = [&](const Lane& lane, const Config& config) {
      const std::optional<Config> moved = Transplant(lane.space, config, pair);
      if (!moved || book_.Knows(lane.conv_template->Name(), *moved)) return;
      const auto same = [&](const Candidate& c) { return c.lane == &lane && c.config == *moved; };
      if (std::none_of(candidates.begin(), candidates.end(), same)) candidates.push_back({&lane, *moved});
    };
    for (const Record& record : top) {
      for (const Lane& lane : lanes_) {
        if (lane.conv_template->Name() == record.template_name) add(lane, record.config);
      }
    }
    for (const Lane& lane : lanes_) add(lane, lane.conv_template->Default(request_.workload, request_.cpu));
    return candidates;
  }

  // One candidate for every pair, then the second for every pair, and so on while trials are left.
  void CoverLayouts() {
    std::vector<Record> top;
    for (const Record* record : book_.Top(kTransplants)) top.push_back(*record);
    std::vector<std::vector<Candidate>> queues;
    for (const BlockPair& pair : AllPairs()) queues.push_back(CandidatesFor(pair, top));
    for (size_t round = 0; round <= kTransplants; ++round) {
      for (const std::vector<Candidate>& queue : queues) {
        if (round >= queue.size()) continue;
        if (book_.size() >= options_.trials || Stopped(kCoverageTime)) return;
        const Candidate& candidate = queue[round];
        if (book_.Knows(candidate.lane->conv_template->Name(), candidate.config)) continue;
        // Compared with its own pair: far from the best of all is no reason to know a pair only roughly.
        const auto pairs = book_.BestOfPairs();
        const auto known =
            pairs.find(candidate.lane->conv_template->Layouts(request_.workload, candidate.config));
        const bool has_full = known != pairs.end() && !known->second->early_stopped;
        Try(*candidate.lane, candidate.config,
            has_full ? known->second->seconds : std::numeric_limits<double>::infinity());
      }
      ReportProgress(TunePhase::kLayouts);
    }
  }

  // The contenders again, round robin, so that a drift of the machine hits all alike.
  void Retime() {
    std::vector<Record> contenders;
    const auto add = [&](const Record* record) {
      const auto same = [&](const Record& r) {
        return r.template_name == record->template_name && r.config == record->config;
      };
      if (std::none_of(contenders.begin(), contenders.end(), same)) contenders.push_back(*record);
    };
    for (const Record* record : book_.Top(std::max(options_.retime_top, 0))) add(record);
    for (const auto& [pair, record] : book_.BestOfPairs()) add(record);
    std::vector<TrialResult> totals(contenders.size());
    for (int round = 0; round < options_.retime_rounds; ++round) {
      for (size_t i = 0; i < contenders.size(); ++i) {
        if (totals[i].status != TrialStatus::kOk) continue;
        if (Stopped(kRetimeTime)) return;
        const TrialResult trial = measurer_.Measure({contenders[i].template_name, contenders[i].config});
        totals[i].status = trial.status;
        totals[i].detail = trial.detail;
        totals[i].error = trial.error;
        totals[i].sample_seconds.insert(totals[i].sample_seconds.end(), trial.sample_seconds.begin(),
                                        trial.sample_seconds.end());
      }
    }
    if (options_.retime_rounds > 0) LogRetimed(contenders, totals);
  }

  void LogRetimed(const std::vector<Record>& contenders, std::vector<TrialResult>& totals) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      if (totals[i].status == TrialStatus::kWorkerLost) continue;
      if (totals[i].status == TrialStatus::kOk) {
        totals[i].seconds = Estimate(totals[i].sample_seconds);
      } else {
        ++result_.failures[totals[i].status];
      }
      for (const Lane& lane : lanes_) {
        if (lane.conv_template->Name() != contenders[i].template_name) continue;
        Log(ToRecord(*lane.conv_template, contenders[i].config, totals[i]));
      }
    }
  }

  void ReportProgress(TunePhase phase) {
    if (!sinks_.on_progress) return;
    TuneProgress progress;
    progress.phase = phase;
    progress.trials_done = book_.size();
    progress.trials_planned = options_.trials;
    if (const Record* best = book_.Best()) {
      progress.best_seconds = best->seconds;
      progress.best_gflops = request_.workload.flops() / best->seconds * 1e-9;
    }
    progress.failures = result_.failures;
    progress.elapsed_seconds = Elapsed();
    const int left = phase == TunePhase::kRetime ? 0 : options_.trials - book_.size();
    const double each = result_.trials_measured > 0 ? progress.elapsed_seconds / result_.trials_measured : 0;
    progress.left_seconds =
        std::min(each * left, std::max(0.0, options_.seconds_budget - progress.elapsed_seconds));
    sinks_.on_progress(progress);
  }

  const TuneRequest& request_;
  const TuneOptions& options_;
  Measurer& measurer_;
  const TuneSinks& sinks_;
  const Clock::time_point start_ = Clock::now();
  std::vector<Lane> lanes_;
  TrialBook book_;
  TuneResult result_;
};

}  // namespace

std::string_view TunePhaseName(TunePhase phase) {
  switch (phase) {
    case TunePhase::kSearch:
      return "search";
    case TunePhase::kLayouts:
      return "layouts";
    case TunePhase::kRetime:
      return "re-timing";
  }
  return "unknown";
}

TuneResult TuneTask(const TuneRequest& request, Measurer& measurer, const TuneSinks& sinks) {
  CheckRequest(request);
  return TuneRun(request, measurer, sinks).Run();
}

std::vector<const ConvTemplate*> TemplatesToTune(const ConvWorkload& workload, const CpuInfo& cpu,
                                                 const AccuracyLimits& accuracy) {
  const std::vector<std::string>& forbidden = accuracy.forbidden_templates;
  std::vector<const ConvTemplate*> supported;
  for (const ConvTemplate* conv_template : ConvTemplates()) {
    if (std::find(forbidden.begin(), forbidden.end(), conv_template->Name()) != forbidden.end()) continue;
    if (conv_template->Supports(workload, cpu).ok) supported.push_back(conv_template);
  }
  if (supported.size() > 1 && supported.back()->Name() == "portable") supported.pop_back();
  return supported;
}

}  // namespace tilesmith
