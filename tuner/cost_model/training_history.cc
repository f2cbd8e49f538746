#include "tuner/cost_model/training_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "layouts/base/error.h"
#include "tuner/records/record_key.h"

namespace tilesmith {
namespace {

constexpr size_t kMinRows = 32;
constexpr double kGrowth = 1.5;

// A worker that was killed from outside, or an unlucky build, teaches nothing about the config.
bool Teaches(TrialStatus status) {
  return status == TrialStatus::kOk || status == TrialStatus::kRunTimeout ||
         status == TrialStatus::kRunCrash || status == TrialStatus::kWrongAnswer ||
         status == TrialStatus::kOutOfMemory;
}

double Octaves(int64_t a, int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

// Sizes count by their ratio; what decides how a loop nest looks counts more.
double Distance(const ConvWorkload& a, const ConvWorkload& b) {
  constexpr double kShape = 4, kFused = 8;
  return Octaves(a.ic / a.g, b.ic / b.g) + Octaves(a.oc / a.g, b.oc / b.g) +
         Octaves(a.mb * a.oh * a.ow, b.mb * b.oh * b.ow) +
         kShape * (Octaves(a.kh, b.kh) + Octaves(a.kw, b.kw) + Octaves(a.sh, b.sh) + Octaves(a.sw, b.sw)) +
         kFused * (a.pre.any() != b.pre.any()) + kFused * (a.before.size() != b.before.size());
}

}  // namespace

void TrainingHistory::Add(const Record& record) {
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  if (conv_template == nullptr || !Teaches(record.status)) return;
  Task& task = tasks_[TaskKey(record).ToString()];
  if (task.spaces.empty()) {
    task.workload = record.workload;
    task.cpu = record.target;
    task.conditions = record.conditions;
  }
  const std::string key = ScheduleText(record);
  const auto known = task.by_config.find(key);
  const double seconds = record.status == TrialStatus::kOk ? record.seconds : 0;
  if (known != task.by_config.end()) {
    auto& by_seconds = task.by_seconds[conv_template];
    by_seconds.erase({task.rows[known->second].seconds, known->second});
    if (seconds > 0) by_seconds.emplace(seconds, known->second);
    task.rows[known->second].seconds = seconds;
    return;
  }
  // Empty, in which no config is valid, where the template refuses the workload.
  const auto space = task.spaces.try_emplace(conv_template);
  if (space.second && conv_template->Supports(record.workload, task.cpu).ok)
    space.first->second = conv_template->Space(record.workload, task.cpu);
  if (!space.first->second.WhyInvalid(record.config).empty()) return;
  task.by_config.emplace(key, task.rows.size());
  if (seconds > 0) task.by_seconds[conv_template].emplace(seconds, task.rows.size());
  task.rows.push_back({conv_template, record.config, seconds});
  ++rows_;
}

void TrainingHistory::AddExample(const Record& record) {
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  if (conv_template == nullptr || record.status != TrialStatus::kOk) return;
  Example& example = examples_[conv_template][TaskKey(record).ToString()];
  if (example.seconds == 0 || record.seconds < example.seconds)
    example = {record.workload, record.config, record.seconds};
}

std::vector<std::string> TrainingHistory::Knobs() const {
  std::set<std::string> knobs;
  for (const auto& [key, task] : tasks_) {
    for (const Row& row : task.rows) {
      for (const auto& [name, value] : row.config.knobs()) knobs.insert(name);
    }
  }
  return {knobs.begin(), knobs.end()};
}

std::vector<Config> TrainingHistory::FastestConfigs(const ConvTemplate& conv_template,
                                                    const ConvWorkload& workload, size_t n) const {
  using Ranked = std::vector<std::pair<double, const Config*>>;  // distance, config
  Ranked own, examples;
  for (const auto& [key, task] : tasks_) {
    const auto found = task.by_seconds.find(&conv_template);
    if (found == task.by_seconds.end() || found->second.empty()) continue;
    const size_t best = found->second.begin()->second;
    own.emplace_back(Distance(task.workload, workload), &task.rows[best].config);
  }
  if (const auto found = examples_.find(&conv_template); found != examples_.end())
    for (const auto& [key, example] : found->second)
      examples.emplace_back(Distance(example.workload, workload), &example.config);
  std::vector<Config> configs;
  for (Ranked* const fastest : {&own, &examples}) {
    std::ranges::stable_sort(*fastest, {}, &Ranked::value_type::first);
    const size_t most = configs.size() + n;
    for (const auto& [distance, config] : *fastest) {
      if (configs.size() == most) break;
      if (std::ranges::find(configs, *config) == configs.end()) configs.push_back(*config);
    }
  }
  return configs;
}

TrainingSet TrainingHistory::ToTrainingSet(const FeatureSchema& schema) const {
  TrainingSet set;
  for (const auto& [key, task] : tasks_) {
    if (task.rows.empty()) continue;
    double best = std::numeric_limits<double>::infinity();
    for (const Row& row : task.rows) {
      if (row.seconds > 0) best = std::min(best, row.seconds);
    }
    for (const Row& row : task.rows) {
      schema.Append({row.conv_template, &task.workload, &task.cpu, task.conditions}, row.config,
                    set.features);
      set.scores.push_back(ScoreOf(row.seconds, best));
    }
    set.group_sizes.push_back(static_cast<uint32_t>(task.rows.size()));
  }
  return set;
}

void TrainingHistory::Start(CostModel model) {
  const Objective objective = model.objective();
  started_[objective] = std::make_shared<const CostModel>(std::move(model));
}

std::shared_ptr<const CostModel> TrainingHistory::Model(Objective objective) const {
  if (const auto started = started_.find(objective); started != started_.end()) return started->second;
  if (rows_ < kMinRows) return nullptr;
  Trained& trained = trained_[objective];
  if (!trained.model || static_cast<double>(rows_) >= kGrowth * static_cast<double>(trained.rows)) {
    trained = {rows_, std::make_shared<const CostModel>(TrainCostModel(*this, objective))};
  }
  return trained.model;
}

CostModel TrainCostModel(const TrainingHistory& history, Objective objective) {
  if (history.size() == 0) throw Error(ErrorCode::kUsage, "no records to train a cost model on");
  FeatureSchema schema(history.Knobs());
  const TrainingSet set = history.ToTrainingSet(schema);
  TrainingOptions options;
  options.objective = objective;
  options.rounds = 100;
  return {std::move(schema), objective, BoostedTrees::Train(set, options)};
}

}  // namespace tilesmith
