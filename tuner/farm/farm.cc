#include "tuner/farm/farm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "layouts/base/error.h"
#include "tuner/farm/scripts.h"
#include "tuner/measure/worker_link.h"

namespace tilesmith {
namespace {

constexpr const char* kGroup = "workers";
constexpr double kForgottenSeconds = 24 * 3600;  // a worker that is dead

std::string Key(std::string_view name) { return "tilesmith:farm1:" + std::string(name); }
std::string AliveKey(const std::string& worker) { return Key("alive:") + worker; }
std::string WorkerKey(const std::string& worker) { return Key("worker:") + worker; }
std::string ClassKey(const std::string& class_name) { return Key("class:") + class_name; }
std::string OpenKey(const std::string& coordinator) { return Key("open:") + coordinator; }
std::string AnswersKey(const std::string& coordinator) { return Key("answers:") + coordinator; }

constexpr size_t kPartBytes = size_t{4} << 20;  // of a file, in one key
constexpr int kMaxReports = 1024;

// The keys of a file's parts.
std::vector<std::string> FileKeys(const std::string& coordinator, const std::string& name, int64_t bytes) {
  std::vector<std::string> keys;
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(kPartBytes))
    keys.push_back(fmt::format("{}{}:{}:{}", Key("file:"), coordinator, name, keys.size()));
  return keys;
}

std::string Milliseconds(double seconds) { return fmt::format("{:.0f}", std::ceil(seconds * 1e3)); }

void Append(const FarmFields& fields, std::vector<std::string>& words) {
  for (const auto& [name, value] : fields) {
    words.push_back(name);
    words.push_back(value);
  }
}

// From names and values by turns.
FarmFields FieldsOf(const RedisReply& flat) {
  FarmFields fields;
  for (size_t i = 0; i + 1 < flat.elements.size(); i += 2)
    fields[flat.elements[i].text] = flat.elements[i + 1].text;
  return fields;
}

// What XREAD and XREADGROUP answer: streams, of entries, of fields.
std::vector<FarmDelivery> ToDeliveries(const RedisReply& reply) {
  std::vector<FarmDelivery> deliveries;
  for (const RedisReply& stream : reply.elements) {
    if (!stream.has(2)) continue;
    for (const RedisReply& entry : stream.elements[1].elements) {
      if (entry.has(2))
        deliveries.push_back({stream.elements[0].text, entry.elements[0].text, FieldsOf(entry.elements[1])});
    }
  }
  return deliveries;
}

double ToSeconds(const std::string& text) {
  double seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::isfinite(seconds) ? seconds : 0;
}

}  // namespace

std::string NewCoordinatorId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

RedisReply Farm::Run(const char* script, const std::vector<std::string>& keys,
                     const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"EVAL", script, std::to_string(keys.size())};
  words.insert(words.end(), keys.begin(), keys.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return redis_.Call(words);
}

std::string Farm::ClassStream(const std::string& class_name) { return Key("trials:class:") + class_name; }
std::string Farm::WorkerStream(const std::string& worker) { return Key("trials:worker:") + worker; }

std::vector<FarmWorker> Farm::Workers() {
  const RedisReply reply = Run(farm_scripts::kWorkers, {Key("workers")}, {AliveKey(""), WorkerKey("")});
  std::vector<FarmWorker> workers;
  if (!reply.has(2)) return workers;
  const double now = ToSeconds(reply.elements[0].text);
  for (const RedisReply& one : reply.elements[1].elements) {
    if (!one.has(3) || !IsFarmName(one.elements[0].text)) continue;
    const FarmFields fields = FieldsOf(one.elements[2]);
    try {
      FarmWorker worker = FarmWorkerFrom(one.elements[0].text, fields);
      worker.alive = one.elements[1].integer == 1;
      const auto seen = fields.find("seen");
      if (seen != fields.end()) worker.silent_seconds = std::max(0.0, now - ToSeconds(seen->second));
      workers.push_back(std::move(worker));
    } catch (const Error&) {  // of another version, or nobody's
    }
  }
  std::ranges::sort(workers, {}, [](const FarmWorker& w) { return std::pair(w.class_name, w.id); });
  return workers;
}

std::optional<std::string> Farm::Announce(const FarmWorker& worker, std::span<const FarmDelivery> held) {
  const FarmFields fields = ToFields(worker);
  std::vector<std::string> arguments = {worker.id,
                                        MachineKind(worker.target),
                                        Milliseconds(timing_.dead_seconds),
                                        Milliseconds(kForgottenSeconds),
                                        kGroup,
                                        std::to_string(fields.size())};
  Append(fields, arguments);
  for (const FarmDelivery& delivery : held) {
    arguments.push_back(delivery.stream);
    arguments.push_back(delivery.entry);
  }
  const RedisReply reply = Run(farm_scripts::kAnnounce,
                               {AliveKey(worker.id), Key("workers"), ClassKey(worker.class_name),
                                WorkerKey(worker.id), WorkerStream(worker.id)},
                               arguments);
  return reply.is_nil() ? std::nullopt : std::optional(reply.text);
}

void Farm::Leave(const FarmWorker& worker) {
  Run(farm_scripts::kLeave,
      {AliveKey(worker.id), Key("workers"), ClassKey(worker.class_name), WorkerKey(worker.id),
       WorkerStream(worker.id), ClassStream(worker.class_name)},
      {worker.id, kGroup, worker.class_name, AliveKey(""), WorkerKey("")});
}

void Farm::Tidy(const std::string& class_name) {
  Run(farm_scripts::kTidy, {ClassStream(class_name)}, {kGroup, AliveKey("")});
}

std::vector<FarmDelivery> Farm::Take(const FarmWorker& worker, double seconds) {
  const std::string own = WorkerStream(worker.id), shared = ClassStream(worker.class_name);
  const RedisReply reply = redis_.Call({"XREADGROUP", "GROUP", kGroup, worker.id, "COUNT", "1", "BLOCK",
                                        Milliseconds(seconds), "STREAMS", own, shared, ">", ">"},
                                       seconds);
  if (reply.kind == RedisReply::Kind::kArray) return ToDeliveries(reply);
  if (reply.kind != RedisReply::Kind::kNoGroup) return {};
  for (const std::string& stream : {own, shared}) {
    try {
      redis_.Call({"XGROUP", "CREATE", stream, kGroup, "0", "MKSTREAM"});
    } catch (const Error& error) {  // somebody else was faster
      if (std::string_view(error.what()).find("BUSYGROUP") == std::string_view::npos) throw;
    }
  }
  return {};
}

std::optional<FarmDelivery> Farm::Reclaim(const FarmWorker& worker, const std::string& stream) {
  const RedisReply reply =
      Run(farm_scripts::kReclaim, {stream}, {kGroup, worker.id, Milliseconds(timing_.dead_seconds)});
  if (!reply.has(3)) return std::nullopt;
  return FarmDelivery{stream, reply.elements[0].text, FieldsOf(reply.elements[1]), reply.elements[2].integer};
}

bool Farm::IsOpen(const std::string& coordinator, const std::string& id) {
  return redis_.Call({"HEXISTS", OpenKey(coordinator), id}).integer == 1;
}

bool Farm::Commit(const FarmDelivery& delivery, const std::string& coordinator, const std::string& id,
                  const FarmFields& answer) {
  std::vector<std::string> arguments = {kGroup, delivery.entry, id,
                                        Milliseconds(timing_.coordinator_seconds)};
  Append(answer, arguments);
  return Run(farm_scripts::kCommit, {delivery.stream, OpenKey(coordinator), AnswersKey(coordinator)},
             arguments)
             .integer == 1;
}

bool Farm::Report(const std::string& coordinator, const FarmJobReport& report) {
  std::vector<std::string> arguments = {report.id, Milliseconds(timing_.coordinator_seconds),
                                        std::to_string(kMaxReports)};
  Append(ToFields(report), arguments);
  return Run(farm_scripts::kReport, {OpenKey(coordinator), AnswersKey(coordinator)}, arguments).integer == 1;
}

void Farm::GiveBack(const FarmDelivery& delivery) {
  Run(farm_scripts::kGiveBack, {delivery.stream}, {kGroup, delivery.entry});
}

bool Farm::Submit(const std::string& stream, const std::string& coordinator, const std::string& id,
                  const FarmFields& fields) {
  std::vector<std::string> arguments = {std::to_string(kMaxQueued), Milliseconds(timing_.coordinator_seconds),
                                        id};
  Append(fields, arguments);
  return Run(farm_scripts::kSubmit, {stream, OpenKey(coordinator)}, arguments).integer == 1;
}

std::set<std::string> Farm::Open(const std::string& coordinator) {
  const RedisReply reply = Run(farm_scripts::kOpen, {OpenKey(coordinator), AnswersKey(coordinator)},
                               {Milliseconds(timing_.coordinator_seconds)});
  std::set<std::string> ids;
  for (const RedisReply& id : reply.elements) ids.insert(id.text);
  return ids;
}

void Farm::Forget(const std::string& coordinator, std::span<const std::string> ids) {
  if (ids.empty()) return;
  std::vector<std::string> words = {"HDEL", OpenKey(coordinator)};
  words.insert(words.end(), ids.begin(), ids.end());
  redis_.Call(words);
}

std::vector<std::pair<std::string, FarmFields>> Farm::Answers(const std::string& coordinator,
                                                              const std::string& after, double seconds) {
  std::vector<std::string> words = {"XREAD", "COUNT", "256"};
  if (seconds > 0) words.insert(words.end(), {"BLOCK", Milliseconds(seconds)});
  words.insert(words.end(), {"STREAMS", AnswersKey(coordinator), after});
  std::vector<std::pair<std::string, FarmFields>> answers;
  for (FarmDelivery& one : ToDeliveries(redis_.Call(words, seconds)))
    answers.emplace_back(std::move(one.entry), std::move(one.fields));
  return answers;
}

void Farm::Trim(const std::string& coordinator, std::span<const std::string> entries) {
  if (entries.empty()) return;
  std::vector<std::string> words = {"XDEL", AnswersKey(coordinator)};
  words.insert(words.end(), entries.begin(), entries.end());
  redis_.Call(words);
}

void Farm::PutFile(const std::string& coordinator, const std::string& name, std::string_view bytes) {
  const std::vector<std::string> keys = FileKeys(coordinator, name, std::ssize(bytes));
  for (size_t part = 0; part < keys.size(); ++part) {
    redis_.Call({"SET", keys[part], std::string(bytes.substr(part * kPartBytes, kPartBytes)), "PX",
                 Milliseconds(timing_.coordinator_seconds)});
  }
}

std::optional<std::string> Farm::GetFile(const std::string& coordinator, const std::string& name,
                                         int64_t bytes) {
  std::string all;
  for (const std::string& key : FileKeys(coordinator, name, bytes)) {
    // No more than a part, whatever lies there.
    all += redis_.Call({"GETRANGE", key, "0", std::to_string(kPartBytes - 1)}).text;
  }
  return std::ssize(all) == bytes ? std::optional(std::move(all)) : std::nullopt;
}

void Farm::KeepFile(const std::string& coordinator, const std::string& name, int64_t bytes) {
  for (const std::string& key : FileKeys(coordinator, name, bytes))
    redis_.Call({"PEXPIRE", key, Milliseconds(timing_.coordinator_seconds)});
}

void Farm::RemoveFile(const std::string& coordinator, const std::string& name, int64_t bytes) {
  for (const std::string& key : FileKeys(coordinator, name, bytes)) redis_.Call({"DEL", key});
}

void Farm::End(const std::string& coordinator) {
  redis_.Call({"DEL", OpenKey(coordinator), AnswersKey(coordinator)});
}

}  // namespace tilesmith
