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
#pragma once

namespace tilesmith::farm_scripts {

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

}  // namespace tilesmith::farm_scripts
