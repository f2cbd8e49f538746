#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "layouts/base/error.h"
#include "layouts/base/text_file.h"
#include "layouts/measure/quantile.h"
#include "tools/cli/machine.h"
#include "tools/cli/output_file.h"
#include "tools/cli/records.h"
#include "tools/cli/report.h"
#include "tools/cli/results_file.h"
#include "tools/cli/tasks.h"
#include "tools/commands/commands.h"
#include "tuner/search/searcher.h"
#include "tuner/simulation/regret.h"

namespace tilesmith {
namespace {

constexpr double kNear = 0.05, kNearer = 0.02;
constexpr int kCurvePoints[] = {10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000};

struct Series {
  size_t space = 0;
  std::string tuner;
  bool taught = false;                      // by the history
  std::vector<std::vector<double>> curves;  // a seed each
};

constexpr int64_t kMaxSeeds = 100000, kMaxTrials = 1000000;

class SimulateCommand : public Command {
 public:
  SimulateCommand()
      : Command({.name = "simulate",
                 .purpose = "Replay searchers on measured spaces: how many trials until the best is found",
                 .examples = "tilesmith simulate tools/measured_spaces/*.space\n"
                             "tilesmith simulate tools/measured_spaces/*.space --tuner xgb --history "
                             "resnet18.jsonl --curve"}) {}

  void Declare(Args& args) override {
    args.Positionals("SPACE", &paths_, "Files of measure-space");
    args.Texts("--tuner", &tuners_, "Search strategy, several times for several (default all but grid)",
               "NAME");
    args.Positive("--seeds", &seeds_, "Replays of each (default 20)", kMaxSeeds);
    args.Positive("--trials", &trials_, "Of a replay (default 300)", kMaxTrials);
    args.Positive("--batch", &batch_, "Configs chosen at a time (default 16)", kMaxTrials);
    args.Texts("--history", &histories_, "Logs and measured spaces the models may learn from beforehand",
               "LOG");
    args.Flag("--curve", &curve_, "Print the median regret after so many trials, too");
    args.Text("--csv", &csv_path_, "Write the regret curves here", "FILE");
    args.Text("--summary", &summary_path_, "Write the table as CSV, behind # lines that say where it is from",
              "FILE");
    args.Flag("--json", &json_, "Print JSON");
  }

  int Run() override {
    RequireDifferent({csv_path_, summary_path_});
    RequireReplaceable(csv_path_, OutputFormat::kCsv);
    RequireReplaceable(summary_path_, OutputFormat::kCsv);
    for (const std::string& path : paths_) spaces_.push_back(ReadMeasuredSpace(path));
    PlanSeries();
    Replays();
    Report report;
    report.Fact("seeds", "seeds", CountCell(seeds_));
    const Table summary = SummaryTable();
    report.AddTable(summary);
    if (curve_) {
      Table& curves = report.AddTable(CurveTable());
      AddCurves(curves);
      if (curves.rows().empty())
        report.Note(fmt::format("No curve: its first point is after {} trials.", kCurvePoints[0]));
    }
    PrintResults(report, json_, CappedCpu(""));
    if (!csv_path_.empty()) {
      Table curves = CurveTable();
      AddCurves(curves);
      WriteTextFile(csv_path_, curves.ToCsv());
    }
    if (!summary_path_.empty()) {
      WriteResults(summary_path_, summary, "Trials until a searcher is near the best of a measured space",
                   fmt::format("{}, which measured the first space", MachineText(spaces_.front().target)));
    }
    return 0;
  }

 private:
  void PlanSeries() {
    if (tuners_.empty()) {
      for (const SearcherInfo& info : Searchers()) {
        if (info.name != "grid") tuners_.emplace_back(info.name);
      }
    }
    for (const std::string& tuner : tuners_) RequireSearcher(tuner);
    for (size_t space = 0; space < spaces_.size(); ++space) {
      for (const std::string& tuner : tuners_) {
        series_.push_back({space, tuner, false, {}});
        if (!histories_.empty() && FindSearcher(tuner).learns) series_.push_back({space, tuner, true, {}});
      }
    }
    for (Series& series : series_) series.curves.resize(static_cast<size_t>(seeds_));
  }

  // Everything given but the space itself.
  std::shared_ptr<const TrainingHistory> HistoryFor(const MeasuredSpace& space) const {
    auto history = std::make_shared<TrainingHistory>();
    for (const std::string& path : histories_) {
      const bool is_space = path.ends_with(".space");
      const std::vector<Record> records = is_space ? RecordsOf(ReadMeasuredSpace(path)) : LoadRecords(path);
      for (const Record& record : records) {
        if (!(record.workload == space.workload)) history->Add(record);
      }
    }
    return history;
  }

  void Replays() {
    std::atomic<size_t> next = 0;
    const size_t seeds = static_cast<size_t>(seeds_);
    const size_t jobs = series_.size() * seeds;
    const auto replay_all = [&] {
      // A history of its own for each thread and space: models are trained on demand.
      std::map<size_t, std::shared_ptr<const TrainingHistory>> histories;
      for (size_t job = next++; job < jobs; job = next++) {
        Series& series = series_[job / seeds];
        const MeasuredSpace& space = spaces_[series.space];
        ReplayOptions options;
        options.trials = static_cast<int>(trials_);
        options.batch = static_cast<int>(batch_);
        options.seed = job % seeds + 1;
        if (series.taught) {
          auto& history = histories[series.space];
          if (!history) history = HistoryFor(space);
          options.history = history;
        }
        series.curves[job % seeds] = Replay(space, series.tuner, options);
      }
    };
    // What goes wrong in one of them ends all, and is the caller's to know.
    std::mutex failing;
    std::exception_ptr failure;
    const auto work = [&] {
      try {
        replay_all();
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failure) failure = std::current_exception();
        next = jobs;
      }
    };
    std::vector<std::thread> threads;
    const int workers = std::max(1, CappedCpu("").cores);
    for (int i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
  }

  double MedianTrials(const Series& series, double slack) const {
    std::vector<double> trials;
    for (const auto& curve : series.curves) {
      const bool never = curve.empty();  // not one of the few configs of a large space was found
      trials.push_back(never ? static_cast<double>(trials_ + 1)
                             : TrialsUntil(curve, TrueBest(spaces_[series.space]), slack));
    }
    return Quantile(trials, 0.5);
  }

  bool Reached(double trials) const { return trials <= static_cast<double>(trials_); }

  Cell TrialsCell(double trials) const {
    return Reached(trials) ? RealCell(trials, 0) : Cell{std::monostate(), fmt::format("> {}", trials_)};
  }

  // Trials to 5% over random search's.
  Cell OfRandomCell(const Series& series) const {
    const Series* random = RandomOn(series.space);
    if (!random) return NoCell();
    const double trials = MedianTrials(series, kNear), of_random = MedianTrials(*random, kNear);
    return Reached(trials) && Reached(of_random) ? PercentCell(trials / of_random) : NoCell();
  }

  const Series* RandomOn(size_t space) const {
    for (const Series& series : series_) {
      if (series.space == space && series.tuner == "random") return &series;
    }
    return nullptr;
  }

  Table SummaryTable() const {
    Table table("searchers", "",
                {{"workload", "workload"},
                 {"template", "template", 2},
                 {"configs", "configs", 3},
                 {"share_within_5", "within 5%", 3},
                 {"tuner", "tuner"},
                 {"trials_to_5", "trials to 5%", 0},
                 {"trials_to_2", "to 2%"},
                 {"of_random", "of random's"},
                 {"regret_100", "regret at 100", 2},
                 {"regret_end", "at the end"}});
    for (const Series& series : series_) {
      const MeasuredSpace& space = spaces_[series.space];
      table.AddRow({TextCell(WorkloadToString(space.workload)), TextCell(space.template_name),
                    CountCell(static_cast<int64_t>(space.seconds.size())),
                    PercentCell(ShareWithin(space, kNear)),
                    TextCell(series.tuner + (series.taught ? " + history" : "")),
                    TrialsCell(MedianTrials(series, kNear)), TrialsCell(MedianTrials(series, kNearer)),
                    OfRandomCell(series), trials_ < 100 ? NoCell() : RegretCell(series, 100),
                    RegretCell(series, static_cast<int>(trials_))});
    }
    return table;
  }

  Cell RegretCell(const Series& series, int trials) const {
    std::vector<double> regrets;
    regrets.reserve(series.curves.size());
    for (const auto& curve : series.curves) {
      regrets.push_back(RegretAfter(curve, TrueBest(spaces_[series.space]), trials));
    }
    const double median = Quantile(regrets, 0.5);
    return {median, fmt::format("{:.1f}%", 100 * median)};
  }

  static Table CurveTable() {
    return {"curves",
            "Median regret after so many trials:",
            {{"workload", "workload"},
             {"tuner", "tuner"},
             {"trials", "trials"},
             {"regret", "regret"},
             {"", "up to half"}}};
  }

  void AddCurves(Table& table) const {
    constexpr double kFullBar = 0.5;
    for (const Series& series : series_) {
      for (int trials : kCurvePoints) {
        if (trials > trials_) break;
        const Cell regret = RegretCell(series, trials);
        const double bar = std::min(std::get<double>(regret.value) / kFullBar, 1.0);
        table.AddRow({TextCell(WorkloadToString(spaces_[series.space].workload)),
                      TextCell(series.tuner + (series.taught ? " + history" : "")), CountCell(trials), regret,
                      TextCell(std::string(static_cast<size_t>(40 * bar), '#'))});
      }
    }
  }

  std::vector<std::string> paths_, tuners_, histories_;
  int64_t seeds_ = 20, trials_ = 300, batch_ = 16;
  bool curve_ = false, json_ = false;
  std::string csv_path_, summary_path_;
  std::vector<MeasuredSpace> spaces_;
  std::vector<Series> series_;
};

}  // namespace

std::unique_ptr<Command> MakeSimulateCommand() { return std::make_unique<SimulateCommand>(); }

}  // namespace tilesmith
