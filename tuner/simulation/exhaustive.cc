#include "tuner/simulation/exhaustive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>

#include "layouts/base/error.h"
#include "tuner/measure/measurer.h"
#include "tuner/search/config_sampling.h"

namespace tilesmith {
namespace {

constexpr double kNear = 1.15;  // times the best: measured again
constexpr int kAgain = 2;       // passes over these

int64_t ParseValue(const std::string& text, const std::string& of) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorCode::kUsage, fmt::format("\"{}\" in \"{}\" is not an integer", text, of));
  }
  return value;
}

class ExhaustiveRun {
 public:
  ExhaustiveRun(const ExhaustiveRequest& request, Measurer& measurer, const ExhaustiveSinks& sinks)
      : request_(request), measurer_(measurer), sinks_(sinks), space_(request.knobs, nullptr) {
    measured_ = {.target = request.session.cpu,
                 .workload = request.session.workload,
                 .template_name = std::string(request.conv_template->Name()),
                 .conditions = request.session.conditions,
                 .knobs = request.knobs,
                 .seconds = {}};
  }

  MeasuredSpace Run() {
    for (const Record& record : request_.known) {
      if (record.status == TrialStatus::kWorkerLost) continue;
      TrialResult result;
      result.status = record.status;
      result.sample_seconds = record.sample_seconds;
      result.seconds = record.seconds;
      result.target = record.target;
      Enter(*space_.IndexOf(record.config), std::move(result));
    }
    measurer_.Begin(request_.session);
    std::vector<uint64_t> all = ValidIndices();
    RandomSource random(request_.session.seed);
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.Below(i)]);
    expected_ = Missing(all, 1);
    Measure(all, 1);
    const std::vector<uint64_t> near = NearTheBest();
    expected_ += Missing(near, 1 + kAgain);
    for (int pass = 0; pass < kAgain; ++pass) Measure(near, 2 + pass);
    return std::move(measured_);
  }

 private:
  std::vector<uint64_t> ValidIndices() const {
    const ConfigSpace whole = request_.conv_template->Space(request_.session.workload, request_.session.cpu);
    std::vector<uint64_t> valid;
    for (uint64_t index = 0; index < space_.size(); ++index) {
      if (whole.WhyInvalid(space_.At(index)).empty()) valid.push_back(index);
    }
    return valid;
  }

  // Trials until each has had so many.
  size_t Missing(const std::vector<uint64_t>& configs, int trials) const {
    size_t missing = 0;
    for (const uint64_t index : configs)
      missing += static_cast<size_t>(std::max(0, trials - TrialsOf(index)));
    return missing;
  }

  int TrialsOf(uint64_t index) const {
    const auto found = trials_.find(index);
    return found == trials_.end() ? 0 : found->second;
  }

  // Configs that have not had so many trials yet get one.
  void Measure(const std::vector<uint64_t>& configs, int trials) {
    std::vector<uint64_t> asked;
    std::ranges::copy_if(configs, std::back_inserter(asked),
                         [&](uint64_t index) { return TrialsOf(index) < trials; });
    bool stopped = false;
    const auto next = [&, i = size_t{0}]() mutable -> std::optional<TrialRequest> {
      if (i == asked.size()) return std::nullopt;
      stopped = stopped || (sinks_.should_stop && sinks_.should_stop());
      if (stopped) return std::nullopt;
      return TrialRequest{measured_.template_name, space_.At(asked[i++])};
    };
    RunTrials(measurer_, next, [&](size_t i, TrialResult again) {
      if (sinks_.on_record)
        sinks_.on_record(TrialRecord(request_.session, *request_.conv_template, space_.At(asked[i]), again));
      Enter(asked[i], std::move(again));
      if (sinks_.on_progress) sinks_.on_progress(++done_, expected_);
    });
    if (stopped) throw Error(ErrorCode::kInterrupted, "interrupted before every config was measured");
  }

  void Enter(uint64_t index, TrialResult again) {
    TrialResult& result = results_[index];
    ++trials_[index];
    result = Pooled(result, std::move(again));
    measured_.target = result.target;
    const bool ok = result.status == TrialStatus::kOk;
    measured_.seconds[index] = ok ? std::optional(result.seconds) : std::nullopt;
  }

  std::vector<uint64_t> NearTheBest() const {
    const double limit = kNear * TrueBest(measured_);
    std::vector<uint64_t> near;
    for (const auto& [index, seconds] : measured_.seconds) {
      if (seconds && *seconds <= limit) near.push_back(index);
    }
    return near;
  }

  const ExhaustiveRequest& request_;
  Measurer& measurer_;
  const ExhaustiveSinks& sinks_;
  const ConfigSpace space_;
  MeasuredSpace measured_;
  std::map<uint64_t, TrialResult> results_;
  std::map<uint64_t, int> trials_;
  size_t done_ = 0, expected_ = 0;
};

}  // namespace

KnobRestrictions ParseRestrictions(const std::string& text) {
  KnobRestrictions restrictions;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorCode::kUsage, fmt::format("\"{}\" is not KNOB=VALUE,VALUE,...", word));
    }
    std::istringstream values(word.substr(equals + 1));
    std::vector<int64_t>& list = restrictions[word.substr(0, equals)];
    for (std::string value; std::getline(values, value, ',');) list.push_back(ParseValue(value, word));
    if (list.empty()) throw Error(ErrorCode::kUsage, fmt::format("\"{}\" names no value", word));
  }
  return restrictions;
}

std::vector<Knob> Restrict(const ConfigSpace& space, const KnobRestrictions& restrictions) {
  std::vector<Knob> knobs = space.knobs();
  for (const auto& [name, values] : restrictions) {
    const auto knob =
        std::find_if(knobs.begin(), knobs.end(), [&name = name](const Knob& k) { return k.name == name; });
    if (knob == knobs.end()) {
      std::vector<std::string> known;
      known.reserve(knobs.size());
      for (const Knob& k : knobs) known.push_back(k.name);
      throw Error(ErrorCode::kUsage,
                  fmt::format("unknown knob \"{}\" (known: {})", name, fmt::join(known, ", ")));
    }
    std::vector<int64_t> kept;
    for (int64_t value : knob->values) {
      if (std::find(values.begin(), values.end(), value) != values.end()) kept.push_back(value);
    }
    for (int64_t value : values) {
      if (std::find(kept.begin(), kept.end(), value) != kept.end()) continue;
      throw Error(ErrorCode::kUsage, fmt::format("knob \"{}\" is never {} (its values: {})", name, value,
                                                 fmt::join(knob->values, ", ")));
    }
    knob->values = kept;
  }
  return knobs;
}

std::string WhyForeign(const ExhaustiveRequest& request, const Record& record) {
  const std::string workload = WorkloadToString(request.session.workload);
  if (WorkloadToString(record.workload) != workload)
    return fmt::format("of {}, not of {}", WorkloadToString(record.workload), workload);
  if (record.template_name != request.conv_template->Name())
    return fmt::format("of template {}, not of {}", record.template_name, request.conv_template->Name());
  if (!SameMachine(record.target, request.session.cpu)) return "of another machine";
  if (!(record.conditions == request.session.conditions))
    return "with other weights, cold or warm, or another number of threads";
  const auto index = ConfigSpace(request.knobs, nullptr).IndexOf(record.config);
  return index ? "" : "of configs that these knobs leave out";
}

MeasuredSpace MeasureExhaustively(const ExhaustiveRequest& request, Measurer& measurer,
                                  const ExhaustiveSinks& sinks) {
  return ExhaustiveRun(request, measurer, sinks).Run();
}

}  // namespace tilesmith
