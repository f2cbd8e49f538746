#include "graph_tuner/planner/work.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace tilesmith {

std::string DurationText(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string MillisecondsText(double seconds) {
  const double ms = seconds * 1e3, size = std::abs(ms);
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4;
  std::string text = fmt::format("{:.{}f}", ms, decimals);
  const bool is_zero = text.find_first_of("123456789") == std::string::npos;
  return is_zero && text.starts_with('-') ? text.substr(1) : text;  // "-0.0000" is none
}

void StageProgress::Begin(const std::string& what, int length) {
  const double now = NowSeconds();
  if (begun_ == 0) first_began_ = now;
  const double each = begun_ == 0 ? guessed_seconds_ : (now - first_began_) / begun_;
  if (each > 0) estimated_end_ = std::min(now + each * std::max(to_come_, length), limit_.end);
  stage_ = what;
  begun_ += length;
  to_come_ -= length;
  Tick();
}

void StageProgress::Tick() const {
  if (estimated_end_ == 0) return sinks_.Stage(stage_);
  const double left = std::max(0.0, estimated_end_ - NowSeconds());
  sinks_.Stage(fmt::format("{}, about {} left", stage_, DurationText(left)));
}

double StageProgress::SecondsEach() const {
  constexpr double kOverhead = 1.5;  // making plans ready, first runs, moments in which the cores moved
  return std::min(guessed_seconds_, limit_.left() / (kOverhead * std::max(to_come_, 1)));
}

}  // namespace tilesmith
