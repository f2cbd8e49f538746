// Several templates can compute one workload: who gets the next batch of trials.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace tilesmith {

// Every template starts with one trial and, the fastest first, goes on with one batch: a task whose time ends
// early has at least looked at all of them. From then on two batches of three go to the leader, the third to
// the least tried of those close behind it. Who is far behind drops out unless nobody else has configs left.
class TemplateRace {
 public:
  explicit TemplateRace(size_t templates) : runners_(templates) {}

  // nullopt when all are exhausted.
  std::optional<size_t> Next();
  // Whose first turn, a single trial, is to come.
  std::optional<size_t> NextUntried() const;
  // A turn, which may still go on; its best time is infinity while nothing has worked.
  void Tried(size_t runner, double best_seconds);
  // What became of it.
  void Improved(size_t runner, double best_seconds);
  void Exhausted(size_t runner) { runners_[runner].exhausted = true; }

 private:
  struct Runner {
    int turns = 0;
    double best_seconds = std::numeric_limits<double>::infinity();
    bool exhausted = false;
  };
  std::vector<Runner> runners_;
  int turn_ = 0;
};

}  // namespace tilesmith
