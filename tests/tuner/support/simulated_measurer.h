// A measurer of the tests' own machine: trials take no time, and their results come in any order.
#pragma once

#include <utility>
#include <vector>

#include "layouts/base/check.h"
#include "tests/support/random.h"
#include "tuner/measure/measurer.h"

namespace tilesmith {

// Subclasses say what a trial's result is, when it is submitted. With a capacity above 1, results are handed
// out in an order that follows from the seed, a full queue's at the soonest.
class SimulatedMeasurer : public Measurer {
 public:
  virtual TrialResult Measure(const TrialRequest& request) = 0;

  void Begin(const MeasureSession& session) override {
    sessions.push_back(session);
    in_flight_.clear();
  }
  int Capacity() const override { return capacity; }
  Ticket Submit(const TrialRequest& request) override {
    TILESMITH_CHECK(static_cast<int>(in_flight_.size()) < capacity, "the queue is full");
    TrialResult result = Measure(request);
    if (!sessions.empty()) result.target = sessions.back().cpu;
    in_flight_.emplace_back(++last_, std::move(result));
    most_in_flight = std::max(most_in_flight, in_flight_.size());
    return last_;
  }
  std::pair<Ticket, TrialResult> Next() override {
    TILESMITH_CHECK(!in_flight_.empty(), "nothing is in flight");
    const auto place = random.Integer(0, static_cast<int64_t>(in_flight_.size()) - 1);
    const auto chosen = in_flight_.begin() + place;
    std::pair<Ticket, TrialResult> done = std::move(*chosen);
    in_flight_.erase(chosen);
    return done;
  }

  int capacity = 1;
  TestRandom random{1};
  size_t most_in_flight = 0;
  std::vector<MeasureSession> sessions;

 private:
  std::vector<std::pair<Ticket, TrialResult>> in_flight_;
  Ticket last_ = 0;
};

// One trial, waited for.
inline TrialResult MeasureOne(Measurer& measurer, const TrialRequest& request) {
  const Ticket ticket = measurer.Submit(request);
  auto [of, result] = measurer.Next();
  TILESMITH_CHECK(of == ticket, "another trial's result");
  return result;
}

}  // namespace tilesmith
