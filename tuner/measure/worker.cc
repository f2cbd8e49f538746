#include "tuner/measure/worker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <string>

#include "layouts/base/error.h"
#include "tuner/measure/line_transport.h"
#include "tuner/measure/protocol.h"

namespace tilesmith {
namespace {

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
    constexpr double kLongest = 1e6;
    const double seconds = limits.build_seconds + limits.run_seconds + kGraceSeconds;
    alarm(static_cast<unsigned>(std::clamp(std::ceil(seconds), 1.0, kLongest)));
  }
  ~Watchdog() { alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
};

class Worker {
 public:
  Worker(Transport& transport, Target target, TemplateFinder find)
      : transport_(transport), target_(std::move(target)), find_(std::move(find)) {}

  int Serve() {
    if (!Send(ReadyMessage{target_})) return static_cast<int>(ErrorCode::kEnvironment);
    std::string text;
    while (transport_.Receive(text, Transport::kNever) == Transport::Receipt::kMessage) {
      if (!Send(Answer(text))) break;
    }
    return 0;
  }

 private:
  Message Answer(const std::string& text) {
    try {
      const Message message = MessageFromText(text);
      if (const auto* begin = std::get_if<SessionMessage>(&message)) return BeginSession(begin->session);
      if (const auto* coming = std::get_if<ComingMessage>(&message)) return Prepare(*coming);
      if (const auto* trial = std::get_if<TrialMessage>(&message)) return RunTrial(*trial);
      return ErrorMessage{"neither a session nor a trial"};
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& error) {
      return ErrorMessage{error.what()};
    }
  }

  // Data and answers of the sessions before are kept, since a tuner of many tasks comes back to each: making
  // them takes from milliseconds to a second.
  Message BeginSession(const MeasureSession& session) {
    // Other devices' drivers reserve address space for all the memory there is.
    if (session.cpu.device == kCpuDevice) LimitMemory(session.limits.memory_bytes);
    limits_ = session.limits;
    std::string key = MessageToText(SessionMessage{session});
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const Session& kept) { return kept.key == key; });
    if (found != sessions_.end()) {
      sessions_.splice(sessions_.begin(), sessions_, found);
      sessions_.front().runner.Continue();
    } else {
      MakeRoom();
      sessions_.emplace_front(std::move(key), session, find_);
    }
    return AcceptedMessage{};
  }

  // The session longest unused goes first.
  void MakeRoom() {
    constexpr int64_t kMaxBytes = int64_t{1} << 30;
    int64_t bytes = 0;
    auto session = sessions_.begin();
    while (session != sessions_.end() && (bytes += session->runner.bytes()) <= kMaxBytes) ++session;
    sessions_.erase(session, sessions_.end());
  }

  Message Prepare(const ComingMessage& message) {
    if (sessions_.empty()) return ErrorMessage{"trials before any session"};
    sessions_.front().runner.Prepare(message.trials);
    return AcceptedMessage{};
  }

  Message RunTrial(const TrialMessage& message) {
    if (sessions_.empty()) return ErrorMessage{"a trial before any session"};
    const Watchdog watchdog(limits_);
    return ResultMessage{message.ticket, sessions_.front().runner.Run(
                                             message.trial, [&] { Send(RunningMessage{message.ticket}); })};
  }

  bool Send(const Message& message) { return transport_.Send(MessageToText(message)); }

  Transport& transport_;
  const Target target_;
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

int ServeTrials(Transport& transport, const Target& target, const TemplateFinder& find) {
  return Worker(transport, target, find).Serve();
}

int MeasureWorkerMain(int in_fd, int out_fd, const Target& target, const TemplateFinder& find) {
  LineTransport lines(in_fd, out_fd);
  return ServeTrials(lines, target, find);
}

}  // namespace tilesmith
