#include "templates/direct_int8/sections.h"

#include <algorithm>

#include "templates/int8/byte_image.h"

namespace tilesmith::direct_int8 {

std::vector<AlikeOutputs> OutputsByTaps(const WindowAxis& axis) {
  std::vector<AlikeOutputs> alike;
  for (int64_t output = 0; output < axis.outputs; ++output) {
    const int64_t begin = output * axis.stride - axis.padding;  // of the window
    int64_t tap = begin < 0 ? std::min(CeilDiv(-begin, axis.tap_step), axis.taps) : 0;
    int64_t end_tap =
        begin < axis.inputs ? std::min(CeilDiv(axis.inputs - begin, axis.tap_step), axis.taps) : 0;
    if (tap >= end_tap) tap = end_tap = 0;
    if (!alike.empty() && alike.back().tap == tap && alike.back().end_tap == end_tap) {
      alike.back().end = output + 1;
    } else {
      alike.push_back({output, output + 1, tap, end_tap});
    }
  }
  return alike;
}

double SharePadded(const WindowAxis& axis, const std::vector<AlikeOutputs>& outputs) {
  int64_t read = 0;
  for (const AlikeOutputs& some : outputs) read += (some.end - some.first) * (some.end_tap - some.tap);
  return 1 - static_cast<double>(read) / static_cast<double>(axis.outputs * axis.taps);
}

namespace {

// Rows side by side are computed together, so that leaving out their padding costs their ends; columns are
// the pixels of a tile, which becomes narrower.
constexpr double kLeastShareOfRows = 0.04, kLeastShareOfColumns = 0.15;

std::vector<AlikeOutputs> Outputs(const WindowAxis& axis, bool skips, double least_share) {
  std::vector<AlikeOutputs> by_taps = OutputsByTaps(axis);
  if (skips && SharePadded(axis, by_taps) >= least_share) return by_taps;
  return {{0, axis.outputs, 0, axis.taps}};
}

}  // namespace

WindowSections::WindowSections(const WindowPlan& plan, bool skips) : kh_(plan.conv.kh), kw_(plan.conv.kw) {
  const ConvWorkload& w = plan.conv;
  const std::vector<AlikeOutputs> rows = Outputs(
      {.outputs = w.oh, .inputs = w.ih, .taps = w.kh, .stride = w.sh, .tap_step = w.dh + 1, .padding = w.ph},
      skips, kLeastShareOfRows);
  const std::vector<AlikeOutputs> columns = Outputs(
      {.outputs = w.ow, .inputs = w.iw, .taps = w.kw, .stride = w.sw, .tap_step = w.dw + 1, .padding = w.pw},
      skips && plan.run_columns == 1, kLeastShareOfColumns);
  const int64_t row_runs = CeilDiv(w.kw, plan.run_columns);
  const int64_t run_bytes = plan.run_length * plan.lanes * plan.number_bytes;
  for (const AlikeOutputs& some_rows : rows) {
    for (const AlikeOutputs& some_columns : columns) {
      Section section{some_rows, some_columns, {}, {}};
      for (int64_t i = some_rows.tap; i < some_rows.end_tap; ++i) {
        const int64_t first = some_columns.tap / plan.run_columns;
        const int64_t end = CeilDiv(some_columns.end_tap, plan.run_columns);
        for (int64_t run = i * row_runs + first; run < i * row_runs + end; ++run) {
          section.runs.push_back(plan.runs[run]);
          section.run_weights.push_back(static_cast<int32_t>(run * run_bytes));
        }
      }
      all_.push_back(std::move(section));
    }
  }
}

int64_t WindowSections::SumReadBy(const Section& section, std::span<const int16_t> channel) const {
  const int64_t taps = kh_ * kw_, first = section.columns.tap, end = section.columns.end_tap;
  if (section.rows.end_tap - section.rows.tap == kh_ && end - first == kw_) return SumOfWeights(channel);
  int64_t sum = 0;
  for (int64_t c = 0; c < std::ssize(channel); c += taps) {
    for (int64_t i = section.rows.tap; i < section.rows.end_tap; ++i) {
      for (int64_t j = first; j < end; ++j) sum += channel[c + i * kw_ + j];
    }
  }
  return sum;
}

bool WindowSections::Cut(const AlikeOutputs& outputs, int64_t& first, int64_t& count) {
  const int64_t begin = std::max(first, outputs.first), end = std::min(first + count, outputs.end);
  first = begin, count = end - begin;
  return count > 0;
}

}  // namespace tilesmith::direct_int8
