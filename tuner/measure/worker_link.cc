#include "tuner/measure/worker_link.h"

#include <fmt/format.h>

#include "layouts/base/error.h"
#include "layouts/measure/clock.h"

namespace tilesmith {
namespace {

[[noreturn]] void Fail(const std::string& why) { throw Error(ErrorCode::kEnvironment, why); }

std::string Beginning(const std::string& text) { return fmt::format("\"{}\"", text.substr(0, 80)); }

}  // namespace

std::string MachineKind(const Target& target) {
  return fmt::format("{} {} ({}, tilesmith {})", target.device, target.model, IsaName(target.isa),
                     target.version);
}

std::string WhyNotMeasuredOn(const Target& target, const MeasureSession& session) {
  const Target& asked = session.cpu;
  const bool fits = target.device == asked.device && target.model == asked.model && target.isa >= asked.isa &&
                    target.version == asked.version;
  return fits ? "" : fmt::format("is {}, asked for {}", MachineKind(target), MachineKind(asked));
}

// The next message before the deadline; false when the worker is gone.
bool WorkerLink::Receive(double deadline, Message& message) {
  const double begin = NowSeconds();
  std::string text;
  switch (transport_.Receive(text, deadline)) {
    case Transport::Receipt::kEnd:
      return false;
    case Transport::Receipt::kTimeout:
      Fail(fmt::format("no answer within {:.0f} s", NowSeconds() - begin));
    case Transport::Receipt::kMessage:
      break;
  }
  try {
    message = MessageFromText(text);
  } catch (const Error& error) {
    Fail(fmt::format("garbled answer {}: {}", Beginning(text), error.what()));
  }
  return true;
}

bool WorkerLink::Start() {
  std::string text;
  const auto receipt = transport_.Receive(text, NowSeconds() + kWorkerStartSeconds);
  if (receipt == Transport::Receipt::kEnd) return false;
  if (receipt == Transport::Receipt::kTimeout)
    Fail(fmt::format("no answer within {} s", kWorkerStartSeconds));
  try {
    target_ = std::get<ReadyMessage>(MessageFromText(text)).target;
  } catch (const std::exception&) {
    Fail(fmt::format("is none, it says {}", Beginning(text)));
  }
  return true;
}

bool WorkerLink::Begin(const MeasureSession& session) {
  if (const std::string why = WhyNotMeasuredOn(target_, session); !why.empty()) Fail(why);
  session_isa_ = session.cpu.isa;
  limits_ = session.limits;
  transport_.Send(MessageToText(SessionMessage{session}));
  Message answer;
  if (!Receive(NowSeconds() + kWorkerSessionSeconds, answer)) return false;
  if (std::holds_alternative<AcceptedMessage>(answer)) return true;
  const auto* error = std::get_if<ErrorMessage>(&answer);
  Fail(fmt::format("cannot measure {}: {}", WorkloadToString(session.workload),
                   error ? error->why : "garbled answer"));
}

bool WorkerLink::Prepare(std::span<const TrialRequest> requests) {
  transport_.Send(MessageToText(ComingMessage{{requests.begin(), requests.end()}}));
  Message answer;
  const double seconds = limits_.build_seconds * static_cast<double>(requests.size());
  if (!Receive(NowSeconds() + seconds, answer)) return false;
  if (!std::holds_alternative<AcceptedMessage>(answer)) Fail("cannot prepare trials");
  return true;
}

void WorkerLink::Submit(Ticket ticket, const TrialRequest& request) {
  ticket_ = ticket;
  deadline_ = NowSeconds() + limits_.build_seconds;
  transport_.Send(MessageToText(TrialMessage{ticket, request}));
}

LinkedTrial WorkerLink::Wait() {
  LinkedTrial trial;
  for (std::string text;;) {
    const auto receipt = transport_.Receive(text, deadline_);
    if (receipt != Transport::Receipt::kMessage) {
      const bool gone = receipt == Transport::Receipt::kEnd;
      trial.end = gone ? LinkedTrial::End::kGone : LinkedTrial::End::kTimeout;
      return trial;
    }
    try {
      Message message = MessageFromText(text);
      const auto* running = std::get_if<RunningMessage>(&message);
      auto* result = std::get_if<ResultMessage>(&message);
      if (running != nullptr && running->ticket == ticket_ && !trial.running) {
        trial.running = true;
        deadline_ = NowSeconds() + limits_.run_seconds;
        continue;
      }
      if (result != nullptr && result->ticket == ticket_) {
        trial.result = std::move(result->result);
        trial.result.target = CapIsa(target_, session_isa_);
        return trial;
      }
    } catch (const Error&) {  // said below
    }
    trial.end = LinkedTrial::End::kGarbled;
    trial.garbled = text.substr(0, 80);
    return trial;
  }
}

}  // namespace tilesmith
