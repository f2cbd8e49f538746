#include "tuner/record_line.h"

#include <algorithm>
#include <charconv>

#include "tuner/json_fields.h"

namespace tilesmith {
namespace {

// Caches beyond these are emptied: a log of that many workloads gains nothing from them.
constexpr size_t kMostWorkloads = 4096;
constexpr size_t kMostOthers = 32;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string ParseRecordLine(std::string_view line, Record& record) {
  const nlohmann::json json = ParseJson(line);
  if (json.is_discarded()) return "not JSON (a torn line, or not a tuning log)";
  try {
    record = RecordFromJson(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What is left of a line. Reading what is not there fails for good; the values read since mean nothing.
class RecordLineReader::Cursor {
 public:
  explicit Cursor(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && at_ == end_; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  void Fail() {
    ok_ = false;
    at_ = end_;
  }

  // Passes over `text` if it comes next.
  bool Skip(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  void Expect(std::string_view text) {
    if (!Skip(text)) Fail();
  }

  // Up to the next quote, which is passed over. Only printable ASCII, no escapes.
  std::string_view Text() {
    const char* const begin = at_;
    for (; at_ != end_; ++at_) {
      if (*at_ == '"') return {begin, static_cast<size_t>(at_++ - begin)};
      if (*at_ == '\\' || *at_ < 0x20 || *at_ > 0x7e) break;
    }
    Fail();
    return {};
  }

  bool Bool() {
    if (Skip("true")) return true;
    Expect("false");
    return false;
  }

  // Not negative, and no more than the type holds.
  template <typename T>
  T Integer() {
    T value = 0;
    const auto [after, error] = std::from_chars(at_, end_, value);
    const bool padded = after - at_ > 1 && *at_ == '0';
    const bool more = after != end_ && (*after == '.' || *after == 'e' || *after == 'E');
    if (error != std::errc() || !IsDigit(*at_) || padded || more) {
      Fail();
    } else {
      at_ = after;
    }
    return value;
  }

  // Not negative, as JSON writes numbers; nothing that underflows or overflows.
  double Real() {
    const char* after = Digits(at_);
    if (after == at_ || (after - at_ > 1 && *at_ == '0')) return Fail(), 0;
    if (after != end_ && *after == '.') after = Digits(Needed(after + 1));
    if (after != end_ && (*after == 'e' || *after == 'E')) {
      ++after;
      if (after != end_ && (*after == '-' || *after == '+')) ++after;
      after = Digits(Needed(after));
    }
    double value = 0;
    if (!ok_) return 0;
    const auto [stop, error] = std::from_chars(at_, after, value);
    if (error != std::errc() || stop != after) return Fail(), 0;
    at_ = after;
    return value;
  }

 private:
  const char* Digits(const char* from) const {
    while (from != end_ && IsDigit(*from)) ++from;
    return from;
  }
  // `from`, where at least one digit must stand.
  const char* Needed(const char* from) {
    if (from != end_ && IsDigit(*from)) return from;
    Fail();
    return end_;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

bool RecordLineReader::ReadCanonical(std::string_view line, Record& record) {
  Cursor at(line);
  try {
    return ReadMembers(at, record);
  } catch (const Error&) {
    return false;
  }
}

bool RecordLineReader::ReadMembers(Cursor& at, Record& record) {
  record = {};
  at.Expect(R"({"conditions":{"cold_weights":)");
  record.conditions.cold_weights = at.Bool();
  at.Expect(R"(,"pinned":)");
  record.conditions.pinned = at.Bool();
  at.Expect(R"(,"threads":)");
  record.conditions.threads = at.Integer<int>();
  at.Expect(R"(},"config":{)");
  ReadConfig(at, record.config);
  if (at.Skip(R"(,"detail":")")) record.detail = at.Text();
  at.Expect(R"(,"early_stopped":)");
  record.early_stopped = at.Bool();
  if (at.Skip(R"(,"error":)")) record.error = at.Real();
  at.Expect(R"(,"layouts":[)");
  ReadLayouts(at, record.layouts);
  if (at.Skip(R"(,"origin":")")) record.origin = at.Text();
  if (at.Skip(R"(,"purpose":")")) record.purpose = at.Text();
  at.Expect(R"(,"samples":[)");
  if (!at.Skip("]")) {
    const std::string_view list = at.rest().substr(0, at.rest().find(']'));
    record.sample_seconds.reserve(1 + static_cast<size_t>(std::count(list.begin(), list.end(), ',')));
    do record.sample_seconds.push_back(at.Real());
    while (at.ok() && at.Skip(","));
    at.Expect("]");
  }
  at.Expect(R"(,"seconds":)");
  record.seconds = at.Real();
  at.Expect(R"(,"seed":)");
  record.seed = at.Integer<uint64_t>();
  at.Expect(R"(,"statistic":")");
  record.statistic = at.Text();
  at.Expect(R"(,"status":")");
  const std::string_view status = at.Text();
  at.Expect(R"(,"target":)");
  ReadTarget(at, record.target);
  if (at.Skip(R"(,"task_trials":)")) record.task_trials = at.Integer<int>();
  at.Expect(R"(,"template":")");
  record.template_name = at.Text();
  at.Expect(R"(,"tilesmith":)");
  const int format = at.Integer<int>();
  at.Expect(R"(,"time":")");
  record.time = at.Text();
  at.Expect(R"(,"tuner":")");
  record.tuner = at.Text();
  at.Expect(R"(,"workload":")");
  const std::string_view workload = at.Text();
  at.Expect("}");
  if (!at.AtEnd() || format < 1 || format > kRecordFormat) return false;
  record.status = ParseTrialStatus(status);
  record.workload = WorkloadOf(workload);
  return WhyImplausible(record).empty();
}

// Names must ascend, as they do when LogWriter writes them; then no name comes twice.
void RecordLineReader::ReadConfig(Cursor& at, Config& config) {
  config.Reserve(knobs_);
  if (at.Skip("}")) return;
  std::string_view last;
  for (;;) {
    at.Expect("\"");
    const std::string_view name = at.Text();
    at.Expect(":");
    const auto value = at.Integer<int64_t>();
    if (!at.ok() || (!config.knobs().empty() && name <= last)) return at.Fail();
    config.Set(name, value);
    last = name;
    if (at.Skip(",")) continue;
    at.Expect("}");
    knobs_ = config.knobs().size();
    return;
  }
}

void RecordLineReader::ReadTarget(Cursor& at, Target& target) {
  for (const auto& [text, known] : targets_) {
    if (!at.Skip(text)) continue;
    target = known;
    return;
  }
  const std::string_view from = at.rest();
  at.Expect(R"({"cores":)");
  target.cores = at.Integer<int>();
  at.Expect(R"(,"cpu":")");
  target.cpu_model = at.Text();
  at.Expect(R"(,"isa":")");
  const std::string_view isa = at.Text();
  at.Expect(R"(,"l1d_bytes":)");
  target.l1d_bytes = at.Integer<int64_t>();
  at.Expect(R"(,"l2_bytes":)");
  target.l2_bytes = at.Integer<int64_t>();
  at.Expect(R"(,"l3_bytes":)");
  target.l3_bytes = at.Integer<int64_t>();
  at.Expect(R"(,"version":")");
  target.tool_version = at.Text();
  at.Expect("}");
  if (!at.ok()) return;
  target.isa = ParseIsa(isa);
  if (targets_.size() >= kMostOthers) targets_.clear();
  targets_.emplace_back(from.substr(0, from.size() - at.rest().size()), target);
}

void RecordLineReader::ReadLayouts(Cursor& at, LayoutPair& layouts) {
  for (const auto& [text, known] : layouts_) {
    if (!at.Skip(text)) continue;
    layouts = known;
    return;
  }
  const std::string_view from = at.rest();
  at.Expect("\"");
  const std::string_view in = at.Text();
  at.Expect(",\"");
  const std::string_view out = at.Text();
  at.Expect("]");
  if (!at.ok()) return;
  layouts = {Layout::Parse(in), Layout::Parse(out)};
  if (layouts_.size() >= kMostOthers) layouts_.clear();
  layouts_.emplace_back(from.substr(0, from.size() - at.rest().size()), layouts);
}

const ConvWorkload& RecordLineReader::WorkloadOf(std::string_view text) {
  const auto found = workloads_.find(text);
  if (found != workloads_.end()) return found->second;
  if (workloads_.size() >= kMostWorkloads) workloads_.clear();
  return workloads_.emplace(text, ParseWorkload(text)).first->second;
}

}  // namespace tilesmith
