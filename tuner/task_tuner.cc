#include "tuner/task_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "layouts/base/check.h"
#include "tuner/cost_model/training_history.h"
#include "tuner/layout_search.h"
#include "tuner/measure/estimator.h"
#include "tuner/measure/measurer.h"
#include "tuner/records/record_key.h"

namespace tilesmith {

std::vector<Record> Contenders(const ConvWorkload& workload, const TrialBook& book, int top,
                               const std::set<std::string>& done) {
  std::vector<Record> contenders;
  std::set<std::string> chosen = done;
  const auto add = [&](const Record& record) {
    if (chosen.insert(ScheduleText(record)).second) contenders.push_back(record);
  };
  const Record* best = book.Best();
  if (best == nullptr) return contenders;
  for (const Record* record : book.Top(static_cast<size_t>(std::max(top, 1)))) add(*record);
  const double worth = WorthHavingSeconds(workload, best->seconds);
  for (const auto& [pair, record] : book.BestOfPairs()) {
    if (record->seconds <= worth) add(*record);
  }
  return contenders;
}

std::vector<Retimed> TimeAgain(const std::vector<Record>& contenders, int rounds, Measurer& measurer,
                               const std::function<bool()>& stopped) {
  std::vector<TrialRequest> requests;
  requests.reserve(contenders.size());
  for (const Record& record : contenders) requests.push_back({record.template_name, record.config});
  std::vector<TrialResult> results = MeasureInTurns(requests, rounds, measurer, stopped);
  std::vector<Retimed> all;
  all.reserve(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) all.push_back({contenders[i], std::move(results[i])});
  return all;
}

namespace {

constexpr double kClose = 1.5;  // tuning rarely gains more than this on a template's first batch
constexpr int kLeaderTurns = 3;

}  // namespace

std::optional<size_t> TemplateRace::NextUntried() const {
  for (size_t i = 0; i < runners_.size(); ++i) {
    if (!runners_[i].exhausted && runners_[i].turns == 0) return i;
  }
  return std::nullopt;
}

std::optional<size_t> TemplateRace::Next() {
  if (const std::optional<size_t> untried = NextUntried()) return untried;
  std::optional<size_t> leader, fresh, challenger;
  double best = std::numeric_limits<double>::infinity();
  for (const Runner& runner : runners_) best = std::min(best, runner.best_seconds);
  for (size_t i = 0; i < runners_.size(); ++i) {
    const Runner& runner = runners_[i];
    if (runner.exhausted) continue;
    if (!leader || runner.best_seconds < runners_[*leader].best_seconds) leader = i;
    const bool is_next = runner.turns == 1 && (!fresh || runner.best_seconds < runners_[*fresh].best_seconds);
    if (is_next) fresh = i;
  }
  if (fresh) return fresh;
  for (size_t i = 0; i < runners_.size(); ++i) {
    const Runner& runner = runners_[i];
    if (runner.exhausted || i == leader || !(runner.best_seconds <= kClose * best)) continue;
    if (!challenger || runner.turns < runners_[*challenger].turns) challenger = i;
  }
  const bool challenge = ++turn_ % kLeaderTurns == 0;
  return challenge && challenger ? challenger : leader;
}

void TemplateRace::Tried(size_t runner, double best_seconds) {
  ++runners_[runner].turns;
  Improved(runner, best_seconds);
}

void TemplateRace::Improved(size_t runner, double best_seconds) {
  runners_[runner].best_seconds = std::min(runners_[runner].best_seconds, best_seconds);
}

namespace {

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
  RequireAtLeast(1, "batch", options.batch);
  RequireAtLeast(1, "threads", request.conditions.threads);
  RequireAtLeast(1, "early stop factor", options.early_stop_factor);
}

double Fastest(std::span<const TrialOutcome> outcomes) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const TrialOutcome& outcome : outcomes) {
    if (outcome.seconds) fastest = std::min(fastest, *outcome.seconds);
  }
  return fastest;
}

// Where the time ends before all had a trial, the one that multiplies least is likely the fastest, and the
// most general one is what a plan falls back on that must do without others.
std::vector<const ConvTemplate*> InOrderOfFirstTrials(const TuneRequest& request) {
  std::vector<const ConvTemplate*> templates = request.templates;
  std::map<const ConvTemplate*, double> flops;
  for (const ConvTemplate* one : templates)
    flops[one] =
        one->Features(request.workload, one->Default(request.workload, request.cpu), request.cpu).flops;
  std::ranges::stable_sort(templates, {}, [&](const ConvTemplate* one) { return flops[one]; });
  const auto general = std::ranges::find(templates, request.templates[0]);
  if (general - templates.begin() > 1) std::rotate(templates.begin() + 1, general, general + 1);
  return templates;
}

}  // namespace

TaskTuner::TaskTuner(TuneRequest request, Measurer& measurer, std::function<void(const Record&)> on_record)
    : request_(std::move(request)),
      measurer_(measurer),
      on_record_(std::move(on_record)),
      race_(request_.templates.size()),
      book_(request_.accuracy) {
  CheckRequest(request_);
  RequireSearcher(request_.options.searcher);  // throws now rather than in the middle of it
  MakeLanes();
  Resume();
}

TaskTuner::~TaskTuner() = default;

void TaskTuner::MakeLanes() {
  request_.templates = InOrderOfFirstTrials(request_);
  std::vector<LayoutSearch::Lane> spaces;
  for (const ConvTemplate* conv_template : request_.templates) {
    lanes_.push_back({conv_template, conv_template->Space(request_.workload, request_.cpu), nullptr});
  }
  spaces.reserve(lanes_.size());
  for (const Lane& lane : lanes_) spaces.push_back({lane.conv_template, &lane.space});
  layouts_ = std::make_unique<LayoutSearch>(request_.workload, request_.cpu, spaces, request_.options.seed);
}

// Known tasks need none, so not before the first search.
void TaskTuner::MakeSearchers() {
  const SearcherInfo& info = FindSearcher(request_.options.searcher);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    lane.searcher = info.make({request_.workload, request_.cpu, lane.conv_template, lane.space,
                               request_.options.seed, request_.conditions, request_.history});
    const std::vector<TrialOutcome> known = OutcomesOf(lane);
    lane.searcher->Update(known);
    const bool is_batch = static_cast<int>(known.size()) >= request_.options.batch;
    const int turns = known.empty() ? 0 : is_batch ? 2 : 1;  // as TemplateRace counts them
    for (int turn = 0; turn < turns; ++turn) race_.Tried(i, Fastest(known));
  }
}

std::vector<TrialOutcome> TaskTuner::OutcomesOf(const Lane& lane) const {
  std::vector<TrialOutcome> outcomes;
  for (const Record& record : book_.records()) {
    if (record.template_name == lane.conv_template->Name()) outcomes.push_back(OutcomeOf(record));
  }
  return outcomes;
}

void TaskTuner::Resume() {
  const TaskKey task(request_.cpu, request_.workload, request_.conditions);
  for (const Record& record : request_.resume) {
    if (TaskKey(record) != task || record.status == TrialStatus::kWorkerLost) continue;
    for (const Lane& lane : lanes_) {
      if (lane.conv_template->Name() == record.template_name && IsOf(lane, record)) Enter(record);
    }
  }
  request_.resume.clear();
  for (const Record& record : book_.records()) {
    if (record.status != TrialStatus::kOk) ++failures_[record.status];
  }
}

// A config may have failed for not being valid; one that is said to have worked has to be.
bool TaskTuner::IsOf(const Lane& lane, const Record& record) const {
  if (record.status != TrialStatus::kOk) return lane.space.IndexOf(record.config).has_value();
  return lane.space.WhyInvalid(record.config).empty() &&
         lane.conv_template->Layouts(request_.workload, record.config) == record.layouts;
}

MeasureSession TaskTuner::Session() const {
  MeasureSession session = {request_.workload, request_.cpu,    request_.conditions,
                            request_.sampling, request_.limits, request_.options.seed};
  if (session.limits.memory_bytes == 0) {
    session.limits.memory_bytes = GenerousMemory(request_.workload, request_.conditions);
  }
  return session;
}

void TaskTuner::Begin() { measurer_.Begin(Session()); }

TrialOutcome TaskTuner::OutcomeOf(const Record& record) const {
  const bool ok = record.status == TrialStatus::kOk && Accepts(request_.accuracy, record);
  return {record.config, ok ? std::optional(record.seconds) : std::nullopt, record.early_stopped,
          RelativeError(record.sample_seconds)};
}

void TaskTuner::Enter(const Record& record) {
  book_.Enter(record);
  const bool counts =
      record.status == TrialStatus::kOk && !record.early_stopped && Accepts(request_.accuracy, record);
  if (counts && (curve_.empty() || record.seconds < curve_.back().best_seconds)) {
    curve_.push_back({book_.size(), record.seconds});
  }
}

void TaskTuner::Log(const Record& record) {
  Enter(record);
  untaught_.push_back(record);
  if (on_record_) on_record_(record);
}

Record TaskTuner::ToRecord(const ConvTemplate& conv_template, const Config& config,
                           const TrialResult& trial) const {
  Record record = TrialRecord(Session(), conv_template, config, trial);
  record.tuner = request_.options.searcher;
  return record;
}

TrialOutcome TaskTuner::Finish(const Lane& lane, const Config& config, const TrialResult& trial,
                               const char* purpose) {
  Record record = ToRecord(*lane.conv_template, config, trial);
  record.purpose = purpose;
  Log(record);
  ++trials_measured_;
  if (record.status != TrialStatus::kOk) ++failures_[record.status];
  return OutcomeOf(record);
}

int TaskTuner::Search(const Turn& turn) {
  if (lanes_[0].searcher == nullptr) MakeSearchers();
  int made = 0;
  bool batch_made = false;
  while (made < turn.trials && !batch_made && !Stopped(turn)) {
    if (!request_.suggestions.empty()) {
      made += SuggestedTrials(turn.trials - made, turn);
      continue;
    }
    if (race_.NextUntried()) {
      made += FirstTrials(turn.trials - made, turn);
      continue;
    }
    const std::optional<size_t> runner = race_.Next();
    exhausted_ = !runner;
    if (!runner) break;
    const int tried = SearchIn(*runner, turn.trials - made, turn);
    made += tried;
    batch_made = tried > 0;
  }
  Teach();
  return made;
}

TrialRequest TaskTuner::ToSearch(const Lane& lane, const Config& config) const {
  const Record* best = book_.Best();
  const double best_seconds = best ? best->seconds : std::numeric_limits<double>::infinity();
  return {std::string(lane.conv_template->Name()), config, request_.options.early_stop_factor * best_seconds};
}

// In their order. Returns how many were made.
int TaskTuner::SuggestedTrials(int trials, const Turn& turn) {
  struct Suggested {
    size_t runner;
    Config config;
  };
  std::vector<Suggested> tried;
  size_t at = 0;
  const auto next = [&]() -> std::optional<TrialRequest> {
    for (; at < request_.suggestions.size() && static_cast<int>(tried.size()) < trials; ++at) {
      if (Stopped(turn)) return std::nullopt;
      const Record& one = request_.suggestions[at];
      const auto lane = std::ranges::find_if(lanes_, [&](const Lane& own) {
        return own.conv_template->Name() == one.template_name && own.space.WhyInvalid(one.config).empty();
      });
      if (lane == lanes_.end() || book_.Knows(one.template_name, one.config)) continue;
      const auto runner = static_cast<size_t>(lane - lanes_.begin());
      race_.Tried(runner, std::numeric_limits<double>::infinity());
      tried.push_back({runner, one.config});
      ++at;
      return ToSearch(*lane, tried.back().config);
    }
    return std::nullopt;
  };
  RunTrials(measurer_, next, [&](size_t i, const TrialResult& result) {
    const auto& [runner, config] = tried[i];
    const TrialOutcome outcome = Finish(lanes_[runner], config, result, kPurposeSearch);
    lanes_[runner].searcher->Update({&outcome, 1});
    race_.Improved(runner, Fastest({&outcome, 1}));
  });
  request_.suggestions.erase(request_.suggestions.begin(),
                             request_.suggestions.begin() + static_cast<std::ptrdiff_t>(at));
  return static_cast<int>(tried.size());
}

// One of every template that has had none. Returns how many were made; the first is, whatever `stopped` says.
int TaskTuner::FirstTrials(int trials, const Turn& turn) {
  struct First {
    size_t runner;
    Config config;
  };
  std::vector<First> firsts;
  bool stopped = false;
  if (!Stopped(turn)) PrepareDefaults(trials);
  const auto next = [&]() -> std::optional<TrialRequest> {
    while (static_cast<int>(firsts.size()) < trials && !stopped) {
      const std::optional<size_t> runner = race_.NextUntried();
      if (!runner) break;
      stopped = !firsts.empty() && Stopped(turn);
      if (stopped) break;
      const std::vector<Config> configs = lanes_[*runner].searcher->NextBatch(1);
      if (configs.empty()) {
        race_.Exhausted(*runner);
        continue;
      }
      race_.Tried(*runner, std::numeric_limits<double>::infinity());
      firsts.push_back({*runner, configs[0]});
      return ToSearch(lanes_[*runner], configs[0]);
    }
    return std::nullopt;
  };
  RunTrials(measurer_, next, [&](size_t i, const TrialResult& result) {
    const auto& [runner, config] = firsts[i];
    const TrialOutcome outcome = Finish(lanes_[runner], config, result, kPurposeSearch);
    lanes_[runner].searcher->Update({&outcome, 1});
    race_.Improved(runner, Fastest({&outcome, 1}));
  });
  return static_cast<int>(firsts.size());
}

// Which templates without a trial have first.
void TaskTuner::PrepareDefaults(int trials) {
  std::vector<TrialRequest> requests;
  for (const Lane& lane : lanes_) {
    if (static_cast<int>(requests.size()) < trials && OutcomesOf(lane).empty())
      requests.push_back(ToSearch(lane, lane.conv_template->Default(request_.workload, request_.cpu)));
  }
  measurer_.Prepare(requests);
}

// As many as keep all cores busy; returns where those begin that are not prepared.
size_t TaskTuner::PrepareFrom(size_t first, const Lane& lane, std::span<const Config> configs) {
  const size_t together = 2 * std::max<size_t>(1, std::thread::hardware_concurrency());
  const size_t end = std::min(configs.size(), first + together);
  std::vector<TrialRequest> requests;
  for (size_t i = first; i < end; ++i) requests.push_back(ToSearch(lane, configs[i]));
  measurer_.Prepare(requests);
  return end;
}

// Up to so many trials of one template; none when it has no more configs. The searcher is told the outcomes
// in the order of its configs, whatever the order they come in.
int TaskTuner::SearchIn(size_t runner, int trials, const Turn& turn) {
  Lane& lane = lanes_[runner];
  const std::vector<Config> configs = lane.searcher->NextBatch(static_cast<size_t>(trials));
  size_t asked = 0, prepared = 0;
  bool stopped = false;
  const auto next = [&]() -> std::optional<TrialRequest> {
    if (asked == configs.size() || stopped) return std::nullopt;
    stopped = asked > 0 && Stopped(turn);
    if (stopped) return std::nullopt;
    if (asked == prepared) prepared = PrepareFrom(prepared, lane, configs);
    return ToSearch(lane, configs[asked++]);
  };
  std::vector<TrialOutcome> outcomes(configs.size());
  RunTrials(measurer_, next, [&](size_t i, const TrialResult& result) {
    outcomes[i] = Finish(lane, configs[i], result, kPurposeSearch);
  });
  outcomes.resize(asked);
  if (outcomes.empty()) {
    race_.Exhausted(runner);
    return 0;
  }
  lane.searcher->Update(outcomes);
  race_.Tried(runner, Fastest(outcomes));
  return static_cast<int>(asked);
}

// Between turns, since a history that grows may train a model.
void TaskTuner::Teach() {
  if (request_.history) {
    for (const Record& record : untaught_) request_.history->Add(record);
  }
  untaught_.clear();
}

size_t TaskTuner::templates_tried() const {
  std::set<std::string_view> tried;
  for (const Record& record : book_.records()) tried.insert(record.template_name);
  return tried.size();
}

int TaskTuner::LayoutShare(int trials) const {
  const int pairs = layouts_->pairs();
  if (pairs <= 1) return 0;
  const int share =
      std::max(static_cast<int>(trials * request_.options.coverage_fraction), std::min(pairs, trials / 2));
  const int first_trials = static_cast<int>(LeastTemplates());
  return std::min(share, std::max(0, trials - first_trials));
}

int TaskTuner::CoverLayouts(const Turn& turn) {
  std::vector<LayoutSearch::Candidate> tried;
  bool stopped = false;
  const auto next = [&]() -> std::optional<TrialRequest> {
    if (static_cast<int>(tried.size()) >= turn.trials || stopped) return std::nullopt;
    stopped = Stopped(turn);
    if (stopped) return std::nullopt;
    const std::optional<LayoutSearch::Candidate> candidate = layouts_->Next(book_);
    if (!candidate) return std::nullopt;
    tried.push_back(*candidate);
    return TrialRequest{std::string(lanes_[candidate->lane].conv_template->Name()), candidate->config,
                        candidate->stop_above_seconds};
  };
  std::vector<TrialOutcome> outcomes(static_cast<size_t>(std::max(turn.trials, 0)));
  RunTrials(measurer_, next, [&](size_t i, const TrialResult& result) {
    outcomes[i] = Finish(lanes_[tried[i].lane], tried[i].config, result, kPurposeLayouts);
  });
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].searcher == nullptr) continue;
    std::vector<TrialOutcome> of_lane;
    for (size_t i = 0; i < tried.size(); ++i) {
      if (tried[i].lane == lane) of_lane.push_back(outcomes[i]);
    }
    lanes_[lane].searcher->Update(of_lane);
  }
  Teach();
  return static_cast<int>(tried.size());
}

int TaskTuner::RetimingTrials() const {
  const TuneOptions& options = request_.options;
  return options.retime_rounds * (std::max(options.retime_top, 1) + layouts_->pairs() / 2);
}

bool TaskTuner::Retime(const std::function<bool()>& stopped) {
  constexpr int kPasses = 4;  // after the first: those whose rivals turned out slower than they seemed
  const TuneOptions& options = request_.options;
  std::set<std::string> done;
  for (int pass = 0; pass < kPasses && options.retime_rounds > 0; ++pass) {
    const std::vector<Record> contenders =
        Contenders(request_.workload, book_, pass == 0 ? options.retime_top : 1, done);
    if (contenders.empty()) break;
    bool any = false;
    for (const Retimed& one : TimeAgain(contenders, options.retime_rounds, measurer_, stopped)) {
      const bool measured = !one.result.sample_seconds.empty() || one.result.status != TrialStatus::kOk;
      if (!measured) continue;
      any = true;
      done.insert(ScheduleText(one.record));
      LogRetimed(one.record, one.result);
    }
    Teach();
    if (!any) return pass > 0;
  }
  return true;
}

void TaskTuner::LogRetimed(const Record& known, const TrialResult& trial) {
  if (trial.status == TrialStatus::kWorkerLost) return;
  if (trial.status != TrialStatus::kOk) ++failures_[trial.status];
  for (const Lane& lane : lanes_) {
    if (lane.conv_template->Name() != known.template_name) continue;
    Record record = ToRecord(*lane.conv_template, known.config, trial);
    record.purpose = kPurposeRetime;
    Log(record);
  }
}

TuneResult TaskTuner::Result() const {
  TuneResult result;
  result.records = book_.records();
  if (const Record* best = book_.Best()) result.best = *best;
  result.failures = failures_;
  result.trials_measured = trials_measured_;
  for (const auto& [layouts, trials] : layouts_->trials()) result.layout_trials += trials;
  return result;
}

}  // namespace tilesmith
