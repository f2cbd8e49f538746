#include "tuner/farm/farm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "layouts/base/error.h"
#include "tuner/measure/worker_link.h"

namespace tilesmith {
namespace farm_scripts {

// What has to happen at once in a farm's Redis, in Lua.
//
// Keys, all of which begin with tilesmith:farm1:
//   workers              set of the ids of all workers
//   worker:ID            hash of what a worker tells of itself (FarmWorker)
//   alive:ID             there while the worker's heart beats
//   class:NAME           what machines the class is of (MachineKind), while it has workers
//   trials:class:NAME    stream of trials for any worker of the class
//   trials:worker:ID     stream of trials for one worker
//   open:ID              hash of the trials that a coordinator waits for
//   answers:ID           stream of answers to it
//   file:ID:NAME:N       the N-th part of a file of its job's
// Both kinds of trial streams have one consumer group, whose consumers are the workers.
//
// A heartbeat: what the worker holds stays its own. Answers what the class is of when that is another kind.
// KEYS: alive, workers, class, worker, the worker's own stream. ARGV: id, kind, ms after which it is dead, ms
// after which it is forgotten, group, number of fields, fields and values, streams and entries held.
inline constexpr const char* kAnnounce = R"lua(
local kind = redis.call('GET', KEYS[3])
if kind and kind ~= ARGV[2] then return kind end
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
redis.call('SET', KEYS[1], '1', 'PX', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
local at = 7
for _ = 1, tonumber(ARGV[6]) do
  redis.call('HSET', KEYS[4], ARGV[at], ARGV[at + 1])
  at = at + 2
end
local time = redis.call('TIME')
redis.call('HSET', KEYS[4], 'seen', time[1])
redis.call('PEXPIRE', KEYS[4], ARGV[4])
redis.call('PEXPIRE', KEYS[5], ARGV[4])
while ARGV[at] do
  local mine = redis.pcall('XPENDING', ARGV[at], ARGV[5], ARGV[at + 1], ARGV[at + 1], 1)
  if not mine.err and mine[1] and mine[1][2] == ARGV[1] then
    redis.call('XCLAIM', ARGV[at], ARGV[5], ARGV[1], 0, ARGV[at + 1], 'JUSTID')
  end
  at = at + 2
end
return false
)lua";

// A worker that stops. Its class loses its kind with its last worker.
// KEYS: alive, workers, class, worker, own stream, the class's stream. ARGV: id, group, class name, prefixes
// of alive and of worker.
inline constexpr const char* kLeave = R"lua(
redis.call('DEL', KEYS[1], KEYS[4], KEYS[5])
redis.call('SREM', KEYS[2], ARGV[1])
local held = redis.pcall('XPENDING', KEYS[6], ARGV[2], '-', '+', 1, ARGV[1])
if not held.err and not held[1] then redis.pcall('XGROUP', 'DELCONSUMER', KEYS[6], ARGV[2], ARGV[1]) end
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if redis.call('EXISTS', ARGV[4] .. id) == 1 and redis.call('HGET', ARGV[5] .. id, 'class') == ARGV[3] then
    return 1
  end
end
redis.call('DEL', KEYS[3])
return 1
)lua";

// Consumers that are dead and hold nothing leave the group.
// KEYS: stream. ARGV: group, prefix of alive.
inline constexpr const char* kTidy = R"lua(
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then return 0 end
for _, flat in ipairs(consumers) do
  local one = {}
  for i = 1, #flat, 2 do one[flat[i]] = flat[i + 1] end
  if one.pending == 0 and redis.call('EXISTS', ARGV[2] .. one.name) == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], one.name)
  end
end
return 1
)lua";

// One trial that nobody's heart has beaten for so long, and how often it has been delivered by now.
// KEYS: stream. ARGV: group, id, ms.
inline constexpr const char* kReclaim = R"lua(
local from = '0-0'
repeat
  local got = redis.pcall('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], from, 'COUNT', 1)
  if got.err then return false end
  from = got[1]
  local entry = got[2][1]
  if entry then
    local pending = redis.call('XPENDING', KEYS[1], ARGV[1], entry[1], entry[1], 1)
    return {entry[1], entry[2], pending[1][4]}
  end
until from == '0-0'
return false
)lua";

// The first answer is the one that counts. 1 if this was it.
// KEYS: stream, open, answers. ARGV: group, entry, trial id, ms, fields and values.
inline constexpr const char* kCommit = R"lua(
local first = redis.call('HDEL', KEYS[2], ARGV[3])
if first == 1 then
  redis.call('XADD', KEYS[3], '*', unpack(ARGV, 5))
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return first
)lua";

// What a worker tells of a job, while it is wanted. KEYS: open, answers. ARGV: job id, ms, entries at most,
// fields and values.
inline constexpr const char* kReport = R"lua(
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[3], '*', unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
)lua";

// To whoever comes first. KEYS: stream. ARGV: group, entry.
inline constexpr const char* kGiveBack = R"lua(
local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
if entry then redis.call('XADD', KEYS[1], '*', unpack(entry[2])) end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return 1
)lua";

// 0 when the stream is full. KEYS: stream, open. ARGV: entries at most, ms, trial id, fields and values.
inline constexpr const char* kSubmit = R"lua(
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[2], ARGV[3], KEYS[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('XADD', KEYS[1], '*', unpack(ARGV, 4))
return 1
)lua";

// The ids of the trials that are open, which stay so for so long. KEYS: open, answers. ARGV: ms.
inline constexpr const char* kOpen = R"lua(
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return redis.call('HKEYS', KEYS[1])
)lua";

// The time, and of each worker id, whether it is alive, and its fields. KEYS: workers. ARGV: prefixes of
// alive and of worker.
inline constexpr const char* kWorkers = R"lua(
local all = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local fields = redis.call('HGETALL', ARGV[2] .. id)
  if #fields == 0 then
    redis.call('SREM', KEYS[1], id)
  else
    all[#all + 1] = {id, redis.call('EXISTS', ARGV[1] .. id), fields}
  end
end
return {redis.call('TIME')[1], all}
)lua";

}  // namespace farm_scripts

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
