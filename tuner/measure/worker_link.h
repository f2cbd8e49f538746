// The tuner's side of the protocol (protocol.h): one worker at the other end of a transport. What becomes of
// a worker that does not answer is its owner's to decide.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "tuner/measure/protocol.h"
#include "tuner/measure/transport.h"

namespace tilesmith {

// Starting a worker and preparing a session's data are no trial: generous, but not endless.
constexpr double kWorkerStartSeconds = 60;
constexpr double kWorkerSessionSeconds = 600;

// A machine in words, as far as records of it stay apart from others': "cpu AMD EPYC (avx512, tilesmith
// 0.1.0)".
std::string MachineKind(const Target& target);
// Why trials of the session cannot be measured on this machine, or "".
std::string WhyNotMeasuredOn(const Target& target, const MeasureSession& session);

// How a trial ended, as far as its worker tells.
struct LinkedTrial {
  enum class End {
    kResult,
    kGone,     // the transport ended
    kTimeout,  // the worker built, or ran, for longer than the session allows
    kGarbled,  // it said what does not belong there
  };
  End end = End::kResult;
  bool running = false;  // building was over
  TrialResult result;    // of kResult
  std::string garbled;   // of kGarbled, the beginning of what it said
};

// In the order Start, Begin (again at any time between trials), then Submit and Wait for each trial. Errors
// are thrown as Error(kEnvironment) saying what the worker did; after that it is of no use. One thread at a
// time.
class WorkerLink {
 public:
  // `transport` outlives it.
  explicit WorkerLink(Transport& transport) : transport_(transport) {}

  // Waits for the worker to say which machine it is. False when it is gone.
  bool Start();
  // By the worker's word. Precondition: Start.
  const Target& target() const { return target_; }

  // False when the worker is gone. Throws when it refuses, or is not the machine that the session asks for.
  bool Begin(const MeasureSession& session);
  // Waits until the worker has built what it can of these, for as long as it may build them one by one. False
  // when it is gone.
  bool Prepare(std::span<const TrialRequest> requests);
  // The time it may build for begins. When the worker is gone, Wait finds out.
  void Submit(Ticket ticket, const TrialRequest& request);
  // Waits for the end of the trial that was submitted.
  LinkedTrial Wait();

 private:
  bool Receive(double deadline, Message& message);

  Transport& transport_;
  Target target_;
  Isa session_isa_ = Isa::kPortable;
  TrialLimits limits_;
  Ticket ticket_ = 0;
  double deadline_ = 0;
};

}  // namespace tilesmith
