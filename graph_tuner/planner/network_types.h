// One network in several types, side by side: what each takes, and what it does to the outputs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph_tuner/planner/plan_network.h"
#include "graph_tuner/refine/lazy_costs.h"

namespace tilesmith {

// A limit on outputs' errors, infinity being none. Throws Error(kUsage) where it is not above 0.
std::optional<double> OutputErrorLimit(double given);
// Throws Error(kUsage) where there is such a limit and nothing that may be traded for it.
void CheckOutputErrorLimit(std::optional<double> limit, Precision precision);

// Limits on errors are held against so many samples, at most.
inline constexpr int64_t kErrorSamples = 32;
inline int64_t ErrorSamples(const PlanRequest& request) {
  return request.hurried ? kErrorSamples / 4 : kErrorSamples;
}
// On which it is measured what each layer does to the outputs.
inline int64_t InjectedSamples(const PlanRequest& request) { return request.hurried ? 1 : 2; }

// Measured costs, or those of a request in a hurry: guessed, but for what MeasurePaid has measured.
class FormCosts {
 public:
  explicit FormCosts(const PlanRequest& request);
  CostSource& operator*() const { return lazy_ ? static_cast<CostSource&>(*lazy_) : *measured_; }
  // Measures what solutions pay (lazy_costs.h), in half of the time that is left; does nothing where all
  // costs are measured.
  void MeasurePaid(const Graph& graph, const std::vector<Record>& records, const GraphTuneOptions& options,
                   const WorkLimit& limit) const;
  // Measures what the plan pays, whatever the time.
  void MeasurePaid(const Graph& graph, const Plan& plan) const;

 private:
  std::unique_ptr<CostSource> measured_;
  std::unique_ptr<LazyCosts> lazy_;
};

struct TypedPlan {
  std::string name;
  const Graph* graph = nullptr;   // lives as long
  std::optional<Plan> plan = {};  // none where `note` says why
  std::string note = {};
  bool may_be_chosen = true;  // false where the weights' limit could not be kept
};

// The network in floats, on samples of its inputs: a limit on errors is held against this.
struct FloatNetwork {
  std::unique_ptr<const Graph> graph;
  OutputErrors errors;
};
// On at most so many of its samples. Precondition: the machine is a CPU.
FloatNetwork OpenFloats(const NetworkSource& network, const DevicePtr& machine,
                        int64_t samples = kErrorSamples);

// A plan of the network in f32, bf16 or both, by the request's log: default schedules where that has none,
// and the weights' limit where that can be kept.
TypedPlan PlanFloats(const PlanRequest& request, const Graph& floats, Precision precision,
                     const FormCosts& costs, const WorkSinks& sinks, const Corrections& learned = {});

// Says whether errors of outputs can be told: loops and branches may leave other outputs for the end.
bool SameOutputs(const Graph& a, const Graph& b);

// "7 of 20 convolutions untuned", or nothing.
std::string UntunedText(const Plan& plan);

// Runs all of them by turns, about `seconds` each, and compares their outputs. `chosen` is the plan among
// them; without one (nullopt) the fastest becomes it of those that may be and whose error is at most `most`.
// Throws Error(kNoCandidate) where there is none.
std::vector<TypeRun> RunTypes(const PlanRuns& where, std::span<const TypedPlan> plans,
                              const OutputErrors& errors, std::optional<size_t> chosen, double most,
                              double seconds);

}  // namespace tilesmith
