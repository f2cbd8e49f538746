#include "tuner/measure/worker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <string>

#include "tuner/measure/protocol.h"
#include "tuner/records/json_fields.h"

namespace tilesmith {
namespace {

using nlohmann::json;

// Sanitizers reserve terabytes of address space, which no limit may then cap.
constexpr bool kCanLimitAddressSpace =
#ifdef __SANITIZE_ADDRESS__
    false;
#else
    true;
#endif

void LimitMemory(int64_t bytes) {
  if (bytes <= 0 || !kCanLimitAddressSpace) return;
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return;
  const rlim_t wanted = static_cast<rlim_t>(bytes);
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(limit.rlim_max, wanted);
  setrlimit(RLIMIT_AS, &limit);
}

// A worker that hangs kills itself some time after its tuner would have, in case the tuner is gone.
class Watchdog {
 public:
  explicit Watchdog(const TrialLimits& limits) {
    constexpr double kGraceSeconds = 10;
    alarm(static_cast<unsigned>(std::ceil(limits.build_seconds + limits.run_seconds + kGraceSeconds)));
  }
  ~Watchdog() { alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

class Worker {
 public:
  Worker(LineChannel channel, TemplateFinder find) : channel_(std::move(channel)), find_(std::move(find)) {}

  int Serve() {
    if (!Send({{"ready", 1}})) return static_cast<int>(ErrorCode::kEnvironment);
    std::string line;
    while (channel_.ReadLine(line) == LineChannel::Read::kLine) {
      if (!Send(Answer(line))) break;
    }
    return 0;
  }

 private:
  json Answer(const std::string& line) {
    try {
      const json message = json::parse(line);
      if (message.contains("session")) return BeginSession(SessionFromJson(message["session"]));
      return RunTrial(TrialFromJson(JsonField(message, "trial")));
    } catch (const std::exception& error) {
      return {{"error", error.what()}};
    }
  }

  // Data and answers of the sessions before are kept, since a tuner of many tasks comes back to each: making
  // them takes from milliseconds to a second.
  json BeginSession(const MeasureSession& session) {
    LimitMemory(session.limits.memory_bytes);
    limits_ = session.limits;
    std::string key = SessionToJson(session).dump();
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const Session& kept) { return kept.key == key; });
    if (found != sessions_.end()) {
      sessions_.splice(sessions_.begin(), sessions_, found);
      sessions_.front().runner.Continue();
    } else {
      MakeRoom();
      sessions_.emplace_front(std::move(key), session, find_);
    }
    return {{"session", "ok"}};
  }

  // The session longest unused goes first.
  void MakeRoom() {
    constexpr int64_t kMaxBytes = int64_t{1} << 30;
    int64_t bytes = 0;
    auto session = sessions_.begin();
    while (session != sessions_.end() && (bytes += session->runner.bytes()) <= kMaxBytes) ++session;
    sessions_.erase(session, sessions_.end());
  }

  json RunTrial(const TrialRequest& request) {
    if (sessions_.empty()) return {{"error", "a trial before any session"}};
    const Watchdog watchdog(limits_);
    return {{"result", ResultToJson(sessions_.front().runner.Run(request, [&] {
               Send({{"running", true}});
             }))}};
  }

  bool Send(const json& message) { return channel_.WriteLine(JsonLine(message)); }

  LineChannel channel_;
  TemplateFinder find_;
  TrialLimits limits_;
  struct Session {
    Session(std::string own_key, const MeasureSession& session, const TemplateFinder& find)
        : key(std::move(own_key)), runner(session, find) {}
    std::string key;
    TrialRunner runner;
  };
  std::list<Session> sessions_;  // the latest first
};

}  // namespace

int MeasureWorkerMain(int in_fd, int out_fd, const TemplateFinder& find) {
  return Worker(LineChannel(in_fd, out_fd), find).Serve();
}

}  // namespace tilesmith
