#include "tools/tune/tune_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "layouts/base/visible.h"
#include "layouts/measure/clock.h"
#include "tools/cli/args.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/report.h"
#include "tools/cli/tasks.h"

namespace tilesmith {
namespace {

constexpr double kPeriod = 0.2;
constexpr size_t kLinesAround = 5;  // the header, an ellipsis, two totals, and the cursor's own

double SecondsOf(const TuneRow& row, const TaskView& at) {
  const double each = at.best_seconds > 0 ? at.best_seconds : row.baseline_seconds.value_or(0);
  return static_cast<double>(row.task.count) * each;
}

// Which rows to show, in their order.
std::vector<size_t> Shown(std::span<const TuneRow> rows, const NetworkProgress& at, size_t most) {
  std::vector<size_t> shown(rows.size());
  std::iota(shown.begin(), shown.end(), 0);
  if (shown.size() <= most) return shown;
  std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) {
    if ((a == at.task) != (b == at.task)) return a == at.task;
    return SecondsOf(rows[a], at.tasks[a]) > SecondsOf(rows[b], at.tasks[b]);
  });
  shown.resize(most);
  std::sort(shown.begin(), shown.end());
  return shown;
}

std::vector<Cell> Cells(const TuneRow& row, const TaskView& at, bool current) {
  const bool has_best = at.best_seconds > 0;
  return {TextCell((current ? "> " : "  ") + ShapeText(row.task.workload)),
          CountCell(row.task.count),
          has_best ? MillisecondsCell(at.best_seconds) : NoCell(),
          has_best ? RealCell(row.task.workload.flops() / at.best_seconds * 1e-9, 0) : NoCell(),
          has_best && row.baseline_seconds ? RatioCell(*row.baseline_seconds / at.best_seconds) : NoCell(),
          CountCell(at.trials),
          CountCell(at.failures),
          TextCell(std::string(TaskStageName(at.stage)))};
}

std::string TotalText(std::span<const TuneRow> rows, const NetworkProgress& at) {
  if (!(at.network_seconds > 0)) return "total -";
  std::string text = fmt::format("total {} ms", MillisecondsCell(at.network_seconds).text);
  if (const double onednn = BaselineSeconds(rows); onednn > 0) {
    text +=
        fmt::format(", oneDNN {} ms ({:.2f}x)", MillisecondsCell(onednn).text, onednn / at.network_seconds);
  }
  return text;
}

}  // namespace

std::string TuningTable(std::span<const TuneRow> rows, const NetworkProgress& at, size_t lines,
                        size_t columns) {
  const size_t most = lines > kLinesAround + 1 ? lines - kLinesAround : 1;
  Table table("tasks", "",
              {{"shape", "  convolution"},
               {"count", "x", 3},
               {"best_seconds", "best ms"},
               {"gflops", "GFLOP/s", 5},
               {"ratio", "oneDNN/ours", 0},
               {"trials", "trials", 3},
               {"failures", "failed", 4},
               {"stage", "stage", 0}});
  const std::vector<size_t> shown = Shown(rows, at, most);
  for (size_t i : shown) table.AddRow(Cells(rows[i], at.tasks[i], i == at.task));
  std::string text = table.ToText(columns);
  if (shown.size() < rows.size()) text += fmt::format("  ... and {} more\n", rows.size() - shown.size());
  const double rate = at.elapsed_seconds > 0 ? at.trials_measured / at.elapsed_seconds : 0;
  text += fmt::format("{}\n", TotalText(rows, at));
  text += fmt::format("{} trials, {:.0f}/s; {} elapsed, {} left\n", at.trials_measured, rate,
                      DurationText(at.elapsed_seconds), DurationText(at.left_seconds));
  return text;
}

std::string TuningLine(std::span<const TuneRow> rows, const NetworkProgress& at) {
  const TaskView& task = at.tasks[at.task];
  int failures = 0;
  for (const TaskView& one : at.tasks) failures += one.failures;
  return fmt::format("[{}/{}] {} {} trials  {}  failed {}  left {}  {}", at.task + 1, rows.size(),
                     TaskStageName(task.stage), at.trials_measured, TotalText(rows, at), failures,
                     DurationText(at.left_seconds), ShapeText(rows[at.task].task.workload));
}

void LiveText::Draw(const std::string& text) {
  const Terminal terminal = DetectTerminal();
  std::string out = lines_ > 0 ? fmt::format("\033[{}A", lines_) : "";
  lines_ = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = VisibleLine(text.substr(begin, end - begin));
    out += fmt::format("\r{}\033[K\n", Shortened(line, terminal.columns - 1));
    ++lines_;
    begin = end + 1;
  }
  DrawErr(out + "\033[J");
}

void LiveText::Clear() {
  if (lines_ > 0) DrawErr(fmt::format("\033[{}A\r\033[J", lines_));
  lines_ = 0;
}

void TuneView::Show(std::span<const TuneRow> rows, const NetworkProgress& at, const std::string& note) {
  if (!live_) return line_.Show(note.empty() ? TuningLine(rows, at) : note + "  " + TuningLine(rows, at));
  const double now = NowSeconds();
  if (now < next_seconds_) return;
  next_seconds_ = now + kPeriod;
  line_.Clear();
  const Terminal terminal = DetectTerminal();
  const size_t lines_of_note = note.empty() ? 0 : 1;
  table_.Draw(TuningTable(rows, at, terminal.rows - lines_of_note, terminal.columns - 1) + note);
}

void TuneView::Say(const std::string& text) {
  table_.Clear();
  line_.Say(text);
}

void TuneView::Clear() {
  table_.Clear();
  line_.Clear();
}

WorkSinks SinksOf(TuneView& view) {
  return {.on_stage = [&view](const std::string& text) { view.ShowLine(text); },
          .on_warning = [&view](const std::string& text) { view.Say("warning: " + WithOptionNames(text)); },
          .stop = &InterruptFlag()};
}

}  // namespace tilesmith
