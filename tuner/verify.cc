#include "tuner/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tuner/measure/estimator.h"
#include "tuner/measure/measurer.h"
#include "tuner/records/record.h"
#include "tuner/search/config_sampling.h"

namespace tilesmith {
namespace {

Target CpuFor(const Record& record, const VerifyRequest& request) {
  return request.retarget ? request.cpu : CapIsa(request.cpu, record.target.isa);
}

// A check says what is to be measured, or why nothing can be.
Verification Prepare(const Record& record, const VerifyRequest& request) {
  Verification v = {record, "", record, false};
  const Target& cpu = request.cpu;
  if (!request.retarget) {
    if (record.target.model != cpu.model) {
      v.skipped = fmt::format("measured on {} ({})", record.target.model, IsaName(record.target.isa));
    } else if (record.target.isa > cpu.isa) {
      v.skipped = fmt::format("needs {}, this machine has {}", IsaName(record.target.isa), IsaName(cpu.isa));
    } else if (record.conditions.threads > cpu.cores) {
      v.skipped =
          fmt::format("took {} threads, this machine has {} cores", record.conditions.threads, cpu.cores);
    }
    if (!v.skipped.empty()) return v;
  } else {
    v.now.conditions.threads = request.threads;
    v.now.conditions.pinned = true;
  }
  const Target here = CpuFor(record, request);
  const ConvTemplate* conv_template = KnownConvTemplate(record.template_name);
  if (conv_template == nullptr) {
    v.skipped = fmt::format("unknown template \"{}\"", record.template_name);
    return v;
  }
  const Support support = conv_template->Supports(record.workload, here);
  if (!support.ok) {
    v.skipped = "not supported: " + support.reason;
    return v;
  }
  const ConfigSpace space = conv_template->Space(record.workload, here);
  const std::string invalid = space.WhyInvalid(record.config);
  if (!invalid.empty() && request.retarget) {
    const Config base = conv_template->Default(record.workload, here);
    v.now.config = NearestConfig(space, base, record.config).value_or(base);
  } else if (!invalid.empty()) {
    v.skipped = "invalid config: " + invalid;
    return v;
  }
  v.now.layouts = conv_template->Layouts(record.workload, v.now.config);
  v.now.target = here;
  v.now.seed = request.seed;
  v.now.purpose = kPurposeRetime;
  v.now.task_trials = 0;
  v.now.origin.clear();
  return v;
}

class Verifier {
 public:
  Verifier(const VerifyRequest& request, Measurer& measurer, const VerifySinks& sinks)
      : request_(request), measurer_(measurer), sinks_(sinks) {}

  std::vector<Verification> Run(const std::vector<Record>& records) {
    std::vector<Verification> all;
    all.reserve(records.size());
    for (const Record& record : records) all.push_back(Prepare(record, request_));
    std::vector<Verification*> open;
    for (Verification& v : all) {
      if (v.skipped.empty()) open.push_back(&v);
    }
    total_ = open.size();
    for (const auto& session : Sessions(open)) Measure(session);
    std::vector<Verification*> slow;
    std::copy_if(open.begin(), open.end(), std::back_inserter(slow), [&](const Verification* v) {
      return v->comparable() && v->now.seconds > (1 + request_.tolerance) * v->old.seconds;
    });
    for (const auto& session : Sessions(slow)) Measure(session);
    return all;
  }

 private:
  // Records that share data and conditions are one group, in the order of their first records.
  static std::vector<std::vector<Verification*>> Sessions(const std::vector<Verification*>& open) {
    std::vector<std::vector<Verification*>> sessions;
    for (Verification* v : open) {
      const auto mine = std::find_if(sessions.begin(), sessions.end(), [&](const auto& session) {
        return TaskKey(session.front()->now) == TaskKey(v->now);
      });
      if (mine == sessions.end()) {
        sessions.push_back({v});
      } else {
        mine->push_back(v);
      }
    }
    return sessions;
  }

  bool Stopped() const { return sinks_.should_stop && sinks_.should_stop(); }

  void Measure(const std::vector<Verification*>& session) {
    const Record& first = session.front()->now;
    measurer_.Begin({first.workload, CpuFor(session.front()->old, request_), first.conditions,
                     request_.sampling, request_.limits, request_.seed});
    std::vector<TrialRequest> requests;
    requests.reserve(session.size());
    for (const Verification* v : session) requests.push_back({v->now.template_name, v->now.config});
    bool stopped = false;
    const auto results =
        MeasureInTurns(requests, request_.rounds, measurer_, [&] { return stopped = Stopped(); });
    if (stopped) return Interrupt(session);
    for (size_t i = 0; i < session.size(); ++i) Enter(results[i], *session[i]);
    if (sinks_.on_progress) sinks_.on_progress(std::min(done_ += session.size(), total_), total_);
  }

  // Values that are known already stay.
  static void Interrupt(const std::vector<Verification*>& session) {
    for (Verification* v : session) {
      if (!v->measured) v->skipped = "interrupted";
    }
  }

  void Enter(const TrialResult& total, Verification& v) const {
    const bool ok = total.status == TrialStatus::kOk;
    const double seconds = ok ? total.seconds : 0;
    if (v.measured && ok && seconds >= v.now.seconds) return;
    v.measured = true;
    Record& now = v.now;
    now.status = total.status;
    now.detail = total.detail;
    now.sample_seconds = total.sample_seconds;
    now.seconds = seconds;
    now.statistic = kEstimatorName;
    now.error = total.error;
    now.target = total.target;
    now.early_stopped = false;
    now.time = UtcNow();
    if (sinks_.on_record) sinks_.on_record(now);
  }

  const VerifyRequest& request_;
  Measurer& measurer_;
  const VerifySinks& sinks_;
  size_t done_ = 0, total_ = 0;
};

}  // namespace

bool Verification::comparable() const {
  return measured && now.status == TrialStatus::kOk && RecordKey(old) == RecordKey(now);
}

std::vector<Record> FastestRecords(std::span<const Record> records, int64_t top) {
  std::vector<Record> fastest;
  for (RecordGroup& group : GroupRecords(StandingRecords(records))) {
    std::stable_sort(group.records.begin(), group.records.end(),
                     [](const Record* a, const Record* b) { return IsBetterRecord(*a, *b); });
    const auto count = std::min<size_t>(static_cast<size_t>(top), group.records.size());
    for (size_t i = 0; i < count; ++i) fastest.push_back(*group.records[i]);
  }
  return fastest;
}

std::vector<Verification> VerifyRecords(const std::vector<Record>& records, const VerifyRequest& request,
                                        Measurer& measurer, const VerifySinks& sinks) {
  return Verifier(request, measurer, sinks).Run(records);
}

}  // namespace tilesmith
