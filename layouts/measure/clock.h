// The clock of all measurements.
#pragma once

#include <chrono>

namespace tilesmith {

// Seconds of a clock that only goes forward, from an arbitrary beginning.
inline double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How long `work` takes.
template <typename Work>
double SecondsOf(const Work& work) {
  const double begin = NowSeconds();
  work();
  return NowSeconds() - begin;
}

}  // namespace tilesmith
