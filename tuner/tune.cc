#include "tuner/tune.h"

#include <algorithm>
#include <chrono>

#include "tuner/task_tuner.h"

namespace tilesmith {
namespace {

using Clock = std::chrono::steady_clock;

// Each phase may use the time budget up to its share, so that a short budget still covers layouts and
// re-times.
constexpr double kSearchTime = 0.6;
constexpr double kCoverageTime = 0.85;
constexpr double kRetimeTime = 1.0;

class TuneRun {
 public:
  TuneRun(const TuneRequest& request, Measurer& measurer, const TuneSinks& sinks)
      : options_(request.options), sinks_(sinks), tuner_(request, measurer, sinks.on_record) {
    tuner_.Begin();
  }

  TuneResult Run() {
    Search(options_.trials - tuner_.LayoutShare(options_.trials), kSearchTime);
    CoverLayouts();
    Search(options_.trials, kCoverageTime);  // with what the coverage left over
    const double search_seconds = Elapsed();
    tuner_.Retime([&] { return Stopped(kRetimeTime); });
    ReportProgress(TunePhase::kRetime);
    TuneResult result = tuner_.Result();
    result.search_seconds = search_seconds;
    result.interrupted = interrupted_;
    result.out_of_time = out_of_time_;
    return result;
  }

 private:
  double Elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // `share` of the time budget is what the phase may have used by its end.
  bool Stopped(double share) {
    if (sinks_.should_stop && sinks_.should_stop()) interrupted_ = true;
    const bool late = Elapsed() >= share * options_.seconds_budget;
    if (late) out_of_time_ = true;
    return interrupted_ || late;
  }

  void Search(int trials, double share) {
    const auto stopped = [&] { return Stopped(share); };
    while (tuner_.trials() < trials) {
      if (tuner_.Search({std::min(options_.batch, trials - tuner_.trials()), stopped}) == 0) return;
      ReportProgress(TunePhase::kSearch);
    }
  }

  void CoverLayouts() {
    const auto stopped = [&] { return Stopped(kCoverageTime); };
    while (tuner_.trials() < options_.trials) {
      const int trials = std::min(options_.batch, options_.trials - tuner_.trials());
      if (tuner_.CoverLayouts({trials, stopped}) == 0) return;
      ReportProgress(TunePhase::kLayouts);
    }
  }

  void ReportProgress(TunePhase phase) {
    if (!sinks_.on_progress) return;
    const Record* best = tuner_.book().Best();
    TuneProgress progress;
    progress.phase = phase;
    progress.trials_done = tuner_.trials();
    progress.trials_planned = options_.trials;
    if (best != nullptr) {
      progress.best_seconds = best->seconds;
      progress.best_gflops = best->workload.flops() / best->seconds * 1e-9;
    }
    progress.failures = tuner_.failures();
    progress.elapsed_seconds = Elapsed();
    const int left = phase == TunePhase::kRetime ? 0 : options_.trials - tuner_.trials();
    const double each =
        tuner_.trials_measured() > 0 ? progress.elapsed_seconds / tuner_.trials_measured() : 0;
    progress.left_seconds =
        std::min(each * left, std::max(0.0, options_.seconds_budget - progress.elapsed_seconds));
    sinks_.on_progress(progress);
  }

  const TuneOptions options_;
  const TuneSinks& sinks_;
  const Clock::time_point start_ = Clock::now();
  TaskTuner tuner_;
  bool interrupted_ = false, out_of_time_ = false;
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
