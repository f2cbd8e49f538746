#include "tuner/records/record_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <type_traits>

#include "tuner/records/json_fields.h"
#include "tuner/records/record_fields.h"

namespace tilesmith {
namespace {

// Caches beyond these are emptied: a log of that many workloads gains nothing from them.
constexpr size_t kMaxWorkloads = 4096;
constexpr size_t kMaxOthers = 32;

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

  // What stands between two quotes. Only printable ASCII, no escapes.
  std::string_view Quoted() {
    Expect("\"");
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

namespace {

// How an object begins up to a member's value, or goes on up to it: `{"name":`, `,"name":`.
struct MemberKey {
  constexpr MemberKey(char before, std::string_view name) {
    constexpr std::string_view kAround = "\"\":";
    text[size++] = before;
    text[size++] = kAround[0];
    for (const char c : name) text[size++] = c;
    text[size++] = kAround[1];
    text[size++] = kAround[2];
  }
  constexpr std::string_view view() const { return {text.data(), size}; }

  std::array<char, 32> text = {};
  size_t size = 0;
};

// The struct's fields by name, which is the order of their members in a log.
template <typename Struct>
constexpr auto FieldsByName() {
  return std::apply(
      [](const auto&... field) {
        const std::array<std::string_view, sizeof...(field)> names = {field.name...};
        std::array<size_t, sizeof...(field)> order = {};
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return names[a] < names[b]; });
        return order;
      },
      kFields<Struct>);
}

}  // namespace

template <typename Struct>
void RecordLineReader::ReadObject(Cursor& at, Struct& into) {
  static constexpr auto kOrder = FieldsByName<Struct>();
  [&]<size_t... kRanks>(std::index_sequence<kRanks...>) {
    (ReadMember<Struct, kOrder[kRanks], kRanks == 0>(at, into), ...);
  }
  (std::make_index_sequence<kOrder.size()>());
  at.Expect("}");
}

template <typename Struct, size_t kField, bool kIsFirst>
void RecordLineReader::ReadMember(Cursor& at, Struct& into) {
  static constexpr auto kMember = std::get<kField>(kFields<Struct>);
  static constexpr MemberKey kKey(kIsFirst ? '{' : ',', kMember.name);
  if constexpr (kMember.presence == Presence::kOptional) {
    static_assert(!kIsFirst);
    if (!at.Skip(kKey.view())) return;
  } else {
    at.Expect(kKey.view());
  }
  if constexpr (std::is_same_v<decltype(kMember), const FormatField>) {
    const int format = at.Integer<int>();
    if (format < 1 || format > kRecordFormat) at.Fail();
  } else {
    ReadValue(at, into.*kMember.member);
  }
}

template <typename T>
void RecordLineReader::ReadValue(Cursor& at, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = at.Bool();
  } else if constexpr (std::is_integral_v<T>) {
    value = at.Integer<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = at.Quoted();
  } else {
    value = at.Real();  // a number, or one that may be missing
  }
}

void RecordLineReader::ReadValue(Cursor& at, std::vector<double>& values) {
  at.Expect("[");
  if (at.Skip("]")) return;
  const std::string_view list = at.rest().substr(0, at.rest().find(']'));
  values.reserve(1 + static_cast<size_t>(std::count(list.begin(), list.end(), ',')));
  do values.push_back(at.Real());
  while (at.ok() && at.Skip(","));
  at.Expect("]");
}

void RecordLineReader::ReadValue(Cursor& at, Isa& isa) {
  const std::string_view text = at.Quoted();
  if (at.ok()) isa = ParseIsa(text, kAllIsas);
}

void RecordLineReader::ReadValue(Cursor& at, TrialStatus& status) {
  const std::string_view text = at.Quoted();
  if (at.ok()) status = ParseTrialStatus(text);
}

void RecordLineReader::ReadValue(Cursor& at, ConvWorkload& workload) {
  const std::string_view text = at.Quoted();
  if (at.ok()) workload = WorkloadOf(text);
}

void RecordLineReader::ReadValue(Cursor& at, MeasureConditions& conditions) { ReadObject(at, conditions); }

// Names must ascend, as they do when LogWriter writes them; then no name comes twice.
void RecordLineReader::ReadValue(Cursor& at, Config& config) {
  config.Reserve(knobs_);
  at.Expect("{");
  if (at.Skip("}")) return;
  std::string_view last;
  for (;;) {
    const std::string_view name = at.Quoted();
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

// Passes over a value that was met before, or reads it and remembers it.
template <typename T, typename ReadNew>
void RecordLineReader::ReadKnown(Cursor& at, std::vector<std::pair<std::string, T>>& known, T& value,
                                 const ReadNew& read_new) {
  for (const auto& [text, same] : known) {
    if (!at.Skip(text)) continue;
    value = same;
    return;
  }
  const std::string_view from = at.rest();
  read_new();
  if (!at.ok()) return;
  if (known.size() >= kMaxOthers) known.clear();
  known.emplace_back(from.substr(0, from.size() - at.rest().size()), value);
}

void RecordLineReader::ReadValue(Cursor& at, Target& target) {
  ReadKnown(at, targets_, target, [&] { ReadObject(at, target); });
}

void RecordLineReader::ReadValue(Cursor& at, LayoutPair& layouts) {
  ReadKnown(at, layouts_, layouts, [&] {
    at.Expect("[");
    const std::string_view in = at.Quoted();
    at.Expect(",");
    const std::string_view out = at.Quoted();
    at.Expect("]");
    if (at.ok()) layouts = {Layout::Parse(in), Layout::Parse(out)};
  });
}

const ConvWorkload& RecordLineReader::WorkloadOf(std::string_view text) {
  const auto found = workloads_.find(text);
  if (found != workloads_.end()) return found->second;
  if (workloads_.size() >= kMaxWorkloads) workloads_.clear();
  return workloads_.emplace(text, ParseWorkload(text)).first->second;
}

bool RecordLineReader::ReadCanonical(std::string_view line, Record& record) {
  Cursor at(line);
  record = {};
  try {
    ReadObject(at, record);
    return at.AtEnd() && WhyImplausible(record).empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tilesmith
